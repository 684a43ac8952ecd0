"""A policy of one's own, held against hotset's and against the optimum.

As a notebook: `jupytext --to notebook lru_with_a_twist.py`; the last expression of a cell is shown.
"""

# %%
from collections import OrderedDict

import hotset


# %% LRU, but an expert is spared as often as it was hit (at most three times) before it leaves.
class Twist:
    name = "lru-with-a-twist"

    def __init__(self, pool):
        self.credit = OrderedDict()

    def hit(self, key):
        self.credit[key] = min(self.credit[key] + 1, 3)
        self.credit.move_to_end(key)

    def admit(self, key):
        self.credit[key] = 0

    def evict(self):
        # In the order in which they should leave; whoever may not leave now is passed over.
        for key in list(self.credit):
            if self.credit[key] == 0:
                yield key
            else:
                self.credit[key] -= 1
                self.credit.move_to_end(key)
        yield from list(self.credit)

    def left(self, key):
        del self.credit[key]


# %%
result = hotset.compare(
    hotset.Trace.bundled().slice(phase="decode"),
    policy=["lru", "lfu", Twist, "belady"],
    capacity=["12.5%", "25%", "50%"],
    link="h200-pcie",
)
for row in result:
    if row.window == "all":
        ms = row.link("h200-pcie").timeline_ms_per_token
        print(f"{row.policy:18} {row.capacity_slots:4} slots {row.hit_rate:6.1%} hits {ms:6.2f} ms")

# %% Hit rates over the size of the cache, with the optimum above them.
try:
    import matplotlib
except ModuleNotFoundError:
    print("pip install matplotlib draws it")
else:
    matplotlib.use("agg")
    from matplotlib import pyplot

    table = result.to_pandas()
    table = table[table["window"] == "all"].pivot(
        index="capacity_slots", columns="policy", values="hit_rate"
    )
    table.plot(marker="o", ylabel="hit rate", xlabel="slots").figure.savefig("twist.svg")
    pyplot.close("all")
