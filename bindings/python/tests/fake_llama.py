"""A `llama_cpp` without llama.cpp: the calls, structs and callbacks that the recorder meets.

Its model chooses experts by token and layer alone (`chosen`, `weighed`), so that tests know
every row. Tensors lie in memory as ggml's do: a choice is a strided view of a sorting.
"""

from __future__ import annotations

import ctypes
import sys
import types
from typing import Any

import numpy as np

from hotset.record.ggml import Tensor

EXPERTS, TOP_K, LAYERS = 6, 2, (1, 2, 4)
F32, I32 = 0, 26


def order(token: int, layer: int) -> np.ndarray:
    """All experts, as a router would sort them."""
    return np.random.default_rng(token * 31 + layer).permutation(EXPERTS).astype(np.int32)


def chosen(token: int) -> list[list[int]]:
    return [order(token, layer)[:TOP_K].tolist() for layer in LAYERS]


def weighed(token: int) -> list[list[float]]:
    return [[0.75, 0.25 - token / 1024] for _ in LAYERS]


class Memory:
    """Makes tensors, and keeps what they point to."""

    def __init__(self, struct=Tensor):
        self.struct = struct
        self.kept = {}

    def tensor(self, name, values, *, sources=(), view_of=None, shape=None, strides=None):
        """A tensor around an array `[ne3 .. ne0]`, or a view of another tensor."""
        tensor = self.struct()
        if view_of is None:
            values = np.ascontiguousarray(values)
            shape, strides = values.shape, values.strides
            tensor.data = values.ctypes.data
        else:
            tensor.view_src = view_of
            tensor.data = self.kept[view_of][0].data
        pad = 4 - len(shape)
        tensor.ne[:] = [*shape[::-1], *[1] * pad]
        steps = list(strides[::-1])
        tensor.nb[:] = steps + [steps[-1] * shape[0]] * pad
        tensor.type = F32 if np.asarray(values).dtype == np.float32 else I32
        tensor.name = name.encode()
        for at, source in enumerate(sources):
            tensor.src[at] = source
        address = ctypes.addressof(tensor)
        self.kept[address] = (tensor, values)
        return address


class Library:
    """The functions of ggml that the recorder calls, over structs of a given layout."""

    def __init__(self, struct=Tensor):
        memory = self.memory = Memory(struct)

        def new(_, kind, columns, rows):
            dtype = np.float32 if kind == F32 else np.int32
            return memory.tensor("", np.zeros((rows, columns), dtype))

        def view(_, whole, columns, rows, step, offset):
            base = memory.kept[whole][0]
            address = memory.tensor(
                "",
                np.zeros(0, np.int32),
                view_of=whole,
                shape=(rows, columns),
                strides=(step, 4),
            )
            made = memory.kept[address][0]
            made.view_offs, made.data = offset, base.data + offset
            return address

        def rows(_, table, ids):
            shape = (memory.kept[ids][0].ne[0], memory.kept[table][0].ne[0])
            return memory.tensor("", np.zeros(shape, np.float32), sources=(table, ids))

        def rename(tensor, text):
            memory.kept[tensor][0].name = text

        def span(tensor):
            one = Tensor.from_address(tensor)
            return 4 + sum((n - 1) * step for n, step in zip(one.ne, one.nb))

        def get(tensor, target, offset, size):
            ctypes.memmove(target, Tensor.from_address(tensor).data + offset, size)

        self.ggml_init = lambda params: 1
        self.ggml_free = lambda context: None
        self.ggml_new_tensor_2d = new
        self.ggml_view_2d = view
        self.ggml_get_rows = rows
        self.ggml_set_name = rename
        self.ggml_type_name = lambda kind: {F32: b"f32", I32: b"i32"}.get(kind)
        self.ggml_nbytes = span
        self.ggml_backend_tensor_get = get


Callback = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_bool, ctypes.c_void_p)


class Params(ctypes.Structure):
    _fields_ = [
        ("n_ubatch", ctypes.c_uint32),
        ("cb_eval", Callback),
        ("cb_eval_user_data", ctypes.c_void_p),
    ]


class BatchStruct(ctypes.Structure):
    _fields_ = [
        ("n_tokens", ctypes.c_int32),
        ("token", ctypes.POINTER(ctypes.c_int32)),
        ("embd", ctypes.POINTER(ctypes.c_float)),
        ("pos", ctypes.POINTER(ctypes.c_int32)),
        ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
        ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))),
        ("logits", ctypes.POINTER(ctypes.c_int8)),
    ]


def batch(tokens, positions=None, sequences=None, outputs=None):
    """A `llama_batch`; what is None is a null pointer, as from `llama_batch_get_one`."""
    count = len(tokens)
    made = BatchStruct(n_tokens=count)
    made.token = (ctypes.c_int32 * count)(*tokens)
    if positions is not None:
        made.pos = (ctypes.c_int32 * count)(*positions)
        made.n_seq_id = (ctypes.c_int32 * count)(*[1] * count)
        cells = [ctypes.pointer(ctypes.c_int32(s)) for s in sequences or [0] * count]
        made.seq_id = (ctypes.POINTER(ctypes.c_int32) * count)(*cells)
    if outputs is not None:
        made.logits = (ctypes.c_int8 * count)(*outputs)
    return made


