"""Arrays to a file, streamed: `.npz` (a zip of `.npy`) or `.safetensors`.

Both are written under a temporary name in the same folder and renamed, so the file is
there whole or not at all. The same arrays give the same bytes: no times are stored.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from .errors import RecorderError

SUFFIXES = (".npz", ".safetensors")
"""What a recording's file name may end in."""

_SAFETENSORS_TYPES = {
    "|u1": "U8",
    "<u2": "U16",
    "<u4": "U32",
    "<f2": "F16",
    "<f4": "F32",
}
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Array:
    """An array in C order whose bytes `blocks` gives piece by piece."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    blocks: Callable[[], Iterable[bytes]]

    @property
    def bytes(self) -> int:
        """Bytes of all its elements."""
        return self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))


def check_path(path: Path, overwrite: bool) -> None:
    """Refuses a name of no known format, in no folder, or of a file that is to be kept."""
    if path.suffix not in SUFFIXES:
        raise RecorderError(f"{path}: the name must end in {' or '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise RecorderError(f"{path}: there is no folder {path.parent}")
    if path.exists() and not overwrite:
        raise RecorderError(f"{path} is there already; overwrite=True replaces it")


def write(path: Path, arrays: Sequence[Array], info: str, compress: bool) -> None:
    """Writes the arrays and `info` (JSON text) in the format of the path's suffix."""
    with _renamed_when_whole(path) as file:
        if path.suffix == ".npz":
            _write_npz(file, arrays, info, compress)
        else:
            _write_safetensors(file, arrays, info)


@contextmanager
def _renamed_when_whole(path: Path) -> Iterator[IO[bytes]]:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _copy(array: Array, file: IO[bytes]) -> None:
    written = sum(file.write(block) for block in array.blocks())
    if written != array.bytes:
        raise RecorderError(f"{array.name}: {written} bytes, expected {array.bytes}")


def _write_npz(file: IO[bytes], arrays: Sequence[Array], info: str, compress: bool) -> None:
    text = info.encode()
    described = Array("info", np.dtype(np.uint8), (len(text),), lambda: [text])
    with zipfile.ZipFile(file, "w", allowZip64=True) as archive:
        for array in (*arrays, described):
            entry = zipfile.ZipInfo(f"{array.name}.npy", _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
            entry.file_size = array.bytes
            entry.external_attr = 0o644 << 16
            header = {
                "descr": np.lib.format.dtype_to_descr(array.dtype),
                "fortran_order": False,
                "shape": array.shape,
            }
            with archive.open(entry, "w") as member:
                np.lib.format.write_array_header_1_0(member, header)
                _copy(array, member)


def _write_safetensors(file: IO[bytes], arrays: Sequence[Array], info: str) -> None:
    # Widest elements first: then every tensor begins at a multiple of its element.
    ordered = sorted(arrays, key=lambda array: -array.dtype.itemsize)
    header: dict[str, Any] = {"__metadata__": {"info": info}}
    end = 0
    for array in ordered:
        start, end = end, end + array.bytes
        header[array.name] = {
            "dtype": _SAFETENSORS_TYPES[array.dtype.str],
            "shape": list(array.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little"))
    file.write(text)
    for array in ordered:
        _copy(array, file)
