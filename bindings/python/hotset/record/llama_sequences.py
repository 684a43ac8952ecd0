"""Which recorded sequence each token of a llama.cpp batch belongs to, and its phase.

llama.cpp's sequence ids are places in its KV cache and are used again. A recorded sequence
goes on where it stopped; a token anywhere else, after a cut or a copy, begins another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import RecorderError
from .llama_batch import Batch
from .table import DECODE, PREFILL


@dataclass
class Sequence:
    """A sequence of the recording."""

    label: str
    number: int | None = None
    """Given with its first row."""


@dataclass
class _Place:
    """A sequence in the KV cache."""

    sequence: Sequence
    next: int
    """The position after its last token."""
    sampled: bool
    """Whether logits of its last token were asked for."""


@dataclass(frozen=True)
class Followed:
    """The tokens of a batch, as the recording has them."""

    sequences: npt.NDArray[Any]
    """`[n]`: a `Sequence` each."""
    phases: npt.NDArray[np.uint8]
    """`[n]`."""


class Sequences:
    """The sequences in the KV cache, and the names of those to come."""

    def __init__(self, labels: list[str]) -> None:
        """Takes from `labels` as sequences begin."""
        self.names: list[str] = []
        """Labels of the sequences that have rows, by number."""
        self._labels = labels
        self._places: dict[int, _Place] = {}

    def follow(self, batch: Batch, phase: int | None) -> Followed:
        """Moves on by a batch that ran; `phase` where the caller knows it of all its tokens.

        Else a token alone, whose predecessor's logits were asked for, is a generated one.
        """
        sequences = np.empty(len(batch), object)
        phases = np.empty(len(batch), np.uint8)
        for number, rows in batch.places().items():
            positions = batch.positions[rows]
            if (np.diff(positions) <= 0).any():
                raise RecorderError(
                    f"positions {positions.tolist()[:8]} of sequence {number} do not rise"
                )
            place = self._places.get(number)
            goes_on = place is not None and place.next == positions[0]
            alone = len(rows) == 1 and positions[0] > 0
            if place is None or not goes_on:
                label = self._labels.pop(0) if self._labels else ""
                place = self._places[number] = _Place(Sequence(label), 0, True)
            generated = DECODE if alone and place.sampled else PREFILL
            phases[rows] = generated if phase is None else phase
            sequences[rows] = place.sequence
            place.next = int(positions[-1]) + 1
            place.sampled = bool(batch.outputs[rows[-1]])
        return Followed(sequences, phases)

    def numbers(self, sequences: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """`[rows]`: numbers of the rows' sequences, new ones for those without a row before."""
        for sequence in sequences:
            if sequence.number is None:
                sequence.number = len(self.names)
                self.names.append(sequence.label)
        return np.array([sequence.number for sequence in sequences], np.int64)

    def forget(self, numbers: list[int] | None = None) -> None:
        """The KV cache of these sequences (None: of all) is no longer what was recorded."""
        for number in list(self._places) if numbers is None else numbers:
            self._places.pop(number, None)
