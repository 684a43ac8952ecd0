"""Mean embeddings of each sequence's first prompt: of what goes in, of what comes out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .batches import Batch, Bools
from .errors import RecorderError
from .spool import Column, Spool

Sums = npt.NDArray[np.float64]

NAMES = ("prompt_embedding_in", "prompt_embedding_out")


class PromptMeans:
    """Sums of the batches that still run in memory, means of the others on disk."""

    def __init__(self, dim: int, buffer_bytes: int, folder: Path | None) -> None:
        """Embeddings of `dim` numbers."""
        self.dim = dim
        half = np.dtype(np.float16)
        columns = [Column(name, half, (dim,)) for name in NAMES]
        self.spool = Spool(columns, buffer_bytes, folder)
        self._sums: dict[Batch, tuple[Sums, npt.NDArray[np.int64]]] = {}

    def add(self, batch: Batch, sums: Sums, counts: npt.NDArray[np.int64]) -> None:
        """Adds sums `[in and out, sequences, dim]` of so many tokens of each sequence."""
        if batch in self._sums:
            sums_before, counts_before = self._sums[batch]
            sums, counts = sums + sums_before, counts + counts_before
        self._sums[batch] = (sums, counts)

    def end(self, batch: Batch) -> None:
        """Writes the means of a batch that will not go on."""
        if batch not in self._sums:
            return
        sums, counts = self._sums.pop(batch)
        there = [place for place, number in enumerate(batch.numbers) if number is not None]
        if not there:
            return
        numbers = np.array([batch.numbers[place] for place in there], np.int64)
        means = sums[:, there] / counts[there, None]
        if not (np.abs(means) <= np.finfo(np.float16).max).all():
            raise RecorderError(
                "a prompt's mean embedding is beyond what half precision holds; record with "
                "embeddings=False"
            )
        values = dict(zip(NAMES, means.astype(np.float16)))
        self.spool.append(numbers, values)

    def end_all(self) -> None:
        """Ends every batch."""
        for batch in list(self._sums):
            self.end(batch)


def sums(hidden: Tensor, tokens: Bools) -> Any:
    """`[sequences, dim]`: sums over the marked rows of `[sequences, columns, dim]`."""
    marked = torch.from_numpy(tokens).to(hidden.device).unsqueeze(-1)
    kept = hidden.detach().float().masked_fill(~marked, 0)
    return (
        kept.sum(dim=1, dtype=torch.float64 if kept.device.type != "mps" else None)
        .cpu()
        .numpy()
    )
