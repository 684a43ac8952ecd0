"""The command line's commands as functions: same names, same defaults, same results."""

from __future__ import annotations

import warnings as python_warnings
from typing import Any

from . import _native
from ._progress import Progress, told
from ._results import Result
from ._words import Words, documented, flags, unknown

_RAISES = """Returns:
    `Result`: `.rows`, `.to_pandas()`, `.to_json()` (the command line's bytes), `.notes`.

Raises:
    HotsetError: what the command line refuses; the text says what, where and what to do.
    KeyboardInterrupt: Ctrl-C; nothing was written.
"""


def call(
    command: list[str],
    settings: dict[str, Any],
    positional: tuple[Any, ...] = (),
    progress: bool | Progress | None = False,
) -> Result:
    """Run a command with keyword arguments named after its flags."""
    name = " ".join(command)
    known = flags(command)
    places = [one for one, flag in known.items() if flag["long"] is None]
    if len(positional) > len(places):
        raise TypeError(f"{name}() takes {len(places)} arguments by position")
    given = dict(zip(places, positional))
    for one, value in settings.items():
        if one not in known:
            raise unknown(name, one, known)
        if one in given:
            raise TypeError(f"{name}() got '{one}' twice")
        given[one] = value
    words = Words(command)
    for one, value in given.items():
        words.add(one, known[one], value)
    if words.policies:
        if given.get("resume") is not None:
            raise _native.HotsetError(
                "resume: a journal cannot tell a class from a changed one of its name; leave it out"
            )
        # They take turns at the interpreter anyway.
        if given.get("threads") is None:
            words.add("threads", known["threads"], 1)
    words.words.append("--format=json")
    tell, close = told(progress, name)
    try:
        output, notes, passed = _native.run(words.all(), words.traces, words.policies, tell)
    finally:
        close()
    for note in notes:
        if note.startswith("warning: "):
            python_warnings.warn(note.removeprefix("warning: "), stacklevel=3)
    return Result(name, output, notes, passed)


def compare(*trace: Any, progress: bool | Progress | None = None, **settings: Any) -> Result:
    return call(["compare"], settings, trace, progress)


def sweep(*trace: Any, progress: bool | Progress | None = None, **settings: Any) -> Result:
    return call(["sweep"], settings, trace, progress)


def replay(*trace: Any, progress: bool | Progress | None = None, **settings: Any) -> Result:
    return call(["replay"], settings, trace, progress)


def plan(**settings: Any) -> Result:
    return call(["plan"], settings)


def preflight(**settings: Any) -> Result:
    return call(["preflight"], settings)


def conform(*trace: Any, **settings: Any) -> Result:
    return call(["conform"], settings, trace)


def policies(*name: Any) -> Result:
    return call(["policies"], {}, name)


class _Experiment:
    """Experiments: `experiment.semantic(...)`, `experiment.prefetch(...)`."""

    @staticmethod
    def semantic(*trace: Any, progress: bool | Progress | None = None, **settings: Any) -> Result:
        return call(["experiment", "semantic"], settings, trace, progress)

    @staticmethod
    def prefetch(*trace: Any, progress: bool | Progress | None = None, **settings: Any) -> Result:
        return call(["experiment", "prefetch"], settings, trace, progress)

    def __call__(self, name: str, *trace: Any, **settings: Any) -> Result:
        """`experiment("prefetch", ...)` is `experiment.prefetch(...)`."""
        if name not in ("semantic", "prefetch"):
            raise _native.HotsetError(f"experiment '{name}': there are 'semantic' and 'prefetch'")
        return getattr(self, name)(*trace, **settings)  # type: ignore[no-any-return]


class _Link:
    """Links: `link.fit(...)`, `link.price(...)`, `link.list()`, `link.show(name)`."""

    @staticmethod
    def fit(*links: Any, **settings: Any) -> Result:
        return call(["link", "fit"], settings, links)

    @staticmethod
    def price(*links: Any, **settings: Any) -> Result:
        return call(["link", "price"], settings, links)

    @staticmethod
    def list() -> Result:
        """All built-in links and machines."""
        return call(["link", "list"], {})

    @staticmethod
    def show(name: str) -> Result:
        """A link, a machine or a profile in full."""
        return call(["link", "show"], {}, (name,))


experiment = _Experiment()
link = _Link()

# Each function with its command, for its help and for the stubs.
COMMANDS: dict[str, tuple[Any, list[str], str]] = {
    "compare": (compare, ["compare"], "Compare policies over capacities and links."),
    "sweep": (sweep, ["sweep"], "Compare policies over many capacities: curves, knees."),
    "replay": (replay, ["replay"], "Replay one setting in full: layers, percentiles of times."),
    "plan": (plan, ["plan"], "Plan a model on a machine: does it fit, how fast is it."),
    "preflight": (preflight, ["preflight"], "Check what each rank must have free: `.passed`."),
    "conform": (conform, ["conform"], "Compare an engine's log with a policy: `.passed`."),
    "policies": (policies, ["policies"], "List policies and prefetchers, or define one."),
    "experiment.semantic": (
        _Experiment.semantic,
        ["experiment", "semantic"],
        "Does a cache keyed on what the conversation is about beat recency?",
    ),
    "experiment.prefetch": (
        _Experiment.prefetch,
        ["experiment", "prefetch"],
        "What does each predictor know, what does it move, and where does that pay?",
    ),
    "link.fit": (_Link.fit, ["link", "fit"], "Fit a machine's profile to measured links."),
    "link.price": (
        _Link.price,
        ["link", "price"],
        "Price a token over links, without a trace.",
    ),
}

_POLICY = """A policy may be a class: `Policy(pool)` is made for each pool of slots (`pool.capacity`,
`pool.keys`), then told `hit(key)` and `admit(key)`, and asked `evict()` when a key needs a slot: a
resident key, an iterable of them in the order in which they should leave (experts that the running
event needs are passed over), or None to keep all and decline the newcomer. Optional: `left(key)`,
`event(layer, keys, weights)` before each layer's accesses, `step(tokens)`. Its class attribute `name`
is its name in the results.

"""

for _name, (_function, _command, _summary) in COMMANDS.items():
    _known = flags(_command)
    documented(_function, _summary, _known, (_POLICY if "policy" in _known else "") + _RAISES)
