"""Types of `hotset`; written by stubs.py."""

import os
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import numpy
import numpy.typing

from ._results import Result as Result
from ._results import Row as Row
from ._trace import Trace as Trace

__version__: str

_Path = str | os.PathLike[str]
_Trace = Trace | _Path
_Value = str | int | float
_Values = _Value | Sequence[_Value]
_Policy = str | Callable[[Pool], Any]
_Policies = _Policy | Sequence[_Policy]
_Progress = bool | Callable[[int, int], Any] | None
_Ids = numpy.typing.NDArray[numpy.integer[Any]] | Sequence[int]
_Weights = numpy.typing.NDArray[numpy.float32] | Sequence[float] | None

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
        top_k: int | Sequence[int],
        slots: int | Sequence[int],
        policy: _Policy = "lru",
        ordered_copies: bool = False,
    ) -> None: ...
    def demand(self, layer: int, experts: _Ids, weights: _Weights = None) -> Plan: ...
    def prefetch(self, layer: int, experts: _Ids) -> Plan: ...
    def complete(self, layer: int, expert: int | _Ids) -> bool: ...
    def release(self, layer: int) -> None: ...
    def begin_step(self, tokens: int) -> None: ...
    def resize(
        self, slots: int | Sequence[int]
    ) -> tuple[numpy.typing.NDArray[numpy.uint32], list[tuple[int, int, int]]]: ...
    def slot_of(self, layer: int, expert: int) -> int | None: ...
    def expert_of(self, key: int) -> tuple[int, int]: ...
    def residents(self) -> numpy.typing.NDArray[numpy.uint32]: ...
    @property
    def capacity(self) -> int: ...
    @property
    def resident(self) -> int: ...
    @property
    def experts(self) -> list[int]: ...

def compare(
    trace: _Trace | None = None,
    *,
    policy: _Policies | None = None,
    admit: _Path | _Values | None = None,
    scope: str | Literal["global", "layer", "adaptive"] | Sequence[str] | None = None,
    link: _Path | _Values | None = None,
    phase: Literal["decode", "prefill", "verify", "all"] | None = None,
    semantics: Literal["event", "sequential"] | None = None,
    warmup: _Path | _Value | None = None,
    chunk: _Path | _Value | None = None,
    expert_size: _Path | _Value | None = None,
    policy_memory: _Path | _Value | None = None,
    no_timeline: bool | None = None,
    train: _Path | _Value | None = None,
    histogram: _Path | _Value | None = None,
    shuffle: Literal["tokens"] | None = None,
    sample: _Path | _Value | None = None,
    seed: _Path | _Value | None = None,
    threads: _Path | _Value | None = None,
    prefetch: _Path | _Value | None = None,
    miss: _Path | _Value | None = None,
    prefill: _Path | _Value | None = None,
    schedule: _Path | _Value | None = None,
    concurrency: _Path | _Value | None = None,
    arrival: Literal["recorded", "shuffled"] | None = None,
    verify_tokens: _Path | _Value | None = None,
    compute_ms: _Path | _Value | None = None,
    machine: _Path | _Value | None = None,
    dense_bytes: _Path | _Value | None = None,
    copies: Literal["in-order", "demand-first", "two-engines"] | None = None,
    wait: Literal["all", "hits-first"] | None = None,
    no_contention: bool | None = None,
    host_threads: _Path | _Value | None = None,
    host_slots: _Path | _Value | None = None,
    host_policy: _Path | _Value | None = None,
    host_mode: Literal["inclusive", "exclusive"] | None = None,
    read_ahead: _Path | _Value | None = None,
    prefetch_to: Literal["gpu", "host"] | None = None,
    disk: _Path | _Value | None = None,
    capacity: _Path | _Values | None = None,
    plot: _Path | _Value | None = None,
    progress: _Progress = None,
) -> Result: ...

