"""Tensors of a running llama.cpp, read through ctypes.

ggml exports no function for a tensor's shape and strides, so they are read from its struct.
Before the first is read, the layout is proven on tensors that ggml itself makes.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import RecorderError


class Tensor(ctypes.Structure):
    """`struct ggml_tensor`, as it has been since 2024."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("buffer", ctypes.c_void_p),
        ("ne", ctypes.c_int64 * 4),
        ("nb", ctypes.c_size_t * 4),
        ("op", ctypes.c_int),
        ("op_params", ctypes.c_int32 * 16),
        ("flags", ctypes.c_int32),
        ("src", ctypes.c_void_p * 10),
        ("view_src", ctypes.c_void_p),
        ("view_offs", ctypes.c_size_t),
        ("data", ctypes.c_void_p),
        ("name", ctypes.c_char * 64),
        ("extra", ctypes.c_void_p),
        ("padding", ctypes.c_char * 8),
    ]


NAME = Tensor.name.offset
"""Where a tensor's name begins."""


class InitParams(ctypes.Structure):
    """`struct ggml_init_params`."""

    _fields_ = [
        ("mem_size", ctypes.c_size_t),
        ("mem_buffer", ctypes.c_void_p),
        ("no_alloc", ctypes.c_bool),
    ]


_POINTER, _I64, _SIZE = ctypes.c_void_p, ctypes.c_int64, ctypes.c_size_t
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "ggml_init": (_POINTER, [InitParams]),
    "ggml_free": (None, [_POINTER]),
    "ggml_new_tensor_2d": (_POINTER, [_POINTER, ctypes.c_int, _I64, _I64]),
    "ggml_view_2d": (_POINTER, [_POINTER, _POINTER, _I64, _I64, _SIZE, _SIZE]),
    "ggml_get_rows": (_POINTER, [_POINTER, _POINTER, _POINTER]),
    "ggml_set_name": (_POINTER, [_POINTER, ctypes.c_char_p]),
    "ggml_type_name": (ctypes.c_char_p, [ctypes.c_int]),
    "ggml_nbytes": (_SIZE, [_POINTER]),
    "ggml_backend_tensor_get": (None, [_POINTER, _POINTER, _SIZE, _SIZE]),
}
_F32, _I32 = 0, 26
_TYPES = {_F32: np.dtype(np.float32), _I32: np.dtype(np.int32)}


class Ggml:
    """The functions of a ggml library, and its tensors' contents."""

    def __init__(self, library: Any, version: str) -> None:
        """Proves the layout; `version` names the package in the error if it differs."""
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, name, None)
            if function is None:
                raise _unknown(version, f"it exports no {name}")
            function.restype, function.argtypes = result, arguments
        self._library = library
        self._get = library.ggml_backend_tensor_get
        self._prove(version)

    def array(self, address: int) -> npt.NDArray[Any]:
        """A copy of an f32 or i32 tensor or view, wherever its buffer is.

        Shape `[ne3, ne2, ne1, ne0]`: numpy's order of dimensions.
        """
        tensor = Tensor.from_address(address)
        dtype = _TYPES.get(tensor.type)
        if dtype is None:
            raise RecorderError(
                f"{name(address).decode(errors='replace')} is of ggml type {tensor.type}; f32 "
                "and i32 are read"
            )
        shape, strides = tensor.ne[::-1], tensor.nb[::-1]
        if 0 in shape:
            return np.empty(shape, dtype)
        # A view of the first k of n columns spans all but the end of its rows.
        span = dtype.itemsize + sum((n - 1) * step for n, step in zip(shape, strides))
        if min(shape) < 0 or span != self._library.ggml_nbytes(address):
            raise RecorderError(f"a tensor of {shape} elements and {strides} bytes cannot be")
        raw = np.empty(span, np.uint8)
        self._get(address, raw.ctypes.data, 0, span)
        return np.ndarray(shape, dtype, raw, strides=strides).copy()

    def _prove(self, version: str) -> None:
        """Makes a tensor, a view and an operation, and looks whether they read as made."""
        for number, dtype in ((_F32, b"f32"), (_I32, b"i32")):
            if self._library.ggml_type_name(number) != dtype:
                raise _unknown(version, f"type {number} is not {dtype.decode()}")
        context = self._library.ggml_init(InitParams(1 << 16, None, False))
        if not context:
            raise _unknown(version, "ggml_init gave nothing")
        try:
            whole = self._library.ggml_new_tensor_2d(context, _I32, 7, 5)
            view = self._library.ggml_view_2d(context, whole, 3, 5, 28, 8)
            table = self._library.ggml_new_tensor_2d(context, _F32, 11, 7)
            ids = self._library.ggml_new_tensor_2d(context, _I32, 5, 1)
            rows = self._library.ggml_get_rows(context, table, ids)
            self._library.ggml_set_name(view, b"hotset-probe-1")
            found, base = Tensor.from_address(view), Tensor.from_address(whole)
            last = Tensor.from_address(rows)
            proven = (
                found.type == _I32
                and (found.ne[:], found.nb[:]) == ([3, 5, 1, 1], [4, 28, 140, 140])
                and (found.view_src, found.view_offs) == (whole, 8)
                and base.data is not None
                and found.data == base.data + 8
                and name(view) == b"hotset-probe-1"
                and last.src[:3] == [table, ids, None]
                and (last.type, last.ne[:]) == (_F32, [11, 5, 1, 1])
            )
        finally:
            self._library.ggml_free(context)
        if not proven:
            raise _unknown(version, "a tensor that was made to be read reads otherwise")


def name(address: int) -> bytes:
    """A tensor's name."""
    return ctypes.string_at(address + NAME, 64).split(b"\0", 1)[0]


def sources(address: int) -> list[int]:
    """The first two tensors that an operation works on, where it has any."""
    return [source for source in Tensor.from_address(address).src[:2] if source]


def viewed_extent(address: int) -> int | None:
    """The innermost extent of the tensor that a view looks at; None where it is no view."""
    source = Tensor.from_address(address).view_src
    return None if source is None else int(Tensor.from_address(source).ne[0])


def _unknown(version: str, why: str) -> RecorderError:
    return RecorderError(
        f"llama_cpp {version}: its ggml_tensor is laid out in a way that this recorder does "
        f"not know ({why}); llama_cpp_python 0.3.36 is one that it knows"
    )
