"""Columns of a recording on disk, read back one sequence after another.

Rows arrive in the order in which the engine ran them, several sequences mixed. A buffer
of rows is sorted by sequence and appended to one unnamed temporary file a column; an
index of runs remembers where each sequence went on. Memory holds the buffer and the index.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[Any]

BLOCK_BYTES = 1 << 18
"""The most that is read back at once."""


@dataclass(frozen=True)
class Column:
    """A column: the type of its elements and the shape of one row."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...] = ()

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))


class Spool:
    """Rows in, whole columns out, each sequence's rows together and in order.

    Memory: three times the larger of `buffer_bytes` and the last `append`, about 100 bytes
    for each sequence in each buffer that was written, and a few blocks while reading.
    """

    def __init__(
        self, columns: Sequence[Column], buffer_bytes: int, folder: Path | None
    ) -> None:
        """Opens a temporary file a column in `folder` (None: the system's choice)."""
        self._columns = {column.name: column for column in columns}
        self._row_bytes = sum(column.row_bytes for column in columns)
        self._buffer_bytes = buffer_bytes
        self._waiting: list[tuple[Rows, Mapping[str, Rows]]] = []
        self._waiting_rows = 0
        self._index: list[Rows] = []
        self._written = 0
        self._files: dict[str, IO[bytes]] = {}
        try:
            for name in self._columns:
                self._files[name] = tempfile.TemporaryFile(dir=folder)
        except OSError:
            self.close()
            raise

    @property
    def rows(self) -> int:
        """Rows so far."""
        return self._written + self._waiting_rows

    def append(self, sequences: Rows, values: Mapping[str, Rows]) -> None:
        """Appends rows: the sequence number of each, and the columns `[rows, ...]`."""
        for name, column in self._columns.items():
            expected = (len(sequences), *column.shape)
            if values[name].shape != expected or values[name].dtype != column.dtype:
                found = f"{values[name].shape} of {values[name].dtype}"
                raise ValueError(f"{name}: {found}, not {expected} of {column.dtype}")
        self._waiting.append((sequences, values))
        self._waiting_rows += len(sequences)
        if self._waiting_rows * self._row_bytes >= self._buffer_bytes:
            self._flush()

    def blocks(self, name: str) -> Iterator[bytes]:
        """The bytes of a column, by sequence number, then in the order of arrival."""
        self._flush()
        row_bytes, file = self._columns[name].row_bytes, self._files[name]
        for start, count in self._runs():
            file.seek(start * row_bytes)
            left = count * row_bytes
            while left:
                block = file.read(min(left, BLOCK_BYTES))
                if not block:
                    raise OSError(f"the temporary file of {name} lost {left} bytes")
                left -= len(block)
                yield block

    def close(self) -> None:
        """Gives the temporary files back."""
        for file in self._files.values():
            file.close()
        self._waiting.clear()

    def _flush(self) -> None:
        if not self._waiting_rows:
            return
        sequences = np.concatenate([rows for rows, _ in self._waiting])
        order = np.argsort(sequences, kind="stable")
        for name, file in self._files.items():
            column = np.concatenate([values[name] for _, values in self._waiting])
            file.seek(0, 2)
            file.write(np.ascontiguousarray(column[order]).tobytes())
        numbers, starts, counts = np.unique(
            sequences[order], return_index=True, return_counts=True
        )
        run = np.stack([numbers, starts + self._written, counts], axis=1)
        self._index.append(run.astype(np.int64))
        self._written += self._waiting_rows
        self._waiting.clear()
        self._waiting_rows = 0

    def _runs(self) -> Iterator[tuple[int, int]]:
        """Start row and rows of each stretch to read, neighbours joined."""
        if not self._index:
            return
        index = np.concatenate(self._index)
        index = index[np.lexsort((index[:, 1], index[:, 0]))]
        ends = index[:, 1] + index[:, 2]
        first = np.flatnonzero(np.append(True, index[1:, 1] != ends[:-1]))
        last = np.append(first[1:], len(index)) - 1
        for begin, end in zip(first, last):
            start = int(index[begin, 1])
            yield start, int(ends[end]) - start
