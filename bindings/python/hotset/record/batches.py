"""Which row of a forward pass is which token of which sequence.

A batch is born when the model runs on an empty cache, and goes on when it runs on the
same cache again. Padding is told by the attention mask and never becomes a row.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .errors import RecorderError
from .generation import Generation
from .table import DECODE, PREFILL

Bools = npt.NDArray[np.bool_]


class Batch:
    """Sequences that run together."""

    def __init__(self, labels: list[str]) -> None:
        """A batch of as many sequences as labels."""
        self.labels = labels
        self.columns = 0
        """Columns that the cache holds, padding included."""
        self.numbers: list[int | None] = [None] * len(labels)
        """Each sequence's number in the recording, once it has a row."""
        self.positions = np.zeros(len(labels), np.int64)
        """Real tokens of each sequence so far."""
        self.in_first_prompt = np.ones(len(labels), bool)
        self._cache: weakref.ref[Any] | None = None

    @property
    def alive(self) -> bool:
        """Whether its cache is still there to go on with."""
        return self._cache is not None and self._cache() is not None

    def runs_on(self, cache: Any) -> bool:
        """Whether this is the batch whose tokens the cache holds."""
        return self._cache is not None and self._cache() is _anchor(cache)

    def remember(self, cache: Any) -> None:
        """From now on this cache holds the batch's tokens."""
        anchor = _anchor(cache)
        self._cache = None if anchor is None else weakref.ref(anchor)


class Batches:
    """The batches that can go on, and the names of the sequences to come."""

    def __init__(self, labels: list[str], on_end: Callable[[Batch], None]) -> None:
        """Takes from `labels`; `on_end` gets each batch that can go on no more."""
        self._labels = labels
        self._on_end = on_end
        self._live: list[Batch] = []

    def of(self, cache: Any, past: int, size: int, copies: int) -> Batch:
        """The batch whose `past` columns a KV cache holds, or a new one where it holds none.

        A new batch takes one label for every `copies` of its `size` sequences.
        """
        if past == 0:
            over = [each for each in self._live if not each.alive or each.runs_on(cache)]
            for batch in over:
                self._live.remove(batch)
                self._on_end(batch)
            batch = Batch(self._take_labels(size, copies))
            self._live.append(batch)
            return batch
        for batch in self._live:
            if batch.runs_on(cache):
                if batch.columns == past and len(batch.labels) == size:
                    return batch
                raise RecorderError(
                    f"the KV cache holds {past} columns of {size} sequences, {batch.columns} "
                    f"of {len(batch.labels)} were recorded: a cache that was cut or reordered "
                    "(assisted generation, beams) cannot be followed"
                )
        raise RecorderError(
            f"the KV cache holds {past} columns that were not recorded; start the recorder "
            "before the prompt runs"
        )

    def _take_labels(self, size: int, copies: int) -> list[str]:
        prompts = size // copies
        taken = self._labels[:prompts]
        del self._labels[:prompts]
        taken += [""] * (prompts - len(taken))
        return [label for label in taken for _ in range(copies)]


@dataclass
class Step:
    """One forward pass: which of its rows are tokens, and which tokens they are."""

    batch: Batch
    real: Bools
    """`[sequences, columns]`: rows that are tokens of a sequence."""
    phase: npt.NDArray[np.uint8]
    """`[columns]`."""
    tokens: npt.NDArray[np.uint32] | None
    """`[sequences, columns]`, where the model was given ids."""

    @property
    def first_prompt(self) -> Bools:
        """`[sequences, columns]`: tokens of each sequence's first prompt."""
        prompt = self.batch.in_first_prompt[:, None] & (self.phase == PREFILL)[None, :]
        return np.asarray(self.real & prompt)

    @property
    def positions(self) -> npt.NDArray[np.uint32]:
        """`[rows]`: each row's place in its sequence, padding not counted."""
        after = np.cumsum(self.real, axis=1) - 1
        positions = self.batch.positions[:, None] + after
        return np.asarray(positions[self.real], np.uint32)

    def advance(self) -> None:
        """The batch has these tokens now."""
        batch = self.batch
        batch.columns += self.real.shape[1]
        batch.positions += self.real.sum(axis=1)
        decoded = self.real & (self.phase == DECODE)[None, :]
        batch.in_first_prompt &= ~decoded.any(axis=1)


