"""`ExpertCache` on arrays."""

import numpy as np
import pytest

import hotset
from hotset import ExpertCache, HotsetError, Plan


def test_plans():
    cache = ExpertCache([8, 8], 2, 4)
    plan = cache.demand(0, np.array([5, 3, 5], np.int64))
    assert plan.experts.tolist() == [3, 5] and plan.actions.tolist() == [Plan.FETCH] * 2
    assert (plan.fetches, plan.hits, plan.misses, len(plan)) == (2, 0, 2, 2)
    assert cache.slot_of(0, 3) is None
    assert cache.complete(0, [3, 5]) and not cache.complete(0, 3)
    cache.release(0)
    assert cache.demand(0, [3]).actions.tolist() == [Plan.HIT]
    assert cache.residents().tolist() == [3, 5] and cache.resident == 2
    assert cache.expert_of(13) == (1, 5)
    plan = cache.prefetch(1, np.array([0, 1], np.uint16))
    cache.complete(1, [0, 1])
    assert cache.demand(1, np.array([0], np.uint8)).actions.tolist() == [Plan.PREFETCH_HIT]
    cache.release(0), cache.release(1)
    evicted, moved = cache.resize(3)
    assert len(evicted) == 1 and cache.capacity == 3
    assert all(len(move) == 3 for move in moved)


def test_weights_and_layers_of_their_own():
    cache = ExpertCache([4, 6], [1, 2], [2, 3], policy="mrs", ordered_copies=True)
    cache.begin_step(1)
    cache.demand(1, [5, 2], weights=np.array([0.75, 0.25], np.float32))
    assert (cache.capacity, cache.resident, cache.experts) == (5, 2, [4, 6])
    with pytest.raises(HotsetError, match="scope"):
        cache.resize(5)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda c: c.demand(2, [0]), HotsetError, "layer 2: there are 0 to 1"),
        (lambda c: c.demand(-1, [0]), HotsetError, "layer -1"),
        (
            lambda c: c.demand(0, [0, 8]),
            HotsetError,
            r"experts\[1\] is 8: layer 0 has experts 0 to 7",
        ),
        (lambda c: c.demand(0, np.array([-1])), HotsetError, r"experts\[0\] is -1"),
        (lambda c: c.demand(0, np.array([0.5])), TypeError, "float64.*whole numbers"),
        (lambda c: c.demand(0, "ab"), TypeError, "whole numbers"),
        (lambda c: c.demand(0, [0], weights=[np.nan]), HotsetError, r"weights\[0\] is NaN"),
        (lambda c: c.demand(0, [0], weights=[1, 2]), HotsetError, "2 entries for 1 experts"),
        (lambda c: c.prefetch(0, [9]), HotsetError, "9"),
        (lambda c: c.complete(0, 8), HotsetError, "expert 8"),
        (lambda c: c.slot_of(0, 1 << 70), OverflowError, "too large|convert"),
        (lambda c: c.expert_of(16), HotsetError, "key 16"),
        (lambda c: c.resize(17), HotsetError, "17 slots for 16 experts"),
        (lambda c: c.resize(0), HotsetError, "0 slots"),
        (lambda c: c.resize("a"), TypeError, "whole number"),
        (lambda c: ExpertCache([], 1, 1), HotsetError, "no expert layer"),
        (lambda c: ExpertCache([8], 1, -3), HotsetError, "-3 is no count"),
        (lambda c: ExpertCache([8], [1, 2], 3), HotsetError, "2 entries for 1 layers"),
        (lambda c: ExpertCache([1 << 30], 1, 3), HotsetError, "at most"),
        (lambda c: ExpertCache([8], 1, 3, policy="belady"), HotsetError, "needs the future"),
        (lambda c: ExpertCache([8], 1, 3, policy="lrru"), HotsetError, "did you mean"),
        (lambda c: ExpertCache([8], 1, 3, policy=4), TypeError, "a name or a class"),
    ],
)
def test_bad_calls_are_exceptions(call, error, text):
    with pytest.raises(error, match=text):
        call(ExpertCache([8, 8], 2, 4))


def test_in_use_by_the_policy_that_it_asks():
    class Asks:
        def __init__(self, pool):
            pass

        def hit(self, key):
            pass

        admit = hit

        def evict(self):
            return cache.residents()[0]

    cache = ExpertCache([8], 2, 2, policy=Asks, ordered_copies=True)
    cache.demand(0, [0, 1])
    with pytest.raises(HotsetError, match="the cache is in use"):
        cache.demand(0, [2])