def sweep(
    trace: _Trace | None = None,
    *,
    policy: _Policies | None = None,
    admit: _Path | _Values | None = None,
    scope: str | Literal["global", "layer", "adaptive"] | Sequence[str] | None = None,
    link: _Path | _Values | None = None,
    phase: Literal["decode", "prefill", "verify", "all"] | None = None,
    semantics: Literal["event", "sequential"] | None = None,
    warmup: _Path | _Value | None = None,
    chunk: _Path | _Value | None = None,
    expert_size: _Path | _Value | None = None,
    policy_memory: _Path | _Value | None = None,
    no_timeline: bool | None = None,
    train: _Path | _Value | None = None,
    histogram: _Path | _Value | None = None,
    shuffle: Literal["tokens"] | None = None,
    sample: _Path | _Value | None = None,
    seed: _Path | _Value | None = None,
    threads: _Path | _Value | None = None,
    prefetch: _Path | _Value | None = None,
    miss: _Path | _Value | None = None,
    prefill: _Path | _Value | None = None,
    schedule: _Path | _Value | None = None,
    concurrency: _Path | _Value | None = None,
    arrival: Literal["recorded", "shuffled"] | None = None,
    verify_tokens: _Path | _Value | None = None,
    compute_ms: _Path | _Value | None = None,
    machine: _Path | _Value | None = None,
    dense_bytes: _Path | _Value | None = None,
    copies: Literal["in-order", "demand-first", "two-engines"] | None = None,
    wait: Literal["all", "hits-first"] | None = None,
    no_contention: bool | None = None,
    host_threads: _Path | _Value | None = None,
    host_slots: _Path | _Value | None = None,
    host_policy: _Path | _Value | None = None,
    host_mode: Literal["inclusive", "exclusive"] | None = None,
    read_ahead: _Path | _Value | None = None,
    prefetch_to: Literal["gpu", "host"] | None = None,
    disk: _Path | _Value | None = None,
    capacity: _Path | _Values | None = None,
    resume: _Path | _Value | None = None,
    replays: _Path | _Value | None = None,
    knee: _Path | _Value | None = None,
    plot: _Path | _Value | None = None,
    progress: _Progress = None,
) -> Result: ...

def replay(
    trace: _Trace | None = None,
    *,
    admit: _Path | _Values | None = None,
    scope: str | Literal["global", "layer", "adaptive"] | Sequence[str] | None = None,
    link: _Path | _Values | None = None,
    phase: Literal["decode", "prefill", "verify", "all"] | None = None,
    semantics: Literal["event", "sequential"] | None = None,
    warmup: _Path | _Value | None = None,
    chunk: _Path | _Value | None = None,
    expert_size: _Path | _Value | None = None,
    policy_memory: _Path | _Value | None = None,
    no_timeline: bool | None = None,
    train: _Path | _Value | None = None,
    histogram: _Path | _Value | None = None,
    shuffle: Literal["tokens"] | None = None,
    sample: _Path | _Value | None = None,
    seed: _Path | _Value | None = None,
    threads: _Path | _Value | None = None,
    prefetch: _Path | _Value | None = None,
    miss: _Path | _Value | None = None,
    prefill: _Path | _Value | None = None,
    schedule: _Path | _Value | None = None,
    concurrency: _Path | _Value | None = None,
    arrival: Literal["recorded", "shuffled"] | None = None,
    verify_tokens: _Path | _Value | None = None,
    compute_ms: _Path | _Value | None = None,
    machine: _Path | _Value | None = None,
    dense_bytes: _Path | _Value | None = None,
    copies: Literal["in-order", "demand-first", "two-engines"] | None = None,
    wait: Literal["all", "hits-first"] | None = None,
    no_contention: bool | None = None,
    host_threads: _Path | _Value | None = None,
    host_slots: _Path | _Value | None = None,
    host_policy: _Path | _Value | None = None,
    host_mode: Literal["inclusive", "exclusive"] | None = None,
    read_ahead: _Path | _Value | None = None,
    prefetch_to: Literal["gpu", "host"] | None = None,
    disk: _Path | _Value | None = None,
    trace_events: _Path | _Value | None = None,
    skip_steps: _Path | _Value | None = None,
    most_events: _Path | _Value | None = None,
    policy: _Policies | None = None,
    capacity: _Path | _Values | None = None,
    plot: _Path | _Value | None = None,
    progress: _Progress = None,
) -> Result: ...

