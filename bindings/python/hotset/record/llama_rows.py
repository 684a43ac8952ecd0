"""From what llama.cpp's graphs said to rows that are whole.

Each pass is laid over the batch that it ran. A token becomes a row if every layer chose for
it: llama.cpp runs the last layer for those tokens alone whose logits are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import RecorderError
from .llama_batch import Batch, Ints, rows_of
from .llama_graph import Pass


@dataclass(frozen=True)
class Rows:
    """The whole rows of a pass."""

    places: Ints
    """`[rows]`: their places in the batch."""
    ids: npt.NDArray[Any]
    """`[rows, layers, top-k]`, the largest weight first."""
    weights: npt.NDArray[np.float32]
    """As `ids`; ones where none were read."""


def placed(passes: list[Pass], batch: Batch) -> Iterator[tuple[Pass, Ints]]:
    """Each pass, and the places in the batch of its tokens; each place once."""
    left = np.ones(len(batch), bool)
    for one in passes:
        count = max(len(ids) for ids in one.ids.values())
        places = rows_of(one.tokens, one.positions, count, batch, np.flatnonzero(left))
        left[places] = False
        yield one, places
    if left.any():
        raise RecorderError(f"{left.sum()} of {len(batch)} tokens of a batch were not seen")


def complete(one: Pass, places: Ints, batch: Batch, weights: bool) -> Rows:
    """The rows of a pass's tokens that every layer chose for."""
    outputs = batch.outputs[places]
    sizes = {len(ids) for ids in one.ids.values()}
    if not sizes <= {len(places), int(outputs.sum())}:
        raise RecorderError(
            f"layers chose for {sorted(sizes)} of {len(places)} tokens of a pass, of which "
            f"{outputs.sum()} are outputs"
        )
    kept = outputs if len(sizes) > 1 else np.ones(len(places), bool)
    ids = _side_by_side(one.ids, kept)
    if not weights:
        return Rows(places[kept], ids, np.ones(ids.shape, np.float32))
    if sorted(one.weights) != sorted(one.ids):
        raise RecorderError("a layer has no weights; record with weights=None")
    applied = _side_by_side(one.weights, kept)
    # Some routers choose by other scores than they weigh by; a file has the largest first.
    order = np.argsort(-applied, axis=-1, kind="stable")
    ids, applied = (np.take_along_axis(part, order, axis=-1) for part in (ids, applied))
    return Rows(places[kept], ids, applied)


def _side_by_side(layers: Mapping[int, npt.NDArray[Any]], kept: Any) -> npt.NDArray[Any]:
    """`[rows, layers, top-k]` from one array a layer; full ones lose what is not kept."""
    parts = [layers[layer] for layer in sorted(layers)]
    if len({part.shape[-1] for part in parts}) > 1:
        raise RecorderError("layers choose different numbers of experts; a file has one")
    return np.stack([part[kept] if len(part) == len(kept) else part for part in parts], axis=1)
