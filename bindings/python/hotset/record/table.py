"""Rows of a recording, whichever engine ran them: checked, spooled, given back as arrays.

The numbers of layers, experts and choices are known with the first rows and must then stay.
What an engine knows beside its rows (names, layers' numbers, versions) is its own to add.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import RecorderError
from .output import Array
from .spool import Column, Spool

PREFILL, DECODE = 0, 1
"""The phases, as a file has them."""

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


@dataclass(frozen=True)
class Routed:
    """The rows of one forward pass."""

    ids: npt.NDArray[Any]
    """`[rows, layers, top-k]`, integers, best first."""
    weights: npt.NDArray[np.float32]
    """As `ids`; not looked at where the table keeps none."""
    sequence: npt.NDArray[Any]
    """`[rows]`: numbers of sequences, from 0."""
    position: npt.NDArray[Any]
    """`[rows]`: each row's place in its sequence."""
    token_id: npt.NDArray[Any] | None
    """`[rows]`, where the engine was given ids."""
    phase: npt.NDArray[np.uint8]
    """`[rows]`: `PREFILL` or `DECODE`."""
    predicted: Sequence[npt.NDArray[Any]] = ()
    """As `ids` for each lookahead; -1 where there is no prediction."""


class Table:
    """The columns of `hotset-npz/1`, row by row."""

    def __init__(
        self, weights: str | None, buffer_bytes: int, folder: Path | None, lookahead: int = 0
    ) -> None:
        """Opens no file yet. `weights` is one of `WEIGHTS`, or None."""
        if weights is not None and weights not in WEIGHTS:
            raise RecorderError(f"weights={weights!r}; known are {', '.join(WEIGHTS)} and None")
        self.layers = self.experts = self.top_k = 0
        """Known with the first rows."""
        self.has_tokens = True
        """Whether every row came with its token's id."""
        self._weights = weights
        self._lookahead = lookahead
        self._buffer_bytes = buffer_bytes
        self._folder = folder
        self._steps = 0
        self._ids: np.dtype[Any] = np.dtype(np.uint8)
        self._spool: Spool | None = None

    def add(self, rows: Routed, experts: int) -> None:
        """Adds a forward pass, the next step, of a model of so many experts a layer."""
        if not len(rows.ids):
            return
        spool = self._spool or self._open(rows, experts)
        self._check(rows, experts)
        spool.append(rows.sequence.astype(np.int64), self._columns(rows))
        self._steps += 1

    def arrays(self) -> list[Array]:
        """What was added, ready to be written."""
        spool = self._spool
        if spool is None:
            raise RecorderError("nothing was recorded: no token went through the model")
        tokens = spool.rows
        arrays = [
            Array(
                column.name,
                column.dtype,
                (tokens, *column.shape),
                partial(spool.blocks, column.name),
            )
            for column in self._layout()
            if column.name != "token_id" or self.has_tokens
            if not column.name.startswith("predicted_ids")
        ]
        if self._lookahead:
            shape = (self._lookahead, tokens, self.layers, self.top_k)
            names = [f"predicted_ids.{ahead}" for ahead in range(self._lookahead)]
            arrays.append(
                Array("predicted_ids", self._ids, shape, partial(_chained, spool, names))
            )
        return arrays

    def weights_fact(self) -> dict[str, str]:
        """For `info`: how weights were kept."""
        if self._weights is None:
            return {}
        how = "round(255 w)" if self._weights == "u8" else "w"
        return {"weights": f"{self._weights} = {how}, w as applied to the experts' outputs"}

    def tokens_fact(self) -> dict[str, str]:
        """For `info`: why there are no token ids, where there are none."""
        if self.has_tokens:
            return {}
        return {"token_id": "not recorded: the model was given embeddings"}

    def close(self) -> None:
        """Gives temporary files back."""
        if self._spool is not None:
            self._spool.close()

    def _open(self, rows: Routed, experts: int) -> Spool:
        _, self.layers, self.top_k = rows.ids.shape
        self.experts = experts
        # 255 stands for "none" among one-byte predictions; one rule for all ids.
        self._ids = np.dtype(np.uint8 if experts <= 255 else np.uint16)
        self._spool = Spool(self._layout(), self._buffer_bytes, self._folder)
        return self._spool

    def _layout(self) -> list[Column]:
        shape = (self.layers, self.top_k)
        columns = [Column("expert_ids", self._ids, shape)]
        if self._weights is not None:
            columns.append(Column("expert_weights", WEIGHTS[self._weights], shape))
        for ahead in range(self._lookahead):
            columns.append(Column(f"predicted_ids.{ahead}", self._ids, shape))
        return columns + _PLACES

    def _check(self, rows: Routed, experts: int) -> None:
        if rows.ids.shape[1:] != (self.layers, self.top_k) or experts != self.experts:
            raise RecorderError("the number of experts or of those chosen changed on the way")
        if rows.ids.min() < 0 or rows.ids.max() >= self.experts:
            raise RecorderError(
                f"a router chose experts {rows.ids.min()} to {rows.ids.max()} of "
                f"{self.experts}: under expert parallelism ids are local; use one process"
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

    def _columns(self, rows: Routed) -> Mapping[str, npt.NDArray[Any]]:
        count = len(rows.ids)
        if rows.token_id is None:
            self.has_tokens = False
        tokens = np.zeros(count) if rows.token_id is None else rows.token_id
        values: dict[str, npt.NDArray[Any]] = {
            "expert_ids": rows.ids.astype(self._ids),
            "sequence": rows.sequence.astype(np.uint32),
            "position": rows.position.astype(np.uint32),
            "token_id": tokens.astype(np.uint32),
            "phase": rows.phase,
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


def _chained(spool: Spool, names: Iterable[str]) -> Iterator[bytes]:
    return chain.from_iterable(spool.blocks(name) for name in names)


def check_facts(extra: Mapping[str, Any], own: Iterable[str]) -> None:
    """Refuses facts for `info` that are no JSON, or that the recorder states itself."""
    taken = sorted(set(extra) & set(own))
    if taken:
        raise RecorderError(f"info: {', '.join(taken)} are the recorder's own keys")
    try:
        # NaN and Infinity are no JSON, though Python writes them.
        json.dumps(extra, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise RecorderError(f"info: not JSON: {error}") from error
