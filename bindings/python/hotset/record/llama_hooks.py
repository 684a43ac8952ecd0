"""Puts a recorder between a program and llama.cpp, by replacing functions of `llama_cpp`.

The package's classes call llama.cpp through its module, so replacing what the module holds
reaches them and programs alike. All is put back when the recording ends.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from .errors import RecorderError
from .ggml import Ggml
from .table import DECODE, PREFILL


class Package:
    """The parts of `llama_cpp` that a recorder uses."""

    def __init__(self) -> None:
        """Imports it, and proves that its tensors can be read."""
        try:
            self.api: Any = importlib.import_module("llama_cpp.llama_cpp")
        except ImportError as error:
            raise RecorderError(
                f"llama_cpp cannot be imported ({error}): pip install " "llama-cpp-python"
            ) from error
        self.top: Any = importlib.import_module("llama_cpp")
        self.version = str(getattr(self.top, "__version__", "of no stated version"))
        for name in (
            "llama_decode",
            "llama_init_from_model",
            "llama_model_meta_val_str",
            "ggml_backend_sched_eval_callback",
            "llama_memory_seq_pos_max",
        ):
            if not hasattr(self.api, name):
                raise RecorderError(
                    f"llama_cpp {self.version} has no {name}; 0.3.36 is one that is known"
                )
        self.ggml = Ggml(self._library(), self.version)

    def _library(self) -> Any:
        """A handle of our own, so that no one's declarations of arguments change."""
        path = Path(self.api._lib._name)
        # Windows looks a function up in one library, others in all that it depends on too.
        names = [path, *(path.with_name(n) for n in ("ggml-base.dll", "libggml-base.so"))]
        for name in names:
            try:
                library = ctypes.CDLL(str(name))
            except OSError:
                continue
            if hasattr(library, "ggml_backend_tensor_get"):
                return library
        raise RecorderError(
            f"llama_cpp {self.version}: no ggml functions in or beside {path.name}"
        )

    def fact(self, model: Any, key: str) -> str | None:
        """A value of the model's GGUF metadata."""
        buffer = ctypes.create_string_buffer(512)
        size = self.api.llama_model_meta_val_str(model, key.encode(), buffer, len(buffer))
        return None if size < 0 else buffer.value.decode(errors="replace")

    def count(self, model: Any, key: str) -> int:
        """A number of the architecture's own metadata; 0 where there is none."""
        architecture = self.fact(model, "general.architecture")
        value = self.fact(model, f"{architecture}.{key}")
        # Values that differ between layers are written as a list.
        return int(value) if value is not None and value.isdecimal() else 0

    def facts(self, model: Any) -> dict[str, Any]:
        """What a recording states of a model with experts."""
        # Layers that predict further tokens (MTP) do not run with the others.
        layers = self.count(model, "block_count") - self.count(model, "nextn_predict_layers")
        return {
            "model": self.fact(model, "general.name") or "llama.cpp model",
            "experts": self.count(model, "expert_count"),
            "model_layers": layers,
            "architecture": self.fact(model, "general.architecture"),
            "file_type": self.fact(model, "general.file_type"),
        }


class Replacements:
    """Functions that were replaced, to be put back."""

    def __init__(self, package: Package) -> None:
        """Nothing replaced yet."""
        self._package = package
        self._before: list[tuple[Any, str, Any]] = []

    def replace(self, name: str, around: Callable[..., Any]) -> None:
        """A function of the module; `around` gets the one before, then the arguments.

        Where this version has none of the name, there is nothing to do.
        """
        for owner in (self._package.api, self._package.top):
            if hasattr(owner, name):
                self._set(owner, name, around)

    def replace_method(self, name: str, around: Callable[..., Any]) -> None:
        """A method of `Llama`; `around` gets the one before, `self`, then the arguments."""
        owner = getattr(self._package.top, "Llama", None)
        if owner is not None and hasattr(owner, name):
            self._set(owner, name, around)

    def undo(self) -> None:
        """Puts everything back, the last first."""
        while self._before:
            owner, name, before = self._before.pop()
            setattr(owner, name, before)

    def _set(self, owner: Any, name: str, around: Callable[..., Any]) -> None:
        before = getattr(owner, name)

        @functools.wraps(before)
        def replaced(*args: Any, **kwargs: Any) -> Any:
            return around(before, *args, **kwargs)

        self._before.append((owner, name, before))
        setattr(owner, name, replaced)


class Phases:
    """Tells prompts from generated tokens where `Llama` runs them."""

    def __init__(self) -> None:
        """Nothing runs."""
        self.now: int | None = None
        """The phase of what `Llama.eval` runs; None outside it."""
        self._prompt_due = False

    def generating(self, inner: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Around what `Llama.generate` returns: what it runs first is the prompt's rest."""
        self._prompt_due = True
        try:
            return (yield from inner)
        finally:
            self._prompt_due = False

    def evaluating(self, before: Callable[..., Any], llama: Any, tokens: Any) -> Any:
        """Around `Llama.eval`."""
        if getattr(llama, "draft_model", None) is not None:
            raise RecorderError(
                "a draft_model cannot be recorded: rejected drafts leave rows of tokens that "
                "are in no sequence; make the Llama without it"
            )
        prompt = self._prompt_due or len(tokens) != 1 or llama.n_tokens == 0
        self.now, self._prompt_due = PREFILL if prompt else DECODE, False
        try:
            return before(llama, tokens)
        finally:
            self.now = None
