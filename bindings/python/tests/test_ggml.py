"""Reading tensors of llama.cpp: by their strides, and only from a layout that is proven."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import numpy as np
import pytest

from hotset.record import RecorderError
from hotset.record.ggml import Ggml, Tensor
from hotset.record.llama_cpp import Recorder

from .fake_llama import Library


def test_a_struct_of_another_layout_is_refused_before_anything_is_read():
    class Moved(ctypes.Structure):
        _fields_ = [*Tensor._fields_[:4], ("new", ctypes.c_int64), *Tensor._fields_[4:]]

    with pytest.raises(RecorderError, match="laid out in a way that this recorder does not"):
        Ggml(Library(Moved), "9.9")
    older = Library()
    del older.ggml_view_2d
    with pytest.raises(RecorderError, match="llama_cpp 9.9.*exports no ggml_view_2d"):
        Ggml(older, "9.9")


def test_tensors_are_read_by_their_strides():
    library = Library()
    ggml, memory = Ggml(library, "fake"), library.memory
    whole = np.arange(35, dtype=np.int32).reshape(5, 7)
    base = memory.tensor("whole", whole)
    view = library.ggml_view_2d(None, base, 3, 5, 28, 8)
    assert np.array_equal(ggml.array(view)[0, 0], whole[:, 2:5])
    assert ggml.array(memory.tensor("none", np.zeros((0, 4), np.int32))).shape == (1, 1, 0, 4)
    Tensor.from_address(view).ne[1] = -1
    with pytest.raises(RecorderError, match="cannot be"):
        ggml.array(view)
    memory.kept[base][0].type = 2
    with pytest.raises(RecorderError, match="whole is of ggml type 2"):
        ggml.array(base)


def test_without_the_package_the_way_to_it_is_named(tmp_path, monkeypatch):
    for name in ("llama_cpp", "llama_cpp.llama_cpp"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(RecorderError, match="pip install llama-cpp-python"):
        Recorder(tmp_path / "r.npz").start()


def test_torch_is_not_imported():
    code = "import sys, hotset.record.llama_cpp; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
