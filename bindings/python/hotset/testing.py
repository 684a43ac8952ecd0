"""Tests of an engine's own cache: its decision log against a policy, and unit tests as data.

In an engine's test suite:

    from hotset.testing import assert_conforms

    assert_conforms("engine.jsonl", trace, "slru-50", capacity=384, phase="decode")
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

from . import _native
from ._commands import call
from ._results import Result

__all__ = ["assert_conforms", "check_conforms", "record_log", "scenarios"]


def check_conforms(
    log: str | os.PathLike[str] | Iterable[Mapping[str, Any]],
    trace: Any,
    policy: str,
    capacity: Any,
    **settings: Any,
) -> Result:
    """Compare an engine's decisions with a policy's: `.passed`, and `.data["divergence"]`.

    Args:
        log: the engine's log (.jsonl, docs/conform.md), or its events as dicts:
            {"step": 0, "layer": 0, "hits": [3],
            "fetches": [{"expert": 7, "slot": 2, "evicted": None}]}.
        trace: the `Trace` or the path of the one that the engine ran.
        policy: the policy's name.
        capacity: slots (384), a share ("25%") or a size ("40GiB").
        settings: as `hotset conform`'s flags: scope, phase, admit, chunk, expert_size.

    Raises:
        HotsetError: the log is malformed or of another trace; says which line.
    """
    if isinstance(log, (str, os.PathLike)):
        return call(["conform"], {"policy": policy, "capacity": capacity, **settings}, (trace, log))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "engine.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            for event in log:
                file.write(json.dumps(event, separators=(",", ":")) + "\n")
        return call(["conform"], {"policy": policy, "capacity": capacity, **settings}, (trace, path))


def assert_conforms(
    log: str | os.PathLike[str] | Iterable[Mapping[str, Any]],
    trace: Any,
    policy: str,
    capacity: Any,
    **settings: Any,
) -> None:
    """Fail where an engine does not decide as the policy; arguments as `check_conforms`.

    Raises:
        AssertionError: with the first event that differs, and the rule that decides.
        HotsetError: the log is malformed or of another trace.
    """
    result = check_conforms(log, trace, policy, capacity, **settings)
    if result.passed:
        return
    found = result.data["divergence"]
    where = ", ".join(
        f"{key} {found[key]}" for key in ("line", "event", "step", "layer") if key in found
    )
    lines = [f"the engine does not decide as '{policy}' ({where}): {found.get('what')}"]
    for key in ("rule", "asked", "resident_before", "engine", "policy"):
        if key in found:
            lines.append(f"  {key}: {found[key]}")
    raise AssertionError("\n".join(lines))


def record_log(
    path: str | os.PathLike[str], trace: Any, policy: str, capacity: Any, **settings: Any
) -> None:
    """Write the log of the policy itself, as an engine that decides like it would."""
    from ._words import Words, flags

    known = flags(["conform"])
    words = Words(["conform"])
    given = {"trace": trace, "policy": policy, "capacity": capacity, "record": path, **settings}
    for name, value in given.items():
        words.add(name, known[name], value)
    _native.run(words.all(), words.traces)


def scenarios() -> dict[str, dict[str, Any]]:
    """The scenario files (docs/scenarios.md) by name: calls to a cache with the answers expected."""
    return {name: json.loads(text) for name, text in _native.scenarios()}
