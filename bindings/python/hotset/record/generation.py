"""Knows when the model runs inside `generate()`, and how.

`generate` is wrapped while a recording runs. That tells prompts from generated tokens
exactly, sequences that have ended from those that run on, and refuses ways of generating
whose rows would not be one sequence's tokens in order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from .errors import RecorderError


@dataclass
class Generation:
    """One call of `generate()` in progress."""

    prompt_columns: int
    """Columns of the batch that are prompt, padding included."""
    end_tokens: frozenset[int]
    """A sequence that is fed one of these after its prompt has ended."""
    mask: npt.NDArray[np.bool_] | None
    """The attention mask as passed, `[prompts, columns]`."""
    copies: int
    """Sequences a prompt (`num_return_sequences`)."""
    finished: npt.NDArray[np.bool_] | None = None
    """Sequences of the batch that have ended."""


class GenerateWatch:
    """Wraps `generate` of a model and of the models in it, until `stop`."""

    def __init__(self, model: nn.Module, on_return: Callable[[int | None], None]) -> None:
        """`on_return` gets the columns of what `generate` returned, where it tells."""
        self.current: Generation | None = None
        self._on_return = on_return
        self._wrapped: list[nn.Module] = []
        for module in model.modules():
            generate: Any = getattr(module, "generate", None)
            if callable(generate):
                if "generate" in vars(module):
                    self.stop()
                    raise RecorderError(
                        f"generate of {type(module).__name__} is wrapped already: one "
                        "recorder a model at a time"
                    )
                vars(module)["generate"] = self._wrapper(module, generate)
                self._wrapped.append(module)

    def stop(self) -> None:
        """Takes the wrappers off."""
        for module in self._wrapped:
            del vars(module)["generate"]
        self._wrapped.clear()

    def _wrapper(self, owner: nn.Module, generate: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(generate)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            if self.current is not None:
                return generate(*args, **kwargs)
            self.current = _generation(owner, args, kwargs)
            columns = None
            try:
                result = generate(*args, **kwargs)
                sequences = getattr(result, "sequences", result)
                # With embeddings as the prompt, only new tokens are returned.
                if isinstance(sequences, torch.Tensor) and "inputs_embeds" not in kwargs:
                    columns = int(sequences.shape[1])
                return result
            finally:
                self.current = None
                self._on_return(columns)

        return recorded


def _generation(owner: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Generation:
    given = kwargs.get("generation_config", args[1] if len(args) > 1 else None)
    default = getattr(owner, "generation_config", None)

    def setting(name: str) -> Any:
        if name in kwargs:
            return kwargs[name]
        values = (getattr(config, name, None) for config in (given, default))
        return next((value for value in values if value is not None), None)

    _refuse(setting)
    prompt = kwargs.get("input_ids", kwargs.get("inputs", args[0] if args else None))
    if kwargs.get("inputs_embeds") is not None:
        prompt = kwargs["inputs_embeds"]
    mask = kwargs.get("attention_mask")
    mask = mask if isinstance(mask, torch.Tensor) and mask.ndim == 2 else None
    columns = [int(tensor.shape[1]) for tensor in (prompt, mask) if tensor is not None]
    ends = _tokens(setting("eos_token_id"))
    if setting("stop_strings") or setting("stopping_criteria"):
        ends |= _tokens(setting("pad_token_id"))
    return Generation(
        # Without a prompt, generate() begins with one token of its own.
        prompt_columns=max(columns, default=1),
        end_tokens=ends,
        mask=None if mask is None else mask.cpu().numpy().astype(bool),
        copies=setting("num_return_sequences") or 1,
    )


def _tokens(value: Any) -> frozenset[int]:
    if value is None:
        return frozenset()
    if isinstance(value, torch.Tensor):
        value = value.tolist()
    return frozenset(value if isinstance(value, (list, tuple)) else [value])


def _refuse(setting: Callable[[str], Any]) -> None:
    def refuse(what: str, why: str) -> None:
        raise RecorderError(f"{what} cannot be recorded: {why}")

    if (setting("num_beams") or 1) > 1 or setting("force_words_ids"):
        refuse(
            "beam search",
            "beams swap places between steps, so the rows of one place in the batch are not "
            "one sequence; set num_beams=1",
        )
    for name in ("assistant_model", "prompt_lookup_num_tokens", "assistant_early_exit"):
        if setting(name) is not None:
            refuse(
                f"assisted generation ({name})",
                "rejected drafts leave rows of tokens that are in no sequence; generate "
                "without it",
            )
    if setting("use_mtp"):
        refuse("multi-token prediction", "rejected drafts leave rows; set use_mtp=False")
    if (setting("penalty_alpha") or 0) > 0:
        refuse("contrastive search", "it runs candidates that are not kept")
    if (setting("guidance_scale") or 1) != 1:
        refuse("guidance_scale", "it runs every token a second time without the prompt")
    if setting("custom_generate") is not None:
        refuse("custom_generate", "what it runs is not known; call the model yourself")
    if setting("use_cache") is False:
        refuse(
            "generation without a KV cache",
            "each step runs the whole text again, so its rows would repeat; leave use_cache on",
        )
    static = str(setting("cache_implementation") or "").startswith("static")
    if (static or setting("compile_config")) and not setting("disable_compile"):
        refuse("compiled generation", "hooks need eager steps; pass disable_compile=True")
