"""Policies in Python beside hotset's own."""

from collections import OrderedDict

import numpy as np
import pytest

import hotset
from hotset import HotsetError


class Mine:
    """LRU."""

    name = "mine"

    def __init__(self, pool):
        self.order = OrderedDict()

    def hit(self, key):
        self.order.move_to_end(key)

    def admit(self, key):
        self.order[key] = None

    def evict(self):
        return next(iter(self.order))

    def left(self, key):
        del self.order[key]


@pytest.fixture(scope="module")
def trace():
    return hotset.Trace.bundled().slice(sequences=range(8))


def same_but_for_names(rows, one, other):
    def of(name):
        return [
            {k: v for k, v in row.flat().items() if k != "policy"} for row in rows if row.policy == name
        ]

    assert of(one) and of(one) == of(other)


@pytest.mark.parametrize("semantics", ["event", "sequential"])
@pytest.mark.parametrize("scope", ["global", "layer"])
def test_a_policy_in_python_decides_as_the_same_one_in_rust(trace, semantics, scope):
    settings = {"no_timeline": True} if semantics == "sequential" else {}
    result = hotset.compare(
        trace,
        policy=["lru", Mine, "belady"],
        capacity="25%",
        scope=scope,
        semantics=semantics,
        **settings,
    )
    same_but_for_names(result.rows, "lru", "mine")


def test_everything_around_a_policy_works_on_it(trace):
    settings = dict(capacity="25%", phase="decode", prefetch="ahead", admit="upload-cap:n=2")
    settings["schedule"] = "100:20%,200:30%"

    class Patient(Mine):
        """What is predicted stays: the oldest may not be who leaves."""

        name = "patient"

        def evict(self):
            return iter(self.order)

    result = hotset.compare(trace, policy=["lru", Patient], **settings)
    same_but_for_names(result.rows, "lru+upload-cap:n=2", "patient+upload-cap:n=2")
    result = hotset.replay(trace, policy=Mine, capacity=200)
    assert result.rows


def test_an_iterable_passes_over_what_is_needed(trace):
    class Mru(Mine):
        name = "newest"

        def evict(self):
            return reversed(self.order)

    result = hotset.compare(trace, policy=["mru", Mru], capacity="25%", phase="decode")
    same_but_for_names(result.rows, "mru", "newest")

    class Careless(Mine):
        name = "careless"

        def evict(self):
            return next(reversed(self.order))

    with pytest.raises(HotsetError, match=r"'careless'.*expert \d+ of layer \d+.*may not leave now"):
        hotset.compare(trace, policy=Careless, capacity="25%")


def test_events_steps_and_declining(trace):
    calls = []

    class Seen(Mine):
        name = "seen"

        def step(self, tokens):
            calls.append(("step", tokens))

        def event(self, layer, keys, weights):
            calls.append(("event", layer, len(keys), len(weights)))

        def evict(self):
            return None

    result = hotset.compare(trace, policy=Seen, capacity="25%", phase="decode", no_timeline=True)
    assert calls[0] == ("step", 1) and calls[1][:3] == ("event", 0, 8)
    row = result.rows[0]
    # What it declines goes through a transient buffer.
    assert row.unplaced > 0 and row.demand_fetches - row.unplaced == 256


@pytest.mark.parametrize(
    ("evict", "text"),
    [
        (
            lambda self: 5_000_000,
            r"evict\(\) gave 5000000 \(step \d+, layer \d+\); keys are 0 to 1023",
        ),
        (lambda self: -1, r"gave -1"),
        (
            lambda self: next(k for k in range(1024) if k not in self.order),
            "which is not resident",
        ),
        (lambda self: 3.5, r"gave a float \(step \d+, layer \d+\)"),
        (lambda self: ["x"], "raised TypeError in evict"),
        (lambda self: 1 / 0, r"raised ZeroDivisionError in evict\(\) \(step \d+, layer \d+\)"),
    ],
)
def test_what_a_policy_does_wrong_is_told(trace, evict, text):
    wrong = type("Wrong", (Mine,), {"evict": evict, "name": "wrong"})
    with pytest.raises((HotsetError, TypeError), match=text) as told:
        hotset.compare(trace, policy=["lru", wrong], capacity="25%")
    assert "'wrong'" in str(told.value)
    # And the next one is none the worse.
    assert hotset.compare(trace, policy=Mine, capacity="25%", no_timeline=True).rows


def test_what_raises_keeps_its_cause(trace):
    class Raises(Mine):
        def hit(self, key):
            raise LookupError("lost")

    Raises.name = "raises"
    with pytest.raises(HotsetError, match=r"raised LookupError in hit\(\d+\).*: lost") as told:
        hotset.compare(trace, policy=Raises, capacity="25%")
    assert isinstance(told.value.__cause__, LookupError)

    class Unmade:
        def __init__(self):
            pass

    with pytest.raises(HotsetError, match="'Unmade' raised TypeError when it was made"):
        hotset.compare(trace, policy=Unmade)
    with pytest.raises(TypeError, match="no method 'admit'"):
        hotset.compare(trace, policy=type("Half", (), {"__init__": lambda s, p: None, "hit": print}))
    with pytest.raises(HotsetError, match="'lru' is one of hotset's own"):
        hotset.compare(trace, policy=type("lru", (Mine,), {"name": "lru"}))
    with pytest.raises(HotsetError, match="letters, digits"):
        hotset.compare(trace, policy=type("x", (Mine,), {"name": "a,b"}))
    with pytest.raises(HotsetError, match="journal"):
        hotset.sweep(trace, policy=Mine, resume="j")


def test_keyboard_interrupt_in_a_policy(trace):
    class Stops(Mine):
        name = "stops"

        def evict(self):
            raise KeyboardInterrupt

    with pytest.raises((KeyboardInterrupt, HotsetError)):
        hotset.compare(trace, policy=Stops, capacity="25%")


def test_the_cache_with_a_policy_of_ones_own():
    for ordered in (False, True):
        caches = [
            hotset.ExpertCache([16, 16], 2, 6, policy=policy, ordered_copies=ordered)
            for policy in ("lru", Mine)
        ]
        random = np.random.default_rng(3)
        for _ in range(500):
            layer, experts = int(random.integers(2)), random.integers(0, 16, 2)
            plans = [cache.demand(layer, experts) for cache in caches]
            for field in ("experts", "slots", "evicted", "actions"):
                assert np.array_equal(*(getattr(plan, field) for plan in plans)), field
            for cache in caches:
                cache.complete(layer, experts)
                cache.release(layer)

    class Stuck(Mine):
        def evict(self):
            return 99

    cache = hotset.ExpertCache([16], 2, 2, policy=Stuck, ordered_copies=True)
    cache.demand(0, [0, 1])
    with pytest.raises(HotsetError, match="keys are 0 to 15"):
        cache.demand(0, [2])
    with pytest.raises(HotsetError, match="failed in a call before"):
        cache.demand(0, [3])
