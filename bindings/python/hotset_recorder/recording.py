"""A recording on its way to a file: columns in a spool, facts for `info`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from . import output
from .architecture import Architecture
from .batches import Batch, Step
from .capture import Rows
from .errors import RecorderError
from .prompts import NAMES, PromptMeans
from .spool import Column, Spool
from .version import __version__

WEIGHTS: dict[str, np.dtype[Any]] = {
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "u8": np.dtype(np.uint8),
}
"""How weights may be kept."""

_U32 = np.dtype(np.uint32)
_PLACES = [
    Column("sequence", _U32),
    Column("position", _U32),
    Column("token_id", _U32),
    Column("phase", np.dtype(np.uint8)),
    Column("step", _U32),
]
_OWN_KEYS = (
    "model layers experts top_k moe_layer_ids model_layers dense_layers layout phases "
    "sequence_labels router_ids weights predictions token_id step recorder torch transformers "
    "dtype device prompt_tokens turns expert_bytes"
).split()


class Recording:
    """Rows in, a file out. The number of experts is known with the first rows."""

    def __init__(
        self,
        architecture: Architecture,
        *,
        name: str | None,
        weights: str | None,
        lookahead: int,
        embeddings: bool,
        extra: dict[str, Any],
        buffer_bytes: int,
        folder: Path | None,
    ) -> None:
        """Checks `extra`; opens no file yet."""
        taken = sorted(set(extra) & set(_OWN_KEYS))
        if taken:
            raise RecorderError(f"info: {', '.join(taken)} are the recorder's own keys")
        try:
            json.dumps(extra)
        except (TypeError, ValueError) as error:
            raise RecorderError(f"info: not JSON: {error}") from error
        self._architecture = architecture
        self._name = name
        self._weights = weights
        self._lookahead = lookahead
        self._embeddings = embeddings
        self._extra = extra
        self._buffer_bytes = buffer_bytes
        self._folder = folder
        self._labels: list[str] = []
        self._steps = 0
        self._has_tokens = True
        self._experts = self._top_k = 0
        self._ids: np.dtype[Any] = np.dtype(np.uint8)
        self._spool: Spool | None = None
        self._prompts: PromptMeans | None = None

    def add(self, step: Step, rows: Rows) -> None:
        """Adds a step's rows and moves its batch on."""
        if len(rows.ids):
            spool = self._spool or self._open(rows)
            self._check(rows)
            numbers = self._numbers(step)
            spool.append(numbers, self._columns(step, rows, numbers))
            self._steps += 1
        if self._embeddings:
            self._add_prompts(step, rows)
        step.advance()

    def end(self, batch: Batch) -> None:
        """The batch will not go on."""
        if self._prompts is not None:
            self._prompts.end(batch)

    def write(self, path: Path, router_ids: str, compress: bool) -> None:
        """Writes the file."""
        if self._spool is None:
            raise RecorderError("nothing was recorded: no token went through the model")
        tokens = self._spool.rows
        arrays = [
            output.Array(name, column.dtype, (tokens, *column.shape), self._blocks(name))
            for name, column in ((column.name, column) for column in self._layout())
            if name != "token_id" or self._has_tokens
            if not name.startswith("predicted_ids")
        ]
        if self._lookahead:
            shape = (
                self._lookahead,
                tokens,
                len(self._architecture.layers),
                self._top_k,
            )
            names = [f"predicted_ids.{ahead}" for ahead in range(self._lookahead)]
            arrays.append(output.Array("predicted_ids", self._ids, shape, self._blocks(*names)))
        if self._prompts is not None:
            self._prompts.end_all()
            extent = (len(self._labels), self._prompts.dim)
            for name in NAMES:
                blocks = partial(self._prompts.spool.blocks, name)
                arrays.append(output.Array(name, np.dtype(np.float16), extent, blocks))
        info = json.dumps(self._info(router_ids), ensure_ascii=False)
        output.write(path, arrays, info, compress)

    def close(self) -> None:
        """Gives temporary files back."""
        if self._spool is not None:
            self._spool.close()
        if self._prompts is not None:
            self._prompts.spool.close()

    def _open(self, rows: Rows) -> Spool:
        self._top_k = rows.ids.shape[-1]
        self._experts = rows.experts or self._stated_experts()
        # 255 stands for "none" among one-byte predictions; one rule for all ids.
        self._ids = np.dtype(np.uint8 if self._experts <= 255 else np.uint16)
        self._spool = Spool(self._layout(), self._buffer_bytes, self._folder)
        return self._spool

    def _layout(self) -> list[Column]:
        shape = (len(self._architecture.layers), self._top_k)
        columns = [Column("expert_ids", self._ids, shape)]
        if self._weights is not None:
            columns.append(Column("expert_weights", WEIGHTS[self._weights], shape))
        for ahead in range(self._lookahead):
            columns.append(Column(f"predicted_ids.{ahead}", self._ids, shape))
        return columns + _PLACES

    def _stated_experts(self) -> int:
        layer = self._architecture.layers[0]
        names = (
            "num_experts",
            "num_local_experts",
            "n_routed_experts",
            "moe_num_experts",
        )
        for owner in (layer.router, layer.block, self._architecture.config):
            for name in names:
                if isinstance(experts := getattr(owner, name, None), int):
                    return experts
        raise RecorderError("neither the routers nor the configuration say how many experts")

    def _check(self, rows: Rows) -> None:
        if (
            rows.ids.shape[-1] != self._top_k
            or (rows.experts or self._experts) != self._experts
        ):
            raise RecorderError("the number of experts or of those chosen changed on the way")
        if rows.ids.min() < 0 or rows.ids.max() >= self._experts:
            raise RecorderError(
                f"a router chose experts {rows.ids.min()} to {rows.ids.max()} of "
                f"{self._experts}: under expert parallelism ids are local; use one process"
            )
        if self._weights is None:
            return
        low, high = rows.weights.min(), rows.weights.max()
        # Weights that sum to 1 may exceed it by a rounding error.
        most = {"u8": 1.001, "f16": float(np.finfo(np.float16).max)}.get(self._weights, np.inf)
        if not (low >= 0 and high <= most and high < np.inf):
            raise RecorderError(
                f"router weights lie between {low} and {high}; weights={self._weights!r} keeps "
                f'0 to {most}: record with weights="f32", or None'
            )

    def _numbers(self, step: Step) -> npt.NDArray[np.int64]:
        """`[rows]`: sequence numbers, new ones for sequences that have their first row."""
        batch = step.batch
        for place in np.flatnonzero(step.real.any(axis=1)):
            if batch.numbers[place] is None:
                batch.numbers[place] = len(self._labels)
                self._labels.append(batch.labels[place])
        counts = step.real.sum(axis=1)
        known = np.array([-1 if n is None else n for n in batch.numbers], np.int64)
        return np.repeat(known, counts)

    def _columns(
        self, step: Step, rows: Rows, numbers: npt.NDArray[np.int64]
    ) -> dict[str, npt.NDArray[Any]]:
        count = len(numbers)
        tokens = np.zeros(count, np.uint32)
        if step.tokens is None:
            self._has_tokens = False
        else:
            tokens = step.tokens[step.real]
        values: dict[str, npt.NDArray[Any]] = {
            "expert_ids": rows.ids.astype(self._ids),
            "sequence": numbers.astype(np.uint32),
            "position": step.positions,
            "token_id": tokens,
            "phase": np.broadcast_to(step.phase, step.real.shape)[step.real],
            "step": np.full(count, self._steps, np.uint32),
        }
        if self._weights == "u8":
            values["expert_weights"] = np.rint(rows.weights * 255).astype(np.uint8)
        elif self._weights is not None:
            values["expert_weights"] = rows.weights.astype(WEIGHTS[self._weights])
        for ahead, predicted in enumerate(rows.predicted):
            # -1 becomes the marker of "none": all bits set.
            values[f"predicted_ids.{ahead}"] = predicted.astype(self._ids)
        return values

    def _add_prompts(self, step: Step, rows: Rows) -> None:
        without = (
            step.real.any(axis=1) & step.batch.in_first_prompt & ~step.first_prompt.any(axis=1)
        )
        if (without & (step.batch.positions == 0)).any():
            raise RecorderError("a sequence has no prompt; record with embeddings=False")
        if rows.prompt_sums is None:
            return
        if self._prompts is None:
            dim = rows.prompt_sums.shape[-1]
            self._prompts = PromptMeans(dim, self._buffer_bytes, self._folder)
        self._prompts.add(step.batch, rows.prompt_sums, step.first_prompt.sum(axis=1))

    def _blocks(self, *names: str) -> Any:
        """A function that gives the columns' bytes one after another."""

        def blocks() -> Iterator[bytes]:
            spool = self._spool
            return chain.from_iterable(
                spool.blocks(name) for name in names if spool is not None
            )

        return blocks

    def _info(self, router_ids: str) -> dict[str, Any]:
        found = self._architecture
        weight = next(found.trunk.parameters(), None)
        transformers = sys.modules.get("transformers")
        stated = getattr(found.config, "_name_or_path", "") or type(found.trunk).__name__
        info: dict[str, Any] = {
            "layout": "hotset-npz/1",
            "model": self._name or stated,
            "layers": len(found.layers),
            "experts": self._experts,
            "top_k": self._top_k,
            "moe_layer_ids": [layer.number for layer in found.layers],
            "model_layers": found.model_layers,
            "dense_layers": found.dense_layers,
            "phases": ["prefill", "decode"],
            "sequence_labels": self._labels,
            "router_ids": f"{router_ids} ({type(found.layers[0].router).__name__})",
            "step": "number of the forward pass",
            "recorder": f"hotset-recorder {__version__}",
            "torch": torch.__version__,
            "transformers": getattr(transformers, "__version__", None),
            "dtype": (None if weight is None else str(weight.dtype).removeprefix("torch.")),
            "device": None if weight is None else weight.device.type,
        }
        if self._weights is not None:
            how = "round(255 w)" if self._weights == "u8" else "w"
            info["weights"] = f"{self._weights} = {how}, w as applied to the experts' outputs"
        if self._lookahead:
            info["predictions"] = (
                "entry [a, t, l]: the router of MoE layer l run on the router input of MoE "
                "layer l - a - 1"
            )
        if not self._has_tokens:
            info["token_id"] = "not recorded: the model was given embeddings"
        return {**info, **self._extra}
