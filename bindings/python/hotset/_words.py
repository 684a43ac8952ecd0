"""From keyword arguments to the words of a command line, by the command line's own description."""

from __future__ import annotations

import difflib
import inspect
import keyword
import math
import numbers
import os
import textwrap
from typing import Any, Callable

from . import _native
from ._trace import Trace

# What a function gives as its result, or takes by its progress bar.
_NOT_HERE = {"output", "format"}


def parameter(flag: dict[str, Any]) -> str:
    """The name in Python of a flag: `--expert-size` is expert_size, `--from` is from_."""
    name = str(flag["long"] or flag["id"]).replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


def flags(command: list[str]) -> dict[str, dict[str, Any]]:
    """The arguments of a command by their names in Python, the positional ones first."""
    # A fitted profile is written beside the result.
    not_here = {"format"} if command == ["link", "fit"] else _NOT_HERE
    known = [f for f in _native.flags(command) if f["id"] not in not_here]
    return {parameter(flag): flag for flag in sorted(known, key=lambda f: f["long"] is not None)}


class Words:
    """The words of a command, and what stands behind some of them in memory."""

    def __init__(self, command: list[str]) -> None:
        """Begin with the command itself, such as ['link', 'fit']."""
        self.words = list(command)
        self.behind: list[str] = []
        self.traces: list[tuple[str, Any]] = []
        self.policies: list[tuple[str, Any]] = []

    def add(self, name: str, flag: dict[str, Any], value: Any) -> None:
        """Add the argument `name`, unless it is None."""
        if value is None:
            return
        if not flag["takes_value"]:
            if not isinstance(value, bool):
                raise TypeError(f"{name}: give True or False, not {value!r}")
            if value:
                self.words.append(f"--{flag['long']}")
            return
        if flag["id"] == "policy" and flag["delimited"]:
            value = self._with_classes(value)
        if isinstance(value, (list, tuple)):
            if not (flag["delimited"] or flag["repeated"]):
                raise TypeError(f"{name}: give one value, not {len(value)}")
            texts = [self._text(name, one) for one in value]
            if flag["delimited"] and texts:
                texts = [",".join(texts)]
        else:
            texts = [self._text(name, value)]
        for text in texts:
            if flag["long"] is None:
                self.behind.append(text)
            else:
                self.words.append(f"--{flag['long']}={text}")

    def all(self) -> list[str]:
        """All words; the positional ones cannot be taken for flags."""
        return [*self.words, "--", *self.behind] if self.behind else self.words

    def _text(self, name: str, value: Any) -> str:
        if isinstance(value, Trace):
            stands = f"memory:{len(self.traces)}"
            self.traces.append((stands, value._inner))
            return stands
        if isinstance(value, bool):
            raise TypeError(f"{name}: {value} is no value of it")
        if isinstance(value, str):
            return value
        if isinstance(value, os.PathLike):
            return str(os.fspath(value))
        if isinstance(value, numbers.Integral):
            return str(int(value))
        if isinstance(value, numbers.Real):
            if not math.isfinite(float(value)):
                raise _native.HotsetError(f"{name}: {value} is not a number")
            return repr(float(value))
        raise TypeError(f"{name}: {value!r} is neither text nor a number")

    def _with_classes(self, value: Any) -> list[Any]:
        """The names of policies; those in Python stand behind theirs."""
        names = []
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(one, str):
                names.append(one)
                continue
            if not callable(one):
                raise TypeError(f"policy: {one!r} is neither a name nor a class")
            name = getattr(one, "name", None)
            name = name if isinstance(name, str) else getattr(one, "__name__", "policy")
            if any(name == known for known, _ in self.policies):
                raise _native.HotsetError(f"policy: two classes are named '{name}'")
            if name in built_in_policies():
                raise _native.HotsetError(
                    f"policy: '{name}' is one of hotset's own; give the class another `name`"
                )
            self.policies.append((name, one))
            names.append(name)
        return names


_BUILT_IN: set[str] = set()


def built_in_policies() -> set[str]:
    """The names of hotset's own policies."""
    if not _BUILT_IN:
        import json

        output, _, _ = _native.run(["policies", "--format=json"])
        listed = json.loads(output)
        _BUILT_IN.update(one["name"] for one in listed["policies"])
    return _BUILT_IN


def unknown(function: str, name: str, known: dict[str, Any]) -> TypeError:
    """The error for an argument that the command does not have."""
    near = difflib.get_close_matches(name, known, 1)
    meant = f"; did you mean '{near[0]}'?" if near else ""
    return TypeError(f"{function}() has no argument '{name}'{meant}")


def documented(
    function: Callable[..., Any], summary: str, known: dict[str, dict[str, Any]], more: str
) -> None:
    """Give a function of **settings the signature and the help of its command."""
    kinds = inspect.Parameter
    parameters, lines = [], [summary, "", "Args:"]
    for name, flag in known.items():
        kind = kinds.POSITIONAL_OR_KEYWORD if flag["long"] is None else kinds.KEYWORD_ONLY
        default = kinds.empty if flag["required"] else None
        parameters.append(kinds(name, kind, default=default))
        text = str(flag["help"] or "").replace("\n", " ")
        if flag["default"] and "[default" not in text:
            text += f" [default: {flag['default']}]"
        if flag["values"]:
            text += f" [{', '.join(flag['values'])}]"
        lines += textwrap.wrap(
            f"{name}: {text}", 96, initial_indent="    ", subsequent_indent="        "
        )
    if "progress" in inspect.signature(function).parameters:
        parameters.append(kinds("progress", kinds.KEYWORD_ONLY, default=None))
        lines.append("    progress: True for a bar, False for none, or a callable that is told")
        lines.append(
            "        (done, of how many) [default: tqdm's bar on a terminal, where there is tqdm]"
        )
    parameters.sort(
        key=lambda p: (p.kind, p.default is not kinds.empty and p.kind != kinds.KEYWORD_ONLY)
    )
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__doc__ = "\n".join(lines) + "\n\n" + more
