"""Times libCacheSim over a trace in its own format: one line a policy, `name seconds miss-ratio`.

Called by examples/bench_table.rs with the trace, its slots and the rounds; needs the package
`libcachesim` (PyPI). The loop runs inside the library, on one thread; reading its 24-byte records
from the mapped file is part of it.
"""

import sys
import time

import libcachesim

# hotset's name of a policy, and the library's class for the same one.
POLICIES = {
    "lru": "LRU",
    "fifo": "FIFO",
    "random": "Random",
    "clock": "Clock",
    "lfu": "LFU",
    "slru": "SLRU",
    "2q": "TwoQ",
    "arc": "ARC",
    "lirs": "LIRS",
    "s3-fifo": "S3FIFO",
    "sieve": "Sieve",
    "w-tinylfu": "WTinyLFU",
    "lecar": "LeCaR",
    "belady": "Belady",
}
# Hash tables of 2^14: what holds the workload's 6,144 objects without growing.
HASH_POWER = 14


def seconds(policy: str, trace: str, slots: int) -> tuple[float, float]:
    """Processor time of one pass from an empty cache, and the share of requests that missed."""
    parameters = libcachesim.ReaderInitParam(ignore_obj_size=True)
    kind = libcachesim.TraceType.ORACLE_GENERAL_TRACE
    reader = libcachesim.TraceReader(trace, kind, parameters)
    cache = getattr(libcachesim, policy)(slots, hashpower=HASH_POWER)
    begun = time.process_time()
    missed, _ = cache.process_trace(reader)
    return time.process_time() - begun, missed


def main() -> None:
    trace, slots, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for name, policy in POLICIES.items():
        if not hasattr(libcachesim, policy):
            continue
        runs = [seconds(policy, trace, slots) for _ in range(rounds)]
        best = min(took for took, _ in runs)
        print(name, best, runs[0][1], flush=True)


if __name__ == "__main__":
    main()
