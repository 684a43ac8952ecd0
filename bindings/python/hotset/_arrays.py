"""Arrays as a trace takes them: in place where they can be, checked with the place of what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ._native import HotsetError

# What is none in a column of 32 bits.
_MOST = 0xFFFF_FFFF


def _read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array


def _in_order(array: Any) -> Any:
    """The same array where it is contiguous and of this machine's byte order, else a copy."""
    if array.flags.c_contiguous and array.dtype.isnative:
        return array
    return numpy.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))


def _place(array: Any, wrong: Any) -> tuple[str, Any]:
    place = tuple(int(index) for index in numpy.argwhere(wrong)[0])
    return "[" + ", ".join(map(str, place)) + "]", array[place]


def ids_in_place(ids: Any) -> tuple[Any, int, int, int]:
    """The ids as uint8 or uint16 [tokens, layers, top_k], with the three numbers."""
    array = numpy.asarray(ids)
    if not numpy.issubdtype(array.dtype, numpy.integer):
        raise TypeError(
            f"ids: an array of {array.dtype}, but expert ids are whole numbers: give an integer type"
        )
    if array.ndim != 3:
        raise HotsetError(f"ids: shape {list(array.shape)}, but it must be [tokens, layers, top_k]")
    if array.size == 0:
        raise HotsetError(f"ids: shape {list(array.shape)} has nothing in it")
    if array.dtype not in (numpy.uint8, numpy.uint16):
        wrong = (array < 0) | (array > 0xFFFF)
        if wrong.any():
            place, value = _place(array, wrong)
            raise HotsetError(f"ids{place} is {value}: expert ids are 0 to 65535")
        array = array.astype(numpy.uint8 if array.max() < 256 else numpy.uint16)
    array = _in_order(array)
    tokens, layers, top_k = (int(length) for length in array.shape)
    return _read_only(array), tokens, layers, top_k


def weights_in_place(weights: Any, shape: tuple[int, ...]) -> tuple[Any, bool]:
    """The weights as float32, uint8, or the bits of float16; whether they are bfloat16's."""
    if weights is None:
        return None, False
    array = numpy.asarray(weights)
    if array.dtype == numpy.float64:
        array = array.astype(numpy.float32)
    if (
        array.dtype not in (numpy.float32, numpy.float16, numpy.uint8)
        and array.dtype.name != "bfloat16"
    ):
        raise TypeError(
            f"weights: an array of {array.dtype}; give float32, float16, bfloat16 or uint8 (255 is 1.0)"
        )
    if array.shape != shape:
        raise HotsetError(f"weights: shape {list(array.shape)}, but ids have {list(shape)}")
    if array.dtype != numpy.uint8:
        # In pieces: a mask of all of it would be memory of its size.
        for first in range(0, len(array), 1 << 16):
            piece = array[first : first + (1 << 16)].astype(numpy.float32)
            wrong = ~numpy.isfinite(piece)
            if wrong.any():
                (row, *rest), value = numpy.argwhere(wrong)[0], piece[wrong][0]
                where = ", ".join(str(int(index)) for index in (row + first, *rest))
                raise HotsetError(f"weights[{where}] is {value}: weights are finite")
    array = _read_only(_in_order(array))
    bf16 = array.dtype.name == "bfloat16"
    return (array.view(numpy.uint16) if bf16 or array.dtype == numpy.float16 else array), bf16


def column(name: str, given: Any, tokens: int, most: int = _MOST) -> Any:
    """A column of whole numbers, one a token; None stays None."""
    if given is None:
        return None
    array = numpy.asarray(given)
    if not numpy.issubdtype(array.dtype, numpy.integer):
        raise TypeError(f"{name}: an array of {array.dtype}; give an integer type")
    if array.shape != (tokens,):
        raise HotsetError(f"{name}: shape {list(array.shape)} for {tokens} tokens")
    wrong = (array < 0) | (array > most)
    if wrong.any():
        place, value = _place(array, wrong)
        raise HotsetError(f"{name}{place} is {value}: it must be 0 to {most}")
    return array.astype(numpy.uint8 if most < 256 else numpy.uint32)


def sequences_of(
    given: Any, labels: Sequence[str] | None, phases: Any, tokens: int
) -> list[tuple[int, str, int, int, int]] | None:
    """(id, label, prompt tokens, first row, row behind the last) of each sequence."""
    numbers = column("sequence", given, tokens)
    if numbers is None and labels is None:
        return None
    if numbers is None:
        numbers = numpy.zeros(tokens, numpy.uint32)
    changes = numpy.flatnonzero(numbers[1:] != numbers[:-1]) + 1
    starts = [0, *changes.tolist()]
    ends = [*changes.tolist(), tokens]
    if len(set(numbers[starts].tolist())) != len(starts):
        raise HotsetError("sequence: tokens of one sequence must follow each other")
    if labels is not None and len(labels) != len(starts):
        raise HotsetError(f"labels: {len(labels)} for {len(starts)} sequences")
    found = []
    for index, (start, end) in enumerate(zip(starts, ends)):
        prompt = 0 if phases is None else int((phases[start:end] == 0).sum())
        label = "" if labels is None else str(labels[index])
        found.append((int(numbers[start]), label, prompt, start, end))
    return found
