"""hotset: replay MoE router traces through a real expert cache and price every miss.

The functions are the command line's commands, with its names and defaults: `hotset.compare(trace,
policy=["lru", "belady"], capacity="25%")` gives what `hotset compare --policy lru,belady --capacity
25%` gives, to the digit. Traces are paths or `Trace` objects, policies are names or classes of your
own. `hotset.record` records routing in an engine and `hotset.testing` tests an engine's cache.
"""

from ._commands import (
    compare,
    conform,
    experiment,
    link,
    plan,
    policies,
    preflight,
    replay,
    sweep,
)
from ._native import ExpertCache, HotsetError, Plan, Pool, __version__
from ._results import Result, Row
from ._trace import Trace

__all__ = [
    "ExpertCache",
    "HotsetError",
    "Plan",
    "Pool",
    "Result",
    "Row",
    "Trace",
    "__version__",
    "compare",
    "conform",
    "experiment",
    "link",
    "plan",
    "policies",
    "preflight",
    "replay",
    "sweep",
]