def past_columns(cache: Any, inputs: dict[str, Any]) -> int:
    """Columns that a KV cache holds before a forward pass with these arguments."""
    # transformers 4 says where the pass begins; its static caches can only guess.
    begins = inputs.get("cache_position")
    if cache is None:
        return 0
    if isinstance(begins, Tensor):
        return int(begins[0])
    if hasattr(cache, "get_seq_length"):
        return int(cache.get_seq_length())
    return int(cache[0][0].shape[-2])


def _anchor(cache: Any) -> Any:
    """An object that lives as long as the cache; tuples cannot be referred to weakly."""
    while isinstance(cache, tuple) and cache:
        cache = cache[0]
    return None if isinstance(cache, tuple) else cache


def plan(
    batch: Batch,
    shape: tuple[int, int],
    inputs: dict[str, Any],
    generation: Generation | None,
) -> Step:
    """What a forward pass on `shape` = sequences, columns is about to run."""
    size, columns = shape
    past = batch.columns
    real = _real(inputs.get("attention_mask"), past, shape, generation)
    _refuse_packed(inputs.get("position_ids"), real)
    ids = inputs.get("input_ids")
    tokens = None if ids is None else ids.cpu().numpy().astype(np.uint32)
    if generation is not None:
        decode = past + np.arange(columns) >= generation.prompt_columns
        if generation.finished is None:
            generation.finished = np.zeros(size, bool)
        if tokens is not None and generation.end_tokens:
            ended = np.isin(tokens, sorted(generation.end_tokens)) & decode[None, :]
            ended = np.logical_or.accumulate(ended, axis=1)
            real = real & ~(ended | generation.finished[:, None])
            generation.finished |= ended.any(axis=1)
    else:
        decode = np.full(columns, columns == 1 and past > 0)
    return Step(batch, real, decode.astype(np.uint8), tokens)


def _real(mask: Any, past: int, shape: tuple[int, int], generation: Generation | None) -> Bools:
    size, columns = shape
    if mask is None:
        return np.ones(shape, bool)
    if isinstance(mask, Tensor) and mask.ndim == 2:
        known = mask.cpu().numpy().astype(bool)
    elif generation is not None and generation.mask is not None:
        known = np.repeat(generation.mask, size // len(generation.mask), axis=0)
        new = np.ones((size, max(past + columns - known.shape[1], 0)), bool)
        known = np.concatenate([known, new], axis=1)
    elif size == 1:
        return np.ones(shape, bool)
    else:
        raise RecorderError(
            "which rows are padding cannot be told from this attention_mask; pass one of two "
            "dimensions, [sequences, tokens]"
        )
    if known.shape == shape:
        return known
    if known.shape[0] != size or known.shape[1] < past + columns:
        raise RecorderError(
            f"attention_mask is {list(known.shape)}; the cache holds {past} columns and "
            f"{columns} run for {size} sequences"
        )
    return known[:, past : past + columns]


def _refuse_packed(positions: Any, real: Bools) -> None:
    if not isinstance(positions, Tensor) or positions.ndim != 2:
        return
    places = np.broadcast_to(positions.cpu().numpy(), real.shape)
    for row, kept in zip(places, real):
        if (np.diff(row[kept]) <= 0).any():
            raise RecorderError(
                "position_ids fall within a row: packed sequences, or padding that no "
                "attention_mask marks; pass one sequence a row and an attention_mask"
            )


def device_rows(real: Bools, device: torch.device) -> Tensor | None:
    """Flat places of the real rows on a device; None where all are."""
    return None if real.all() else torch.from_numpy(np.flatnonzero(real)).to(device)
