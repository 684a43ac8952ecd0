"""The recorder: hooks on a model's routers in, one file of arrays out.

A forward pass of the decoder layers is one step. Each router adds its choice to the step;
when the pass ends, the step's rows go to the spool; when the recording closes, the spool
is streamed into the file.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from . import architecture
from .batches import Batches, Step, past_columns, plan
from .capture import Capture, Rows
from .errors import RecorderError
from .generation import GenerateWatch
from .recording import Recording
from .selection import Scoring, SelectionReader
from .session import Session


class Recorder(Session):
    """Records the routing of a Hugging Face MoE model to `hotset-npz/1`.

    Use it as a context manager around any number of `generate()` calls and forward
    passes. The file appears when the block ends; if it ends by an exception, no file
    does (call `close()` inside the block to keep what there is).

    Example:
        >>> with Recorder(model, "routes.npz") as recorder:  # doctest: +SKIP
        ...     recorder.label("question 1")
        ...     model.generate(**inputs, max_new_tokens=256)

    Args:
        model: The model, in eager mode (not compiled).
        path: What to write, ending in `.npz` or `.safetensors`.
        name: The model's name in the file. Default: as its configuration says.
        weights: Router weights as `"f16"`, `"f32"`, `"u8"` (round(255 w), for weights of
            at most 1) or None.
        lookahead: Record what the next so many layers' routers say of each layer's router
            input (FATE's cross-layer gate). Each costs one more router a layer. Default 0.
        embeddings: Record the mean input embedding and the mean final hidden state of each
            sequence's first prompt.
        info: More facts for the file's `info`, JSON values; not of the recorder's own keys.
        routers: Names of the router modules, where the recorder does not find them.
        scoring: For routers that return logits alone: logits `[tokens, experts]` to weights
            and ids `[tokens, top-k]`.
        compress: Deflate the arrays (`.npz`).
        overwrite: Replace a file that is there.
        buffer_bytes: Rows held in memory before they are written to temporary files.
            Host memory: three times the larger of this and the rows of one forward pass,
            about 100 bytes for each sequence in each buffer written, and 1 MiB.
        temporary: The folder for temporary files. They take the recording's size.

    Raises:
        RecorderError: What cannot be recorded, and why.
    """

    def __init__(
        self,
        model: nn.Module,
        path: str | Path,
        *,
        name: str | None = None,
        weights: str | None = "f16",
        lookahead: int = 0,
        embeddings: bool = False,
        info: Mapping[str, Any] | None = None,
        routers: Sequence[str] | None = None,
        scoring: Scoring | None = None,
        compress: bool = False,
        overwrite: bool = False,
        buffer_bytes: int = 8 << 20,
        temporary: str | Path | None = None,
    ) -> None:
        """Finds the routers and checks the arguments; hooks nothing yet."""
        super().__init__(path, overwrite=overwrite, compress=compress)
        self._model = model
        if any(_compiled(module) for module in model.modules()):
            raise RecorderError(
                "the model is compiled: hooks need eager mode; pass it uncompiled"
            )
        self._architecture = architecture.find(model, routers)
        if not 0 <= lookahead < len(self._architecture.layers):
            raise RecorderError(
                f"lookahead={lookahead}; the model has {len(self._architecture.layers)} layers "
                "that route, so 0 to one less"
            )
        if embeddings and self._architecture.embedding is None:
            raise RecorderError("embeddings: the model has no input embedding that is known")
        self._lookahead = lookahead
        self._embeddings = embeddings
        self._reader = SelectionReader(self._architecture.config, scoring)
        self._recording = Recording(
            self._architecture,
            name=name,
            weights=weights,
            lookahead=lookahead,
            embeddings=embeddings,
            extra=dict(info or {}),
            buffer_bytes=buffer_bytes,
            folder=None if temporary is None else Path(temporary),
        )
        self._batches = Batches(self._labels, on_end=self._recording.end)
        self._capture: Capture | None = None
        self._pending: tuple[Step, Rows] | None = None
        self._hooks: list[Any] = []
        self._watch: GenerateWatch | None = None

    def _hook(self) -> None:
        self._watch = GenerateWatch(self._model, self._generated)
        found = self._architecture
        self._hooks.append(found.trunk.register_forward_pre_hook(self._begin, with_kwargs=True))
        self._hooks.append(found.trunk.register_forward_hook(self._end, with_kwargs=True))
        if self._embeddings and found.embedding is not None:
            self._hooks.append(found.embedding.register_forward_hook(self._embedded))
        for index, layer in enumerate(found.layers):
            hook = self._router_hook(index)
            self._hooks.append(layer.router.register_forward_hook(hook, with_kwargs=True))

    def _unhook(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        if self._watch is not None:
            self._watch.stop()

    def _write(self) -> None:
        self._commit()
        self._recording.write(self._path, self._reader.source, self._compress)

    def _release(self) -> None:
        self._recording.close()

    # The hooks, in the order in which a forward pass calls them.

    def _begin(self, trunk: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.alone()
        self._capture = None
        self._commit()
        inputs = dict(zip(inspect.signature(trunk.forward).parameters, args), **kwargs)
        ids, embeds = inputs.get("input_ids"), inputs.get("inputs_embeds")
        if ids is None and embeds is None:
            raise RecorderError("the model runs on neither input_ids nor inputs_embeds")
        given: Any = ids if embeds is None else embeds
        shape = (int(given.shape[0]), int(given.shape[1]))
        # transformers renames past_key_values to cache.
        caches = (inputs.get(name) for name in ("cache", "past_key_values"))
        cache = next((cache for cache in caches if cache is not None), None)
        generation = None if self._watch is None else self._watch.current
        copies = 1 if generation is None else generation.copies
        past = past_columns(cache, inputs)
        batch = self._batches.of(cache, past, shape[0], copies)
        step = plan(batch, shape, inputs, generation)
        self._capture = Capture(step, self._architecture.layers, self._lookahead, self._reader)
        self._capture.cache = cache
        self._capture.embedded = embeds

    def _embedded(self, module: nn.Module, args: tuple[Any, ...], result: Tensor) -> None:
        if self._capture is not None and self._capture.embedded is None:
            self._capture.embedded = result

    def _router_hook(self, index: int) -> Any:
        def routed(
            router: nn.Module,
            args: tuple[Any, ...],
            kwargs: dict[str, Any],
            result: Any,
        ) -> None:
            if self._capture is not None:
                self._capture.routed(index, args, kwargs, result)

        return routed

    def _end(
        self,
        trunk: nn.Module,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        result: Any,
    ) -> None:
        capture, self._capture = self._capture, None
        if capture is None:
            return
        hidden = getattr(result, "last_hidden_state", None)
        if hidden is None:
            hidden = result[0]
        rows = capture.finish(hidden if self._embeddings else None)
        batch = capture.step.batch
        batch.remember(_cache_after(capture.cache, result))
        self._pending = (capture.step, rows)

    def _generated(self, columns: int | None) -> None:
        """After `generate()`: a pass beyond what it returned was undone by it."""
        if self._pending is not None and columns is not None:
            step, _ = self._pending
            if step.batch.columns + step.real.shape[1] >= columns > step.batch.columns > 0:
                self._pending = None
        self._commit()

    def _commit(self) -> None:
        """Keeps the last step, which no one can undo any more."""
        if self._pending is not None:
            step, rows = self._pending
            self._pending = None
            self._recording.add(step, rows)


def _cache_after(given: Any, result: Any) -> Any:
    """The KV cache after a pass: the one it returned, else the one it was given."""
    for name in ("cache", "past_key_values"):
        cache = getattr(result, name, None)
        if cache is not None:
            return cache
    parts = result if isinstance(result, tuple) else ()
    return next((part for part in parts if hasattr(part, "get_seq_length")), given)


def _compiled(module: nn.Module) -> bool:
    """Whether it came out of `torch.compile`, or was compiled in place."""
    in_place = getattr(module, "_compiled_call_impl", None) is not None
    return in_place or hasattr(module, "_orig_mod")
