"""What the graphs of one `llama_decode` say: each MoE layer's choice, and for which tokens.

llama.cpp asks of every tensor of a graph whether it is wanted, then shows those that are.
A graph is one pass over a micro-batch; which tokens it holds is read from its inputs.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import RecorderError
from .ggml import NAME, Ggml, name, sources, viewed_extent

_WANTED = re.compile(rb"ffn_moe_(topk|weights(?:_softmax|_norm|_scaled)?)-(\d+)")
# Of the thousands of tensors of a pass most are told by these four bytes of their names.
_AT = NAME + len(b"ffn_moe_")
_WORDS = frozenset(int.from_bytes(word, sys.byteorder) for word in (b"topk", b"weig"))
# On its way to another device an input is copied: CUDA0#inp_pos#0.
_INPUT = re.compile(rb"(?:.*#)?inp_(tokens|pos)(?:#\d+)?")

Ints = npt.NDArray[Any]


@dataclass
class Pass:
    """One micro-batch's pass through the model."""

    tokens: Ints | None = None
    """`[rows]`: ids of its tokens, unless it was given embeddings."""
    positions: Ints | None = None
    """`[rows]`, or several a token."""
    ids: dict[int, Ints] = field(default_factory=dict)
    """Each layer's experts, `[rows, top-k]`, best first; the last may have fewer rows."""
    weights: dict[int, npt.NDArray[np.float32]] = field(default_factory=dict)
    """As `ids`: what the experts' outputs are multiplied by."""

    @property
    def begun(self) -> bool:
        """Whether an input was seen."""
        return self.tokens is not None or self.positions is not None


def _passed_over(address: int) -> bool:
    """Whether a tensor cannot be wanted, by its name: quick, for it is asked of every one."""
    return ctypes.c_uint32.from_address(address + _AT).value not in _WORDS


class Graphs:
    """Answers llama.cpp's callback, and keeps the passes until they are taken."""

    def __init__(self, ggml: Ggml, weights: bool) -> None:
        """Nothing seen yet."""
        self._ggml = ggml
        self._weights = weights
        self._kinds: dict[bytes, tuple[str, int] | None] = {}
        self._form: dict[int, bytes] = {}
        """The name under which each layer's weights came last."""
        self._superseded: set[bytes] = set()
        self._last: int | None = None
        """The last layer that routes, once a whole pass was seen."""
        self._passes: list[Pass] = []
        self._inputs = Pass()
        """Inputs of the pass to come."""
        self._seeking = True
        self._running = False
        self._failure: BaseException | None = None
        self.experts: int | None = None
        """Experts a layer, where a tensor tells."""
        self.live = True
        """False once nothing is to be recorded any more; the context may call on."""

    def called(self, tensor: int, ask: bool, _: Any) -> bool:
        """The callback: asked whether a tensor is wanted, or shown one that is."""
        if ask and not self._seeking and _passed_over(tensor):
            return False
        # No exception may pass through C: it is kept, and raised by whoever called.
        if not self.live or self._failure is not None:
            return not ask
        try:
            if not self._running:
                raise RecorderError(
                    "the model ran, but not by llama_cpp.llama_decode (an encoder, images, or "
                    "a llama_decode imported before the recorder started): whose tokens they "
                    "were is unknown"
                )
            if ask:
                return self._ask(tensor)
            self._take(tensor)
        except BaseException as error:  # noqa: BLE001
            self._failure = error
        return not ask

    @contextmanager
    def running(self) -> Iterator[None]:
        """Around a call that runs passes; raises what the callback could not."""
        self.taken(whole=False)
        self._running = True
        try:
            yield
        finally:
            self._running = False
        self.raise_failure()

    def raise_failure(self) -> None:
        """Raises what went wrong in the callback, once."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def taken(self, whole: bool) -> list[Pass]:
        """The passes since the last call; `whole` unless llama.cpp gave up on the way."""
        passes, self._passes, self._inputs = self._passes, [], Pass()
        self._seeking = True
        if passes and whole:
            self._last = max(passes[0].ids)
        return passes

    def _ask(self, address: int) -> bool:
        """Whether a tensor that is about to be computed is wanted."""
        if self._seeking:
            self._seek(address)
        if _passed_over(address):
            return False
        label = name(address)
        return self._kind(label) is not None and label not in self._superseded

    def _take(self, address: int) -> None:
        """Reads a wanted tensor, which has just been computed."""
        label = name(address)
        kind = self._kind(label)
        if kind is None:
            return
        what, layer = kind
        values = self._ggml.array(address)
        if what == "topk":
            self._choice(address, layer, values)
        else:
            self._weigh(label, layer, values)

    def _kind(self, label: bytes) -> tuple[str, int] | None:
        if label not in self._kinds:
            match = _WANTED.fullmatch(label)
            kind = None if match is None else (match[1].decode(), int(match[2]))
            if kind is not None and kind[0] != "topk" and not self._weights:
                kind = None
            self._kinds[label] = kind
        return self._kinds[label]

    def _seek(self, address: int) -> None:
        """Reads the graph's inputs where an operation first works on them."""
        for source in sources(address):
            match = _INPUT.fullmatch(name(source))
            if match is None:
                continue
            values = self._ggml.array(source).reshape(-1)
            if match[1] == b"tokens" and self._inputs.tokens is None:
                self._inputs.tokens = values
            elif match[1] == b"pos" and self._inputs.positions is None:
                self._inputs.positions = values
        if self._inputs.tokens is not None and self._inputs.positions is not None:
            self._seeking = False

    def _choice(self, address: int, layer: int, values: Ints) -> None:
        known = self._passes[-1] if self._passes else None
        if known is None or layer <= max(known.ids):
            if known is not None and not self._inputs.begun:
                raise RecorderError(
                    f"layer {layer} chooses experts twice in one pass: a trace has one choice "
                    "a token and layer"
                )
            known = self._inputs
            self._passes.append(known)
        *outer, rows, top_k = values.shape
        if values.dtype != np.int32 or outer != [1, 1]:
            raise RecorderError(
                f"ffn_moe_topk-{layer} is {values.dtype} {list(values.shape)}; i32 of "
                "[1, 1, tokens, top-k] is known"
            )
        known.ids[layer] = values.reshape(rows, top_k)
        self.experts = viewed_extent(address) or self.experts
        self._inputs = Pass()
        self._seeking = self._last is None or layer == self._last

    def _weigh(self, label: bytes, layer: int, values: npt.NDArray[Any]) -> None:
        known = self._passes[-1] if self._passes else Pass()
        ids = known.ids.get(layer)
        if ids is None or values.size != ids.size or values.dtype != np.float32:
            raise RecorderError(
                f"{label.decode()} is {values.dtype} {list(values.shape)}, and not a weight "
                "for each expert that was chosen just before"
            )
        if layer in known.weights:
            # Scaled further on: from the next pass on the last form is read alone.
            self._superseded.add(self._form[layer])
        self._form[layer] = label
        known.weights[layer] = values.reshape(ids.shape)
