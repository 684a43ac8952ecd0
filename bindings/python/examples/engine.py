"""An engine's loop around the cache: what a layer needs, what to copy, what was copied.

The "GPU" is an array of slots that hold the numbers of their experts.
"""

import numpy

import hotset

# [embedding]
trace = hotset.Trace.bundled().slice(phase="decode")
ids = trace.to_numpy()["ids"][:2000]               # [tokens, layers, top_k]
cache = hotset.ExpertCache([64] * 16, top_k=8, slots=256, policy="class-lru")
gpu = numpy.full(256, -1)
hits = copies = 0
for token in ids:
    cache.begin_step(1)
    for layer, chosen in enumerate(token):
        plan = cache.demand(layer, chosen)
        hits += plan.hits
        fetched = plan.actions == hotset.Plan.FETCH
        for expert, slot in zip(plan.experts[fetched], plan.slots[fetched]):
            gpu[slot] = layer * 64 + expert         # the copy to the GPU
            cache.complete(layer, int(expert))
            copies += 1
        cache.release(layer)
print(f"{hits} hits, {copies} copies, {hits / (hits + copies):.1%}")
# [embedding]

assert hits + copies == ids.size, "every expert was there or copied"
