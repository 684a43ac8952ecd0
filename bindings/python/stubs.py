"""Writes hotset/__init__.pyi from the command line's own description: python stubs.py [--check]."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

# The installed package, not the folder beside this file.
HERE = Path(__file__).resolve().parent
sys.path = [path for path in sys.path if Path(path or ".").resolve() != HERE]

from hotset._commands import COMMANDS  # noqa: E402
from hotset._words import flags  # noqa: E402

HEAD = '''"""Types of `hotset`; written by stubs.py."""

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
'''

FOLLOWED = {"compare", "sweep", "replay", "experiment.semantic", "experiment.prefetch"}


def kind(flag: dict[str, Any]) -> str:
    """The type of an argument."""
    if not flag["takes_value"]:
        return "bool"
    if flag["id"] == "policy" and flag["delimited"]:
        return "_Policies"
    if flag["id"] == "trace":
        return "_Trace"
    if flag["values"]:
        choice = "Literal[" + ", ".join(f'"{value}"' for value in flag["values"]) + "]"
        return f"str | {choice} | Sequence[str]" if flag["delimited"] else choice
    if flag["delimited"] or flag["repeated"]:
        return "_Path | _Values"
    return "_Path | _Value"


def function(name: str, command: list[str], indent: str = "") -> str:
    """The stub of one function."""
    lines = [f"{indent}def {name.split('.')[-1]}("]
    known = flags(command)
    places = {one: flag for one, flag in known.items() if flag["long"] is None}
    named = {one: flag for one, flag in known.items() if flag["long"] is not None}
    for one, flag in places.items():
        default = "" if flag["required"] else " = None"
        optional = kind(flag) if flag["required"] else f"{kind(flag)} | None"
        lines.append(f"{indent}    {one}: {optional}{default},")
    if named or name in FOLLOWED:
        lines.append(f"{indent}    *,")
    for one, flag in named.items():
        default = "" if flag["required"] else " = None"
        optional = kind(flag) if flag["required"] else f"{kind(flag)} | None"
        lines.append(f"{indent}    {one}: {optional}{default},")
    if name in FOLLOWED:
        lines.append(f"{indent}    progress: _Progress = None,")
    return "\n".join([*lines, f"{indent}) -> Result: ..."])


def text() -> str:
    """The whole stub."""
    parts = [HEAD]
    for name, (_, command, _) in COMMANDS.items():
        if "." not in name:
            parts.append(function(name, command) + "\n")
    for group in ("experiment", "link"):
        parts.append(f"class _{group.title()}:")
        for name, (_, command, _) in COMMANDS.items():
            if name.startswith(group + "."):
                parts.append("    @staticmethod\n" + function(name, command, "    "))
        if group == "link":
            parts.append("    @staticmethod\n    def list() -> Result: ...")
            parts.append("    @staticmethod\n    def show(name: str) -> Result: ...")
        else:
            parts.append(
                "    def __call__(self, name: str, *trace: Any, **settings: Any) -> Result: ..."
            )
        parts.append(f"\n{group}: _{group.title()}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    path = Path(__file__).parent / "hotset" / "__init__.pyi"
    if "--check" not in sys.argv:
        path.write_text(text(), encoding="utf-8")
    elif path.read_text(encoding="utf-8") != text():
        sys.exit(f"{path} is not current: python {__file__}")