class Llama:
    """The package's class, as far as the recorder knows it: chunks of four tokens."""

    package: Any
    draft_model: Any = None

    def __init__(self):
        params = Params(n_ubatch=8)
        self._ctx = types.SimpleNamespace(ctx=self.package.llama_init_from_model(None, params))
        self.n_tokens = 0

    def eval(self, tokens):
        for start in range(0, len(tokens), 4):
            chunk = tokens[start : start + 4]
            places = [*range(self.n_tokens, self.n_tokens + len(chunk))]
            last = [0] * (len(chunk) - 1) + [1]
            self.package.llama_decode(self._ctx.ctx, batch(chunk, places, outputs=last))
            self.n_tokens += len(chunk)

    def generate(self, tokens, reuse=0):
        self.n_tokens = reuse
        self.eval(tokens[reuse:])
        while True:
            self.eval([(yield)])


class Engine:
    """What the fake package runs; tests turn its knobs."""

    def __init__(self):
        self.library = Library()
        self.metadata = {
            "general.architecture": "fakemoe",
            "general.name": "fake",
            "fakemoe.block_count": "6",
            "fakemoe.nextn_predict_layers": "1",
            "fakemoe.expert_count": str(EXPERTS),
        }
        self.side_by_side = False
        """Micro-batches take as many tokens of each sequence (a cache of several streams)."""
        self.code = 0
        """What `llama_decode` returns."""
        self.twice = False
        """A layer that chooses twice."""
        self.calls_back = True
        self.asked = self.shown = 0
        self.held: dict[int, int] = {}
        self.contexts: dict[int, Params] = {}

    def module(self, monkeypatch):
        """Puts the package into `sys.modules`."""
        top, api = types.ModuleType("llama_cpp"), types.ModuleType("llama_cpp.llama_cpp")
        top.__version__ = "fake"
        for owner in (top, api):
            owner.llama_decode = lambda context, given: self.decode(context, given)
            owner.llama_init_from_model = lambda model, params: self.init(params)
            owner.llama_free = lambda context: self.contexts.pop(context)
            owner.llama_memory_seq_cp = lambda memory, a, b, p0, p1: None
            owner.llama_model_meta_val_str = self.meta
            owner.llama_get_memory = lambda context: context
            owner.llama_memory_seq_pos_max = lambda memory, s: self.held.get(s, -1)
            owner.ggml_backend_sched_eval_callback = Callback
        api._lib = types.SimpleNamespace(_name="libllama.so")
        top.llama_cpp, top.Llama = api, type("Llama", (Llama,), {"package": top})
        monkeypatch.setitem(sys.modules, "llama_cpp", top)
        monkeypatch.setitem(sys.modules, "llama_cpp.llama_cpp", api)
        monkeypatch.setattr(ctypes, "CDLL", lambda name: self.library)
        return top

    def meta(self, model, key, buffer, size):
        value = self.metadata.get(key.decode())
        if value is None:
            return -1
        buffer.value = value.encode()
        return len(value)

    def init(self, params):
        self.contexts[len(self.contexts) + 1000] = params
        return max(self.contexts)

    def decode(self, context, given):
        params, count = self.contexts[context], given.n_tokens
        tokens = given.token[:count]
        sequences = [given.seq_id[i][0] if given.seq_id else 0 for i in range(count)]
        start = self.held.get(0, -1) + 1
        positions = given.pos[:count] if given.pos else list(range(start, start + count))
        outputs = given.logits[:count] if given.logits else [0] * (count - 1) + [1]
        for rows in self.split(sequences, params.n_ubatch):
            self.graph(
                params,
                [tokens[i] for i in rows],
                [positions[i] for i in rows],
                [k for k, i in enumerate(rows) if outputs[i]],
            )
        for sequence, position in zip(sequences, positions):
            self.held[sequence] = position
        return self.code

    def split(self, sequences, size):
        left = list(range(len(sequences)))
        while left:
            rows = left[:size]
            if self.side_by_side:
                queues = [
                    [i for i in left if sequences[i] == s]
                    for s in dict.fromkeys(sequences[i] for i in left)
                ]
                share = min(min(map(len, queues)), max(size // len(queues), 1))
                rows = [i for queue in queues for i in queue[:share]]
            left = [i for i in left if i not in rows]
            yield rows

    def graph(self, params, tokens, positions, outputs):
        make = self.library.memory.tensor
        ids = make("inp_tokens", np.array(tokens, np.int32))
        places = make("CUDA0#inp_pos#0", np.array(positions, np.int32))
        other = np.zeros(1, np.float32)
        self.node(params, make("embd", other, sources=(ids,)))
        for layer in LAYERS:
            rows = outputs if layer == LAYERS[-1] else range(len(tokens))
            self.node(params, make(f"Qcur-{layer}", other, sources=(ids, places)))
            full = np.array([order(tokens[i], layer) for i in rows], np.int32)
            sort = make(f"ffn_moe_argsort-{layer}", full.reshape(-1, EXPERTS))
            self.node(params, sort)
            for _ in range(1 + self.twice):
                self.node(
                    params,
                    make(
                        f"ffn_moe_topk-{layer}",
                        full,
                        view_of=sort,
                        shape=(len(rows), TOP_K),
                        strides=(EXPERTS * 4, 4),
                    ),
                )
            weights = [weighed(tokens[i])[0] for i in rows]
            weights = np.array(weights, np.float32).reshape(-1, TOP_K, 1)
            self.node(params, make(f"ffn_moe_weights-{layer}", weights * 2))
            self.node(params, make(f"ffn_moe_weights_sum-{layer}", weights))
            self.node(params, make(f"ffn_moe_weights_norm-{layer}", weights[:, :, 0]))
            self.node(params, make(f"ffn_moe_weighted-{layer}", other))
        self.node(params, make("result_output", other))

    def node(self, params, tensor):
        if not params.cb_eval or not self.calls_back:
            return
        self.asked += 1
        if params.cb_eval(tensor, True, None):
            self.shown += 1
            assert params.cb_eval(tensor, False, None)
