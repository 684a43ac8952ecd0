"""The tokens of a `llama_batch`, and which of them are the rows of which pass.

llama.cpp splits a batch into micro-batches: in its order, or by sequences side by side. The
inputs that a pass states decide which rows it holds; no order is taken on trust.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import RecorderError

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """What one `llama_decode` was given."""

    tokens: Ints | None
    """`[n]`, unless it was given embeddings."""
    positions: Ints
    """`[n]`."""
    sequences: Ints
    """`[n]`: llama.cpp's own sequence ids."""
    outputs: npt.NDArray[np.bool_]
    """`[n]`: tokens whose logits were asked for."""

    def __len__(self) -> int:
        """Tokens."""
        return len(self.positions)

    def places(self) -> dict[int, Ints]:
        """The places of each sequence's tokens, sequences by their first token."""
        ids, first = np.unique(self.sequences, return_index=True)
        return {int(i): np.flatnonzero(self.sequences == i) for i in ids[np.argsort(first)]}


def read(batch: Any, held: Any) -> Batch:
    """Copies a `llama_batch`; `held(seq)` is the last position that the KV cache holds."""
    count = int(batch.n_tokens)

    def column(pointer: Any) -> Ints | None:
        if not pointer or not count:
            return None
        return np.ctypeslib.as_array(pointer, (count,)).astype(np.int64)

    shared = column(batch.n_seq_id)
    if shared is not None and (shared != 1).any():
        raise RecorderError(
            f"a token of the batch is in {shared[shared != 1][0]} sequences at once: a row of "
            "a trace is in one; run it in one and copy its cache with llama_memory_seq_cp"
        )
    sequences = np.zeros(count, np.int64)
    if batch.seq_id and shared is not None:
        cells = ctypes.cast(batch.seq_id, ctypes.POINTER(ctypes.c_void_p))
        sequences[:] = [ctypes.c_int32.from_address(cells[i]).value for i in range(count)]
    positions = column(batch.pos)
    if positions is None:
        # llama_batch_get_one: all in one sequence, after what its cache holds.
        positions = held(0) + 1 + np.arange(count, dtype=np.int64)
    outputs = column(batch.logits)
    last = np.arange(count) == count - 1
    flags = last if outputs is None else outputs != 0
    return Batch(column(batch.token), positions, sequences, flags)


def rows_of(
    tokens: Ints | None, positions: Ints | None, count: int, batch: Batch, left: Ints
) -> Ints:
    """The places in the batch of a pass's `count` rows, among those `left` (rising).

    `tokens` and `positions` are what the pass states of its rows; one of them may be unknown.
    """
    stated, given = [], []
    if tokens is not None and batch.tokens is not None and len(tokens) == count:
        stated.append(tokens)
        given.append(batch.tokens)
    if positions is not None and len(positions) == count:
        stated.append(positions)
        given.append(batch.positions)
    if not stated:
        raise RecorderError("a pass states neither tokens nor positions: its rows are unknown")
    wanted = list(zip(*(column.tolist() for column in stated)))
    keys = list(zip(*(column.tolist() for column in given)))
    _refuse_twins(batch, keys)
    in_order = left[:count].tolist()
    if len(in_order) == count and all(keys[i] == key for i, key in zip(in_order, wanted)):
        return left[:count]
    # Side by side: each row is the next token of one of the sequences.
    queues = {
        number: [i for i in left.tolist() if batch.sequences[i] == number][::-1]
        for number in batch.places()
    }
    chosen = []
    for key in wanted:
        heads = [queue[-1] for queue in queues.values() if queue and keys[queue[-1]] == key]
        if not heads:
            raise RecorderError(
                f"a pass holds token and position {key}, which are not next in any sequence of "
                "the batch: llama.cpp splits it in a way that this recorder does not know"
            )
        place = min(heads)
        queues[int(batch.sequences[place])].pop()
        chosen.append(place)
    return np.array(chosen, np.int64)


def _refuse_twins(batch: Batch, keys: list[Any]) -> None:
    """Equal tokens at equal positions are told apart by rising sequence ids alone."""
    order = list(batch.places())
    if order == sorted(order) or len(set(keys)) == len(keys):
        return
    raise RecorderError(
        f"sequences {order} run the same token at the same position, and not in rising order: "
        "their rows cannot be told apart; add sequences to the batch in the order of their ids"
    )
