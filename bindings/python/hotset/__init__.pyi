"""Types of `hotset`; written by stubs.py."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, Union

import numpy
import numpy.typing

from ._results import Result as Result
from ._results import Row as Row
from ._trace import Trace as Trace

__version__: str

_Path = Union[str, os.PathLike[str]]
_Trace = Union[Trace, _Path]
_Value = Union[str, int, float]
_Values = Union[_Value, Sequence[_Value]]
_Policies = Union[str, Callable[[Pool], Any], Sequence[Union[str, Callable[[Pool], Any]]]]
_Progress = Union[bool, Callable[[int, int], Any], None]
_Ids = Union[numpy.typing.NDArray[numpy.integer[Any]], Sequence[int]]
_Weights = Union[numpy.typing.NDArray[numpy.float32], Sequence[float], None]

class HotsetError(ValueError): ...

class Pool:
    def __init__(
        self,
        capacity: int,
        keys: int,
        layer_bases: Sequence[int] = ...,
        keys_per_token: int = 1,
    ) -> None: ...
    @property
    def capacity(self) -> int: ...
    @property
    def keys(self) -> int: ...
    @property
    def layer_bases(self) -> list[int]: ...
    @property
    def keys_per_token(self) -> int: ...

class Plan:
    HIT: ClassVar[int]
    PREFETCH_HIT: ClassVar[int]
    PENDING: ClassVar[int]
    FETCH: ClassVar[int]
    UNPLACED: ClassVar[int]
    @property
    def experts(self) -> numpy.typing.NDArray[numpy.uint32]: ...
    @property
    def slots(self) -> numpy.typing.NDArray[numpy.uint32]: ...
    @property
    def evicted(self) -> numpy.typing.NDArray[numpy.int64]: ...
    @property
    def actions(self) -> numpy.typing.NDArray[numpy.uint8]: ...
    @property
    def dropped(self) -> numpy.typing.NDArray[numpy.uint32]: ...
    @property
    def hits(self) -> int: ...
    @property
    def prefetch_hits(self) -> int: ...
    @property
    def pending(self) -> int: ...
    @property
    def fetches(self) -> int: ...
    @property
    def unplaced(self) -> int: ...
    @property
    def wasted(self) -> int: ...
    @property
    def overflow(self) -> bool: ...
    @property
    def misses(self) -> int: ...
    def __len__(self) -> int: ...

class ExpertCache:
    def __init__(
        self,
        experts: Sequence[int],
        top_k: Union[int, Sequence[int]],
        slots: Union[int, Sequence[int]],
        policy: Union[str, Callable[[Pool], Any]] = "lru",
        ordered_copies: bool = False,
    ) -> None: ...
    def demand(self, layer: int, experts: _Ids, weights: _Weights = None) -> Plan: ...
    def prefetch(self, layer: int, experts: _Ids) -> Plan: ...
    def complete(self, layer: int, expert: Union[int, _Ids]) -> bool: ...
    def release(self, layer: int) -> None: ...
    def begin_step(self, tokens: int) -> None: ...
    def resize(
        self, slots: Union[int, Sequence[int]]
    ) -> tuple[numpy.typing.NDArray[numpy.uint32], list[tuple[int, int, int]]]: ...
    def slot_of(self, layer: int, expert: int) -> Union[int, None]: ...
    def expert_of(self, key: int) -> tuple[int, int]: ...
    def residents(self) -> numpy.typing.NDArray[numpy.uint32]: ...
    @property
    def capacity(self) -> int: ...
    @property
    def resident(self) -> int: ...
    @property
    def experts(self) -> list[int]: ...

def compare(
    trace: Union[_Trace, None] = None,
    *,
    policy: Union[_Policies, None] = None,
    admit: Union[Union[_Path, _Values], None] = None,
    scope: Union[Union[str, Literal["global", "layer", "adaptive"], Sequence[str]], None] = None,
    link: Union[Union[_Path, _Values], None] = None,
    phase: Union[Literal["decode", "prefill", "verify", "all"], None] = None,
    semantics: Union[Literal["event", "sequential"], None] = None,
    warmup: Union[Union[_Path, _Value], None] = None,
    chunk: Union[Union[_Path, _Value], None] = None,
    expert_size: Union[Union[_Path, _Value], None] = None,
    policy_memory: Union[Union[_Path, _Value], None] = None,
    no_timeline: Union[bool, None] = None,
    train: Union[Union[_Path, _Value], None] = None,
    histogram: Union[Union[_Path, _Value], None] = None,
    shuffle: Union[Literal["tokens"], None] = None,
    seed: Union[Union[_Path, _Value], None] = None,
    threads: Union[Union[_Path, _Value], None] = None,
    prefetch: Union[Union[_Path, _Value], None] = None,
    miss: Union[Union[_Path, _Value], None] = None,
    prefill: Union[Union[_Path, _Value], None] = None,
    schedule: Union[Union[_Path, _Value], None] = None,
    concurrency: Union[Union[_Path, _Value], None] = None,
    arrival: Union[Literal["recorded", "shuffled"], None] = None,
    verify_tokens: Union[Union[_Path, _Value], None] = None,
    compute_ms: Union[Union[_Path, _Value], None] = None,
    machine: Union[Union[_Path, _Value], None] = None,
    dense_bytes: Union[Union[_Path, _Value], None] = None,
    copies: Union[Literal["in-order", "demand-first", "two-engines"], None] = None,
    wait: Union[Literal["all", "hits-first"], None] = None,
    no_contention: Union[bool, None] = None,
    host_threads: Union[Union[_Path, _Value], None] = None,
    capacity: Union[Union[_Path, _Values], None] = None,
    progress: _Progress = None,
) -> Result: ...

def sweep(
    trace: Union[_Trace, None] = None,
    *,
    policy: Union[_Policies, None] = None,
    admit: Union[Union[_Path, _Values], None] = None,
    scope: Union[Union[str, Literal["global", "layer", "adaptive"], Sequence[str]], None] = None,
    link: Union[Union[_Path, _Values], None] = None,
    phase: Union[Literal["decode", "prefill", "verify", "all"], None] = None,
    semantics: Union[Literal["event", "sequential"], None] = None,
    warmup: Union[Union[_Path, _Value], None] = None,
    chunk: Union[Union[_Path, _Value], None] = None,
    expert_size: Union[Union[_Path, _Value], None] = None,
    policy_memory: Union[Union[_Path, _Value], None] = None,
    no_timeline: Union[bool, None] = None,
    train: Union[Union[_Path, _Value], None] = None,
    histogram: Union[Union[_Path, _Value], None] = None,
    shuffle: Union[Literal["tokens"], None] = None,
    seed: Union[Union[_Path, _Value], None] = None,
    threads: Union[Union[_Path, _Value], None] = None,
    prefetch: Union[Union[_Path, _Value], None] = None,
    miss: Union[Union[_Path, _Value], None] = None,
    prefill: Union[Union[_Path, _Value], None] = None,
    schedule: Union[Union[_Path, _Value], None] = None,
    concurrency: Union[Union[_Path, _Value], None] = None,
    arrival: Union[Literal["recorded", "shuffled"], None] = None,
    verify_tokens: Union[Union[_Path, _Value], None] = None,
    compute_ms: Union[Union[_Path, _Value], None] = None,
    machine: Union[Union[_Path, _Value], None] = None,
    dense_bytes: Union[Union[_Path, _Value], None] = None,
    copies: Union[Literal["in-order", "demand-first", "two-engines"], None] = None,
    wait: Union[Literal["all", "hits-first"], None] = None,
    no_contention: Union[bool, None] = None,
    host_threads: Union[Union[_Path, _Value], None] = None,
    capacity: Union[Union[_Path, _Values], None] = None,
    resume: Union[Union[_Path, _Value], None] = None,
    knee: Union[Union[_Path, _Value], None] = None,
    progress: _Progress = None,
) -> Result: ...

def replay(
    trace: Union[_Trace, None] = None,
    *,
    admit: Union[Union[_Path, _Values], None] = None,
    scope: Union[Union[str, Literal["global", "layer", "adaptive"], Sequence[str]], None] = None,
    link: Union[Union[_Path, _Values], None] = None,
    phase: Union[Literal["decode", "prefill", "verify", "all"], None] = None,
    semantics: Union[Literal["event", "sequential"], None] = None,
    warmup: Union[Union[_Path, _Value], None] = None,
    chunk: Union[Union[_Path, _Value], None] = None,
    expert_size: Union[Union[_Path, _Value], None] = None,
    policy_memory: Union[Union[_Path, _Value], None] = None,
    no_timeline: Union[bool, None] = None,
    train: Union[Union[_Path, _Value], None] = None,
    histogram: Union[Union[_Path, _Value], None] = None,
    shuffle: Union[Literal["tokens"], None] = None,
    seed: Union[Union[_Path, _Value], None] = None,
    threads: Union[Union[_Path, _Value], None] = None,
    prefetch: Union[Union[_Path, _Value], None] = None,
    miss: Union[Union[_Path, _Value], None] = None,
    prefill: Union[Union[_Path, _Value], None] = None,
    schedule: Union[Union[_Path, _Value], None] = None,
    concurrency: Union[Union[_Path, _Value], None] = None,
    arrival: Union[Literal["recorded", "shuffled"], None] = None,
    verify_tokens: Union[Union[_Path, _Value], None] = None,
    compute_ms: Union[Union[_Path, _Value], None] = None,
    machine: Union[Union[_Path, _Value], None] = None,
    dense_bytes: Union[Union[_Path, _Value], None] = None,
    copies: Union[Literal["in-order", "demand-first", "two-engines"], None] = None,
    wait: Union[Literal["all", "hits-first"], None] = None,
    no_contention: Union[bool, None] = None,
    host_threads: Union[Union[_Path, _Value], None] = None,
    trace_events: Union[Union[_Path, _Value], None] = None,
    skip_steps: Union[Union[_Path, _Value], None] = None,
    most_events: Union[Union[_Path, _Value], None] = None,
    policy: Union[_Policies, None] = None,
    capacity: Union[Union[_Path, _Values], None] = None,
    progress: _Progress = None,
) -> Result: ...

def plan(
    *,
    model: Union[_Path, _Value],
    allow_unknown: Union[bool, None] = None,
    machine: Union[_Path, _Value],
    host: Union[Union[_Path, _Value], None] = None,
    disk: Union[Union[_Path, _Value], None] = None,
    context: Union[Union[_Path, _Value], None] = None,
    users: Union[Union[_Path, _Value], None] = None,
    expert_format: Union[Union[_Path, _Value], None] = None,
    quant: Union[Union[_Path, _Value], None] = None,
    rest_format: Union[Union[_Path, _Value], None] = None,
    kv_format: Union[Literal["bf16", "fp8", "q8_0", "q4_0"], None] = None,
    engine: Union[Union[_Path, _Value], None] = None,
    ubatch: Union[Union[_Path, _Value], None] = None,
    slot_multiplier: Union[Union[_Path, _Value], None] = None,
    weights: Union[Union[_Path, _Value], None] = None,
    tp: Union[Union[_Path, _Value], None] = None,
    ep: Union[Union[_Path, _Value], None] = None,
    pp: Union[Union[_Path, _Value], None] = None,
    link: Union[Union[_Path, _Value], None] = None,
    bank: Union[Literal["inclusive", "exclusive"], None] = None,
    load: Union[Literal["mapped", "copied", "direct"], None] = None,
    cpu_moe: Union[Union[_Path, _Value], None] = None,
    no_disk: Union[bool, None] = None,
    miss: Union[Literal["fetch", "balanced", "host"], None] = None,
    usable_share: Union[Union[_Path, _Value], None] = None,
    free: Union[Union[_Path, _Value], None] = None,
    host_reserved: Union[Union[_Path, _Value], None] = None,
    chunk: Union[Union[_Path, _Value], None] = None,
    prefill_buffers: Union[Union[_Path, _Value], None] = None,
    prefill_overlap: Union[bool, None] = None,
    activations: Union[Union[_Path, _Value], None] = None,
    graphs: Union[Union[_Path, _Value], None] = None,
    process: Union[Union[_Path, _Value], None] = None,
    other: Union[Union[_Path, _Value], None] = None,
    slack: Union[Union[_Path, _Value], None] = None,
    speculate: Union[Union[_Path, _Value], None] = None,
    accept: Union[Union[_Path, _Values], None] = None,
    draft_model: Union[Union[_Path, _Value], None] = None,
    fixed_ms: Union[Union[_Path, _Value], None] = None,
    measured_step: Union[Union[_Path, _Value], None] = None,
    efficiency: Union[Union[_Path, _Value], None] = None,
    trace: Union[_Trace, None] = None,
    histogram: Union[Union[_Path, _Value], None] = None,
    stand_in: Union[bool, None] = None,
    uniform: Union[bool, None] = None,
    vary: Union[Union[_Path, _Values], None] = None,
    threads: Union[Union[_Path, _Value], None] = None,
) -> Result: ...

def preflight(
    *,
    model: Union[_Path, _Value],
    allow_unknown: Union[bool, None] = None,
    machine: Union[_Path, _Value],
    host: Union[Union[_Path, _Value], None] = None,
    disk: Union[Union[_Path, _Value], None] = None,
    context: Union[Union[_Path, _Value], None] = None,
    users: Union[Union[_Path, _Value], None] = None,
    expert_format: Union[Union[_Path, _Value], None] = None,
    quant: Union[Union[_Path, _Value], None] = None,
    rest_format: Union[Union[_Path, _Value], None] = None,
    kv_format: Union[Literal["bf16", "fp8", "q8_0", "q4_0"], None] = None,
    engine: Union[Union[_Path, _Value], None] = None,
    ubatch: Union[Union[_Path, _Value], None] = None,
    slot_multiplier: Union[Union[_Path, _Value], None] = None,
    weights: Union[Union[_Path, _Value], None] = None,
    tp: Union[Union[_Path, _Value], None] = None,
    ep: Union[Union[_Path, _Value], None] = None,
    pp: Union[Union[_Path, _Value], None] = None,
    link: Union[Union[_Path, _Value], None] = None,
    bank: Union[Literal["inclusive", "exclusive"], None] = None,
    load: Union[Literal["mapped", "copied", "direct"], None] = None,
    cpu_moe: Union[Union[_Path, _Value], None] = None,
    no_disk: Union[bool, None] = None,
    miss: Union[Literal["fetch", "balanced", "host"], None] = None,
    usable_share: Union[Union[_Path, _Value], None] = None,
    free: Union[Union[_Path, _Value], None] = None,
    host_reserved: Union[Union[_Path, _Value], None] = None,
    chunk: Union[Union[_Path, _Value], None] = None,
    prefill_buffers: Union[Union[_Path, _Value], None] = None,
    prefill_overlap: Union[bool, None] = None,
    activations: Union[Union[_Path, _Value], None] = None,
    graphs: Union[Union[_Path, _Value], None] = None,
    process: Union[Union[_Path, _Value], None] = None,
    other: Union[Union[_Path, _Value], None] = None,
    slack: Union[Union[_Path, _Value], None] = None,
    speculate: Union[Union[_Path, _Value], None] = None,
    accept: Union[Union[_Path, _Values], None] = None,
    draft_model: Union[Union[_Path, _Value], None] = None,
    fixed_ms: Union[Union[_Path, _Value], None] = None,
    measured_step: Union[Union[_Path, _Value], None] = None,
    efficiency: Union[Union[_Path, _Value], None] = None,
    cached: Union[bool, None] = None,
) -> Result: ...

def conform(
    trace: _Trace,
    decisions: Union[Union[_Path, _Value], None] = None,
    *,
    policy: Union[_Path, _Value],
    admit: Union[Union[_Path, _Value], None] = None,
    scope: Union[Literal["global", "layer"], None] = None,
    capacity: Union[_Path, _Value],
    phase: Union[Literal["decode", "prefill", "verify", "all"], None] = None,
    chunk: Union[Union[_Path, _Value], None] = None,
    expert_size: Union[Union[_Path, _Value], None] = None,
    record: Union[Union[_Path, _Value], None] = None,
) -> Result: ...

def policies(
    name: Union[Union[_Path, _Value], None] = None,
) -> Result: ...

class _Experiment:
    @staticmethod
    def semantic(
        trace: Union[_Trace, None] = None,
        *,
        arm: Union[Union[_Path, _Values], None] = None,
        against: Union[Union[_Path, _Values], None] = None,
        capacity: Union[Union[_Path, _Value], None] = None,
        scope: Union[Literal["global", "layer"], None] = None,
        link: Union[Union[_Path, _Values], None] = None,
        folds: Union[Union[_Path, _Value], None] = None,
        train: Union[Union[_Path, _Value], None] = None,
        drift: Union[Union[_Path, _Value], None] = None,
        users: Union[Union[_Path, _Value], None] = None,
        expert_size: Union[Union[_Path, _Value], None] = None,
        resamples: Union[Union[_Path, _Value], None] = None,
        seed: Union[Union[_Path, _Value], None] = None,
        threads: Union[Union[_Path, _Value], None] = None,
        compute_ms: Union[Union[_Path, _Value], None] = None,
        machine: Union[Union[_Path, _Value], None] = None,
        dense_bytes: Union[Union[_Path, _Value], None] = None,
        copies: Union[Literal["in-order", "demand-first", "two-engines"], None] = None,
        wait: Union[Literal["all", "hits-first"], None] = None,
        no_contention: Union[bool, None] = None,
        host_threads: Union[Union[_Path, _Value], None] = None,
        repeat: Union[Union[_Path, _Values], None] = None,
        progress: _Progress = None,
    ) -> Result: ...
    @staticmethod
    def prefetch(
        trace: Union[_Trace, None] = None,
        *,
        arm: Union[Union[_Path, _Values], None] = None,
        against: Union[Union[_Path, _Values], None] = None,
        capacity: Union[Union[_Path, _Value], None] = None,
        scope: Union[Literal["global", "layer"], None] = None,
        link: Union[Union[_Path, _Values], None] = None,
        folds: Union[Union[_Path, _Value], None] = None,
        train: Union[Union[_Path, _Value], None] = None,
        drift: Union[Union[_Path, _Value], None] = None,
        users: Union[Union[_Path, _Value], None] = None,
        expert_size: Union[Union[_Path, _Value], None] = None,
        resamples: Union[Union[_Path, _Value], None] = None,
        seed: Union[Union[_Path, _Value], None] = None,
        threads: Union[Union[_Path, _Value], None] = None,
        compute_ms: Union[Union[_Path, _Value], None] = None,
        machine: Union[Union[_Path, _Value], None] = None,
        dense_bytes: Union[Union[_Path, _Value], None] = None,
        copies: Union[Literal["in-order", "demand-first", "two-engines"], None] = None,
        wait: Union[Literal["all", "hits-first"], None] = None,
        no_contention: Union[bool, None] = None,
        host_threads: Union[Union[_Path, _Value], None] = None,
        lookahead: Union[Union[_Path, _Values], None] = None,
        repeat: Union[Union[_Path, _Value], None] = None,
        time_predictors: Union[bool, None] = None,
        progress: _Progress = None,
    ) -> Result: ...
    def __call__(self, name: str, *trace: Any, **settings: Any) -> Result: ...

experiment: _Experiment

class _Link:
    @staticmethod
    def fit(
        input: Union[_Path, _Value],
        *,
        from_: Union[Literal["csv", "benchbw"], None] = None,
        output: Union[Union[_Path, _Value], None] = None,
        name: Union[Union[_Path, _Value], None] = None,
        source: Union[Union[_Path, _Value], None] = None,
        date: Union[Union[_Path, _Value], None] = None,
    ) -> Result: ...
    @staticmethod
    def price(
        links: Union[_Path, _Values],
        *,
        expert_size: Union[_Path, _Value],
        layers: Union[Union[_Path, _Value], None] = None,
        top_k: Union[Union[_Path, _Value], None] = None,
        hit_rate: Union[Union[_Path, _Value], None] = None,
        copied: Union[Union[_Path, _Value], None] = None,
        compute_ms: Union[Union[_Path, _Value], None] = None,
        host_rate: Union[Union[_Path, _Value], None] = None,
    ) -> Result: ...
    @staticmethod
    def list() -> Result: ...
    @staticmethod
    def show(name: str) -> Result: ...

link: _Link