def plan(
    *,
    model: _Path | _Value,
    allow_unknown: bool | None = None,
    machine: _Path | _Value,
    host: _Path | _Value | None = None,
    disk: _Path | _Value | None = None,
    context: _Path | _Value | None = None,
    users: _Path | _Value | None = None,
    expert_format: _Path | _Value | None = None,
    quant: _Path | _Value | None = None,
    rest_format: _Path | _Value | None = None,
    kv_format: Literal["bf16", "fp8", "q8_0", "q4_0"] | None = None,
    engine: _Path | _Value | None = None,
    ubatch: _Path | _Value | None = None,
    slot_multiplier: _Path | _Value | None = None,
    weights: _Path | _Value | None = None,
    tp: _Path | _Value | None = None,
    ep: _Path | _Value | None = None,
    pp: _Path | _Value | None = None,
    link: _Path | _Value | None = None,
    bank: Literal["inclusive", "exclusive"] | None = None,
    load: Literal["mapped", "copied", "direct"] | None = None,
    cpu_moe: _Path | _Value | None = None,
    no_disk: bool | None = None,
    miss: Literal["fetch", "balanced", "host"] | None = None,
    usable_share: _Path | _Value | None = None,
    free: _Path | _Value | None = None,
    host_reserved: _Path | _Value | None = None,
    chunk: _Path | _Value | None = None,
    prefill_buffers: _Path | _Value | None = None,
    prefill_overlap: bool | None = None,
    activations: _Path | _Value | None = None,
    graphs: _Path | _Value | None = None,
    process: _Path | _Value | None = None,
    other: _Path | _Value | None = None,
    slack: _Path | _Value | None = None,
    speculate: _Path | _Value | None = None,
    accept: _Path | _Values | None = None,
    draft_model: _Path | _Value | None = None,
    fixed_ms: _Path | _Value | None = None,
    measured_step: _Path | _Value | None = None,
    efficiency: _Path | _Value | None = None,
    trace: _Trace | None = None,
    histogram: _Path | _Value | None = None,
    stand_in: bool | None = None,
    uniform: bool | None = None,
    vary: _Path | _Values | None = None,
    threads: _Path | _Value | None = None,
) -> Result: ...

def preflight(
    *,
    model: _Path | _Value,
    allow_unknown: bool | None = None,
    machine: _Path | _Value,
    host: _Path | _Value | None = None,
    disk: _Path | _Value | None = None,
    context: _Path | _Value | None = None,
    users: _Path | _Value | None = None,
    expert_format: _Path | _Value | None = None,
    quant: _Path | _Value | None = None,
    rest_format: _Path | _Value | None = None,
    kv_format: Literal["bf16", "fp8", "q8_0", "q4_0"] | None = None,
    engine: _Path | _Value | None = None,
    ubatch: _Path | _Value | None = None,
    slot_multiplier: _Path | _Value | None = None,
    weights: _Path | _Value | None = None,
    tp: _Path | _Value | None = None,
    ep: _Path | _Value | None = None,
    pp: _Path | _Value | None = None,
    link: _Path | _Value | None = None,
    bank: Literal["inclusive", "exclusive"] | None = None,
    load: Literal["mapped", "copied", "direct"] | None = None,
    cpu_moe: _Path | _Value | None = None,
    no_disk: bool | None = None,
    miss: Literal["fetch", "balanced", "host"] | None = None,
    usable_share: _Path | _Value | None = None,
    free: _Path | _Value | None = None,
    host_reserved: _Path | _Value | None = None,
    chunk: _Path | _Value | None = None,
    prefill_buffers: _Path | _Value | None = None,
    prefill_overlap: bool | None = None,
    activations: _Path | _Value | None = None,
    graphs: _Path | _Value | None = None,
    process: _Path | _Value | None = None,
    other: _Path | _Value | None = None,
    slack: _Path | _Value | None = None,
    speculate: _Path | _Value | None = None,
    accept: _Path | _Values | None = None,
    draft_model: _Path | _Value | None = None,
    fixed_ms: _Path | _Value | None = None,
    measured_step: _Path | _Value | None = None,
    efficiency: _Path | _Value | None = None,
    cached: bool | None = None,
) -> Result: ...