def test_every_scenario_file():
    """The scenario files drive the cache as an engine's own test would."""
    from hotset.testing import scenarios

    checked = 0
    for name, file in scenarios().items():
        for scenario in file["scenarios"]:
            slots = scenario["slots"].get("global", scenario["slots"].get("layer"))
            cache = ExpertCache(
                scenario["experts"],
                scenario["top_k"],
                slots,
                scenario["policy"],
                ordered_copies=scenario.get("ordered_copies", False),
            )
            for call in scenario["calls"]:
                kind = call["call"]
                if kind == "begin_step":
                    cache.begin_step(call["tokens"])
                elif kind == "complete":
                    assert cache.complete(call["layer"], call["expert"]) == call["was_pending"]
                elif kind == "release":
                    cache.release(call["layer"])
                elif kind in ("demand", "prefetch"):
                    if kind == "demand":
                        plan = cache.demand(call["layer"], call["experts"], call.get("weights"))
                    else:
                        plan = cache.prefetch(call["layer"], call["experts"])
                    assert plan.hits == len(call["plan"]["hits"]), (
                        name,
                        scenario["name"],
                        call,
                    )
                    fetched = plan.experts[plan.actions == Plan.FETCH].tolist()
                    assert fetched == [f["expert"] for f in call["plan"]["fetches"]], (
                        name,
                        call,
                    )
                    checked += 1
                elif kind in ("resize", "invalidate"):
                    break
    assert checked > 500


def test_a_hundred_thousand_calls_never_end_the_interpreter():
    random = np.random.default_rng(20261201)
    kinds = (
        "demand",
        "prefetch",
        "complete",
        "release",
        "resize",
        "slot_of",
        "expert_of",
        "step",
    )
    policies = ("lru", "lfu", "s3-fifo", "arc", "td-table", "slru-50+upload-cap:n=1")
    calls = refused = 0
    while calls < 100_000:
        layers = int(random.integers(1, 4))
        experts = random.integers(0, 12, layers).tolist()
        slots = (
            int(random.integers(-1, 14))
            if random.random() < 0.6
            else random.integers(0, 9, layers).tolist()
        )
        try:
            cache = ExpertCache(
                experts,
                int(random.integers(0, 5)),
                slots,
                str(random.choice(policies)),
                ordered_copies=bool(random.integers(2)),
            )
        except (HotsetError, TypeError, OverflowError):
            refused += 1
            calls += 1
            continue
        for _ in range(400):
            calls += 1
            layer = (
                int(random.integers(-1, layers + 1))
                if random.random() < 0.1
                else int(random.integers(layers))
            )
            width = int(random.integers(0, 6))
            high = 13 if random.random() < 0.1 else max(experts[layer % layers], 1)
            ids = random.integers(-1 if random.random() < 0.02 else 0, high, width)
            form = random.random()
            if form < 0.2:
                ids = ids.tolist()
            elif form < 0.4:
                ids = ids.astype(random.choice([np.int32, np.int16, np.int8]))
            elif form < 0.42:
                ids = ids.astype(float)
            elif form < 0.44:
                ids = random.choice([None, "x", 3.5])
            try:
                kind = kinds[int(random.integers(len(kinds)))]
                if kind == "demand":
                    weights = None
                    if random.random() < 0.2:
                        weights = random.random(width).astype(np.float32)
                        if random.random() < 0.1 and width:
                            weights[0] = np.inf
                    plan = cache.demand(layer, ids, weights)
                    assert plan.hits + plan.misses == len(plan)
                elif kind == "prefetch":
                    cache.prefetch(layer, ids)
                elif kind == "complete":
                    cache.complete(layer, ids)
                elif kind == "release":
                    cache.release(layer)
                elif kind == "resize":
                    cache.resize(slots if random.random() < 0.5 else int(random.integers(0, 12)))
                elif kind == "slot_of":
                    cache.slot_of(layer, int(random.integers(-1, 13)))
                elif kind == "expert_of":
                    cache.expert_of(int(random.integers(-1, 40)))
                else:
                    cache.begin_step(int(random.integers(0, 4)))
            except (HotsetError, TypeError, OverflowError):
                refused += 1
            assert cache.resident <= cache.capacity
    assert 0 < refused < calls


def test_traces_of_arbitrary_arrays_never_end_the_interpreter():
    random = np.random.default_rng(7)
    made = 0
    for _ in range(4000):
        shape = tuple(random.integers(0, 5, int(random.integers(0, 5))))
        dtype = random.choice([np.uint8, np.uint16, np.int64, np.int8, np.float32, bool])
        ids = random.integers(0, 6, shape).astype(dtype)
        settings = {}
        if random.random() < 0.5:
            settings["experts"] = int(random.integers(-1, 70000))
        for name in ("sequence", "position", "phase", "step", "token_id"):
            if random.random() < 0.2:
                length = shape[0] if shape and random.random() < 0.9 else 2
                settings[name] = np.sort(random.integers(0, 4, length))
        if random.random() < 0.2:
            settings["weights"] = random.random(shape).astype(np.float32)
        try:
            trace = hotset.Trace.from_numpy(ids, **settings)
        except (HotsetError, TypeError, OverflowError):
            continue
        made += 1
        trace.validate()
        assert np.array_equal(trace.ids, ids)
    assert made > 20
