"""A sweep over a cluster of three nodes, processes of this machine; one of them is killed."""

import pytest

import hotset

ray = pytest.importorskip("ray", reason="ray is not installed: pip install hotset[ray]")

POLICIES = "lru,mru,fifo,clock,lfu,slru,2q,arc,s3-fifo,sieve"


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    cluster.killed = cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(scope="module")
def traces():
    whole = hotset.Trace.bundled()
    return [
        whole.slice(sequences=range(2), phase="decode"),
        whole.slice(sequences=range(2, 4), phase="decode"),
    ]


def test_a_sweep_is_that_of_one_machine_and_a_lost_one_changes_nothing(cluster, traces, tmp_path):
    from hotset.ray import sweep

    settings = dict(link="h200-pcie")
    capacity = "5%..100%:5%"
    alone = [hotset.sweep(t, policy=POLICIES, capacity=capacity, **settings) for t in traces]
    shared = sweep(traces, POLICIES, capacity, journal=tmp_path / "one", **settings)
    assert [result.to_json() for result in shared] == [result.to_json() for result in alone]

    def lose(done, of):
        if done == 3:
            cluster.remove_node(cluster.killed, allow_graceful=False)

    shared = sweep(traces, POLICIES, capacity, progress=lose, **settings)
    assert [result.to_json() for result in shared] == [result.to_json() for result in alone]
    # The journals are the command line's.
    told = []
    resumed = sweep(
        traces,
        POLICIES,
        capacity,
        journal=tmp_path / "one",
        progress=lambda *n: told.append(n),
        **settings,
    )
    assert resumed == alone and not told


def test_experiments(cluster, traces):
    from hotset.ray import experiment

    settings = dict(arm=["lru/ahead"], resamples=100)
    shared = experiment("prefetch", traces[:1], seeds=[1, 2], **settings)
    alone = [hotset.experiment("prefetch", traces[0], seed=seed, **settings) for seed in (1, 2)]
    assert shared == alone