def conform(
    trace: _Trace,
    decisions: _Path | _Value | None = None,
    *,
    policy: _Path | _Value,
    admit: _Path | _Value | None = None,
    scope: Literal["global", "layer"] | None = None,
    capacity: _Path | _Value,
    phase: Literal["decode", "prefill", "verify", "all"] | None = None,
    chunk: _Path | _Value | None = None,
    expert_size: _Path | _Value | None = None,
    record: _Path | _Value | None = None,
) -> Result: ...

def policies(
    name: _Path | _Value | None = None,
) -> Result: ...

class _Experiment:
    @staticmethod
    def semantic(
        trace: _Trace | None = None,
        *,
        arm: _Path | _Values | None = None,
        against: _Path | _Values | None = None,
        capacity: _Path | _Value | None = None,
        scope: Literal["global", "layer"] | None = None,
        link: _Path | _Values | None = None,
        folds: _Path | _Value | None = None,
        train: _Path | _Value | None = None,
        drift: _Path | _Value | None = None,
        users: _Path | _Value | None = None,
        expert_size: _Path | _Value | None = None,
        resamples: _Path | _Value | None = None,
        seed: _Path | _Value | None = None,
        threads: _Path | _Value | None = None,
        compute_ms: _Path | _Value | None = None,
        machine: _Path | _Value | None = None,
        dense_bytes: _Path | _Value | None = None,
        copies: Literal["in-order", "demand-first", "two-engines"] | None = None,
        wait: Literal["all", "hits-first"] | None = None,
        no_contention: bool | None = None,
        host_threads: _Path | _Value | None = None,
        repeat: _Path | _Values | None = None,
        progress: _Progress = None,
    ) -> Result: ...
    @staticmethod
    def prefetch(
        trace: _Trace | None = None,
        *,
        arm: _Path | _Values | None = None,
        against: _Path | _Values | None = None,
        capacity: _Path | _Value | None = None,
        scope: Literal["global", "layer"] | None = None,
        link: _Path | _Values | None = None,
        folds: _Path | _Value | None = None,
        train: _Path | _Value | None = None,
        drift: _Path | _Value | None = None,
        users: _Path | _Value | None = None,
        expert_size: _Path | _Value | None = None,
        resamples: _Path | _Value | None = None,
        seed: _Path | _Value | None = None,
        threads: _Path | _Value | None = None,
        compute_ms: _Path | _Value | None = None,
        machine: _Path | _Value | None = None,
        dense_bytes: _Path | _Value | None = None,
        copies: Literal["in-order", "demand-first", "two-engines"] | None = None,
        wait: Literal["all", "hits-first"] | None = None,
        no_contention: bool | None = None,
        host_threads: _Path | _Value | None = None,
        lookahead: _Path | _Values | None = None,
        repeat: _Path | _Value | None = None,
        time_predictors: bool | None = None,
        progress: _Progress = None,
    ) -> Result: ...
    def __call__(self, name: str, *trace: Any, **settings: Any) -> Result: ...

experiment: _Experiment

class _Link:
    @staticmethod
    def fit(
        input: _Path | _Value,
        *,
        from_: Literal["csv", "benchbw", "disk"] | None = None,
        output: _Path | _Value | None = None,
        name: _Path | _Value | None = None,
        source: _Path | _Value | None = None,
        date: _Path | _Value | None = None,
    ) -> Result: ...
    @staticmethod
    def price(
        links: _Path | _Values,
        *,
        expert_size: _Path | _Value,
        layers: _Path | _Value | None = None,
        top_k: _Path | _Value | None = None,
        hit_rate: _Path | _Value | None = None,
        copied: _Path | _Value | None = None,
        compute_ms: _Path | _Value | None = None,
        host_rate: _Path | _Value | None = None,
    ) -> Result: ...
    @staticmethod
    def list() -> Result: ...
    @staticmethod
    def show(name: str) -> Result: ...

link: _Link
