"""The recorder for llama.cpp, through the Python package `llama_cpp` as it is published.

A context made while the recorder runs gets a callback that sees each router's choice. The
calls of `llama_decode` on it tell whose tokens they are. Torch is not needed.
"""

from __future__ import annotations

import ctypes
import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import llama_batch, llama_rows, output
from .errors import RecorderError
from .llama_batch import Batch
from .llama_graph import Graphs, Pass
from .llama_hooks import Package, Phases, Replacements
from .llama_sequences import Followed, Sequences
from .session import Session
from .table import Routed, Table, check_facts
from .version import __version__

_OWN_KEYS = (
    "model layers experts top_k moe_layer_ids model_layers dense_layers layout phases "
    "sequence_labels router_ids weights token_id step recorder llama_cpp architecture "
    "file_type n_ubatch left_out prompt_tokens turns expert_bytes predictions"
).split()

_KEPT: list[Any] = []
"""Callbacks: a context calls its own for as long as it lives, also after the recording."""

_running: Recorder | None = None


class Recorder(Session):
    """Records the routing of a MoE model in llama.cpp to `hotset-npz/1`.

    Use it as a context manager, and make the `Llama` (or the context) inside the block. The
    file appears when the block ends; if it ends by an exception, no file does (call `close()`
    inside the block to keep what there is).

    Example:
        >>> with Recorder("routes.npz") as recorder:  # doctest: +SKIP
        ...     llm = llama_cpp.Llama("model.gguf", n_ctx=4096)
        ...     recorder.label("question 1")
        ...     llm(prompt, max_tokens=256)

    Args:
        path: What to write, ending in `.npz` or `.safetensors`.
        name: The model's name in the file. Default: as the GGUF says.
        weights: Router weights as `"f16"`, `"f32"`, `"u8"` (round(255 w), for weights of
            at most 1) or None, which halves the recorder's stops in each layer.
        whole_prompts: Ask for the logits of all tokens, because llama.cpp runs the last layer
            for no others. Costs the output matrix for each token of a prompt, and
            `n_batch x vocabulary x 4` bytes. If False, the tokens that lack the last layer
            are left out, and counted in a warning and in `info`.
        info: More facts for the file's `info`, JSON values; not of the recorder's own keys.
        compress: Deflate the arrays (`.npz`).
        overwrite: Replace a file that is there.
        buffer_bytes: Rows held in memory before they are written to temporary files.
        temporary: The folder for temporary files. They take the recording's size.

    Raises:
        RecorderError: What cannot be recorded, and why.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        name: str | None = None,
        weights: str | None = "f16",
        whole_prompts: bool = True,
        info: Mapping[str, Any] | None = None,
        compress: bool = False,
        overwrite: bool = False,
        buffer_bytes: int = 8 << 20,
        temporary: str | Path | None = None,
    ) -> None:
        """Checks the arguments; imports and hooks nothing yet."""
        super().__init__(path, overwrite=overwrite, compress=compress)
        self._extra = dict(info or {})
        check_facts(self._extra, _OWN_KEYS)
        folder = None if temporary is None else Path(temporary)
        self._table = Table(weights, buffer_bytes, folder)
        self._name = name
        self._weights = weights is not None
        self._whole_prompts = whole_prompts
        self._sequences = Sequences(self._labels)
        self._phases = Phases()
        self._context: int | None = None
        self._graphs: Graphs | None = None
        self._facts: dict[str, Any] = {}
        self._layers: list[int] = []
        self._left_out = self._strangers = 0

    # Into llama_cpp, and out of it.

    def _hook(self) -> None:
        global _running
        if _running is not None:
            raise RecorderError("a recorder of llama.cpp runs already: one at a time")
        self._package = Package()
        self._replaced = Replacements(self._package)
        for around, names in (
            (self._init, "llama_init_from_model llama_new_context_with_model"),
            (self._free, "llama_free"),
            (self._decode, "llama_decode"),
            (self._copied, "llama_memory_seq_cp"),
            (self._restored, "llama_state_set_data llama_state_load_file"),
            (self._restored, "llama_state_seq_set_data llama_state_seq_set_data_ext"),
            (self._restored, "llama_state_seq_load_file"),
        ):
            for name in names.split():
                self._replaced.replace(name, around)
        self._replaced.replace_method("eval", self._eval)
        self._replaced.replace_method("generate", self._generate)
        _running = self

    def _unhook(self) -> None:
        global _running
        _running = None
        self._replaced.undo()
        self._leave()

    def _leave(self) -> None:
        """The context is recorded no more; what failed in it is still to be raised."""
        self._context = None
        if self._graphs is not None:
            self._graphs.live = False

    def _init(self, before: Any, model: Any, params: Any) -> Any:
        """Gives the context of a model with experts the callback."""
        facts = self._package.facts(model)
        if not facts["experts"]:
            return before(model, params)
        if params.cb_eval:
            raise RecorderError("the context has a cb_eval of its own; there can be one")
        if self._context is not None:
            raise RecorderError(
                "a second context of a model with experts: a recorder takes one at a time; "
                "close the first"
            )
        graphs = Graphs(self._package.ggml, self._weights)
        callback = self._package.api.ggml_backend_sched_eval_callback(graphs.called)
        params = type(params).from_buffer_copy(params)
        params.cb_eval = callback
        context = before(model, params)
        if context:
            _KEPT.append(callback)
            self._context, self._graphs = _address(context), graphs
            self._facts = {**facts, "n_ubatch": int(params.n_ubatch)}
        return context

    # Around the functions that were replaced.

    def _free(self, before: Any, context: Any) -> Any:
        if self._is_ours(context):
            self._leave()
            self._sequences.forget()
        return before(context)

    def _copied(self, before: Any, memory: Any, source: Any, target: Any, *rest: Any) -> Any:
        self._sequences.forget([int(getattr(target, "value", target))])
        return before(memory, source, target, *rest)

    def _restored(self, before: Any, context: Any, *rest: Any) -> Any:
        if self._is_ours(context):
            self._sequences.forget()
        return before(context, *rest)

    def _generate(self, before: Any, llama: Any, *args: Any, **kwargs: Any) -> Any:
        inner = before(llama, *args, **kwargs)
        return self._phases.generating(inner) if self._owns(llama) else inner

    def _eval(self, before: Any, llama: Any, tokens: Any) -> Any:
        if not self._owns(llama):
            return before(llama, tokens)
        return self._phases.evaluating(before, llama, tokens)

    def _decode(self, before: Any, context: Any, batch: Any) -> Any:
        graphs = self._graphs
        if graphs is None or not self._is_ours(context):
            self._strangers += 1
            return before(context, batch)
        self.alone()
        graphs.raise_failure()
        given = llama_batch.read(batch, lambda number: self._held(context, number))
        ran = given
        if self._whole_prompts and len(given):
            # The flags are the caller's: a copy of the batch points to flags of our own.
            flags = (ctypes.c_int8 * len(given))(*[1] * len(given))
            batch = type(batch).from_buffer_copy(batch)
            batch.logits = ctypes.cast(flags, type(batch.logits))
            ran = Batch(given.tokens, given.positions, given.sequences, given.outputs | True)
        whole = False
        try:
            with graphs.running():
                code = before(context, batch)
            if code == 0:
                followed = self._sequences.follow(given, self._phases.now)
                self._add(graphs.taken(whole=True), graphs.experts, ran, followed)
                whole = True
        finally:
            if not whole:
                # Rows are missing: what comes next goes on with none of these sequences.
                self._sequences.forget(list(given.places()))
        return code

    def _is_ours(self, context: Any) -> bool:
        return self._context is not None and _address(context) == self._context

    def _owns(self, llama: Any) -> bool:
        return self._is_ours(getattr(getattr(llama, "_ctx", None), "ctx", None))

    def _held(self, context: Any, number: int) -> int:
        """The last position of a sequence in the KV cache, -1 where there is none."""
        api = self._package.api
        return int(api.llama_memory_seq_pos_max(api.llama_get_memory(context), number))

    def _add(
        self, passes: list[Pass], experts: int | None, batch: Batch, followed: Followed
    ) -> None:
        if not passes:
            raise RecorderError(
                f"llama_cpp {self._package.version} ran a batch without one call of cb_eval, "
                "or without a tensor ffn_moe_topk: it differs from what this recorder knows"
            )
        for one, places in llama_rows.placed(passes, batch):
            layers = sorted(one.ids)
            self._layers = self._layers or layers
            if layers != self._layers:
                raise RecorderError(
                    f"layers {layers} chose experts in one pass, {self._layers} before"
                )
            if experts not in (None, self._facts["experts"]):
                raise RecorderError(
                    f"routers sort {experts} experts, the GGUF states {self._facts['experts']}"
                )
            rows = llama_rows.complete(one, places, batch, self._weights)
            self._left_out += len(places) - len(rows.places)
            routed = Routed(
                ids=rows.ids,
                weights=rows.weights,
                sequence=self._sequences.numbers(followed.sequences[rows.places]),
                position=batch.positions[rows.places],
                token_id=None if batch.tokens is None else batch.tokens[rows.places],
                phase=followed.phases[rows.places],
            )
            self._table.add(routed, self._facts["experts"])

    # Into the file.

    def _write(self) -> None:
        if self._graphs is not None:
            self._graphs.raise_failure()
        try:
            arrays = self._table.arrays()
        except RecorderError as error:
            if not self._strangers:
                raise
            raise RecorderError(
                "nothing was recorded: the contexts that ran were made before the recorder "
                "started, or have no experts; make the Llama inside the block"
            ) from error
        layers = range(self._facts["model_layers"])
        info: dict[str, Any] = {
            "layout": "hotset-npz/1",
            **self._facts,
            **({} if self._name is None else {"model": self._name}),
            "layers": self._table.layers,
            "top_k": self._table.top_k,
            "moe_layer_ids": self._layers,
            "dense_layers": [layer for layer in layers if layer not in self._layers],
            "phases": ["prefill", "decode"],
            "sequence_labels": self._sequences.names,
            "router_ids": "as llama.cpp computed them (ffn_moe_topk)",
            "step": "number of the forward pass, one micro-batch",
            "left_out": self._left_out,
            "recorder": f"hotset-recorder {__version__}",
            "llama_cpp": self._package.version,
            **self._table.weights_fact(),
            **self._table.tokens_fact(),
            **self._extra,
        }
        output.write(self._path, arrays, json.dumps(info, ensure_ascii=False), self._compress)
        if self._left_out:
            warnings.warn(
                f"{self._left_out} tokens were left out: llama.cpp ran the last layer for "
                "those alone whose logits were asked for; whole_prompts=True keeps all",
                stacklevel=4,
            )

    def _release(self) -> None:
        self._table.close()


def _address(pointer: Any) -> int | None:
    value = getattr(pointer, "value", pointer)
    if isinstance(value, int) or value is None:
        return value
    return ctypes.cast(pointer, ctypes.c_void_p).value
