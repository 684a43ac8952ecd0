"""Traces of arrays, files and parts."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import hotset
from hotset import HotsetError, Trace


def routes(tokens=40, layers=3, top_k=2, experts=8, dtype=np.uint8):
    random = np.random.default_rng(1)
    ids = np.stack(
        [[random.choice(experts, top_k, replace=False) for _ in range(layers)] for _ in range(tokens)]
    )
    return ids.astype(dtype)


def test_arrays_in_and_out():
    ids = routes()
    weights = np.full(ids.shape, 0.5, np.float32)
    sequence = np.repeat([7, 9], 20)
    phase = np.tile(np.repeat([0, 1], 10), 2)
    trace = Trace.from_numpy(
        ids,
        experts=8,
        weights=weights,
        sequence=sequence,
        phase=phase,
        labels=["a", "b"],
        name="x",
    )
    assert (trace.name, trace.tokens, len(trace)) == ("x", 40, 40)
    assert np.array_equal(trace.ids, ids) and np.array_equal(trace.weights, weights)
    columns = trace.to_numpy()
    assert columns["position"].tolist() == [*range(20)] * 2
    assert columns["sequence"].tolist() == [0] * 20 + [1] * 20
    assert trace.sequences[1] == dict(id=9, label="b", prompt_tokens=10, start=20, end=40)
    assert trace.layers[2] == dict(number=2, experts=8, top_k=2, expert_bytes=0)
    frame = trace.to_pandas()
    assert len(frame) == 120 and frame["experts"][4].tolist() == ids[1, 1].tolist()
    table = trace.to_arrow()
    assert table.num_rows == 40 and table["ids"][3].as_py() == ids[3].reshape(-1).tolist()


@pytest.mark.parametrize("dtype", [np.uint16, np.int64, np.int32, np.int8])
def test_every_integer_type(dtype):
    ids = routes()
    of = Trace.from_numpy(ids.astype(dtype), experts=8)
    assert of == Trace.from_numpy(ids, experts=8) and of.digest == Trace.from_numpy(ids).digest
    wide = Trace.from_numpy(ids.astype(dtype), experts=300)
    assert wide.ids.dtype == np.uint16 and np.array_equal(wide.ids, ids)


def test_nothing_is_copied():
    ids = routes()
    trace = Trace.from_numpy(ids, experts=8)
    assert trace._inner._address() == ids.ctypes.data
    assert not ids.flags.writeable
    wide = routes(experts=300, dtype=np.uint16)
    assert Trace.from_numpy(wide, experts=300)._inner._address() == wide.ctypes.data
    turned = np.asfortranarray(routes())
    assert Trace.from_numpy(turned, experts=8) == trace
    del ids
    assert trace.ids[0, 0, 0] == turned[0, 0, 0]


def test_peak_memory_has_no_second_array():
    code = (
        "import resource, numpy, hotset\n"
        "ids = numpy.zeros((2_500_000, 8, 8), numpy.uint8)\n"
        "ids += numpy.arange(8, dtype=numpy.uint8)\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024\n"
        "before = peak(); trace = hotset.Trace.from_numpy(ids, experts=64)\n"
        "print(ids.nbytes / 2**20, peak() - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    array, more = map(float, done.stdout.split())
    # Positions and phases are 5 bytes a token beside the ids' 64.
    assert more < array / 4, f"{more} MiB beside an array of {array} MiB"


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: Trace.from_numpy(routes().astype(float)), TypeError, "float64.*integer type"),
        (lambda: Trace.from_numpy(routes()[0]), HotsetError, r"\[tokens, layers, top_k\]"),
        (lambda: Trace.from_numpy(np.zeros((0, 2, 2), int)), HotsetError, "nothing in it"),
        (lambda: Trace.from_numpy(np.array([[[0, -1]]])), HotsetError, r"ids\[0, 0, 1\] is -1"),
        (
            lambda: Trace.from_numpy(np.array([[[0, 70000]]])),
            HotsetError,
            r"\[0, 0, 1\] is 70000",
        ),
        (lambda: Trace.from_numpy(routes(), experts=4), HotsetError, "expert"),
        (
            lambda: Trace.from_numpy(routes(), experts=[8, 8]),
            HotsetError,
            "2 entries for 3 layers",
        ),
        (lambda: Trace.from_numpy(routes(), experts=-1), HotsetError, "-1 is not 0 to"),
        (lambda: Trace.from_numpy(routes(), experts=1 << 40), HotsetError, "is not 0 to"),
        (lambda: Trace.from_numpy(np.array([[[3, 3]]])), HotsetError, "twice|distinct|repeat"),
        (
            lambda: Trace.from_numpy(routes(), weights=np.full((40, 3, 2), np.nan)),
            HotsetError,
            r"weights\[0, 0, 0\] is nan",
        ),
        (
            lambda: Trace.from_numpy(routes(), weights=np.zeros((40, 3), np.float32)),
            HotsetError,
            r"shape \[40, 3\]",
        ),
        (lambda: Trace.from_numpy(routes(), weights=np.zeros(9, "U3")), TypeError, "float32"),
        (
            lambda: Trace.from_numpy(routes(), phase=np.full(40, 3)),
            HotsetError,
            r"phase\[0\] is 3",
        ),
        (lambda: Trace.from_numpy(routes(), step=np.zeros(3, int)), HotsetError, "40 tokens"),
        (lambda: Trace.from_numpy(routes(), step=np.arange(40)[::-1]), HotsetError, "step"),
        (
            lambda: Trace.from_numpy(routes(), sequence=np.tile([0, 1], 20)),
            HotsetError,
            "follow each other",
        ),
        (lambda: Trace.from_numpy("abc"), TypeError, "integer"),
        (lambda: Trace("abc"), TypeError, "open"),
        (
            lambda: Trace.from_numpy(routes()).slice(sequences=[5]),
            HotsetError,
            "no sequence|sequences",
        ),
        (lambda: Trace.from_numpy(routes()).slice(rows=1), TypeError, "no argument 'rows'"),
        (
            lambda: Trace.from_numpy(routes()).save("/nonexistent/x.hst"),
            HotsetError,
            "nonexistent",
        ),
        (lambda: Trace.from_numpy(routes()).save("x.hst", zstd=99), HotsetError, "1 to 19"),
    ],
)
def test_bad_input_is_an_exception(make, error, text):
    with pytest.raises(error, match=text):
        made = make()
        assert made is None, made


def test_files_and_parts(tmp_path):
    trace = Trace.from_numpy(routes(), experts=8, sequence=np.repeat([0, 1], 20))
    path = tmp_path / "t.hst"
    trace.save(path)
    assert Trace.open(path) == trace
    part = trace.slice(tokens=range(5, 25))
    assert np.array_equal(part.ids, trace.ids[5:25]) and len(part.sequences) == 2
    assert trace.slice(sequences=[1]).tokens == 20
    assert trace.compose(concurrency=2).to_numpy()["step"].max() == 19
    assert sorted(trace.shuffle(seed=1).ids.tolist()) == sorted(trace.ids.tolist())
    assert pickle.loads(pickle.dumps(trace)) == trace
    assert hash(pickle.loads(pickle.dumps(trace))) == hash(trace)
    npz = tmp_path / "t.npz"
    trace.export(npz, to="npz")
    assert Trace.import_(npz).digest == trace.digest
    with pytest.raises(HotsetError, match="there is no format 'npx'"):
        Trace.import_(npz, from_="npx")
    assert trace.info()["layers"] == 3 and trace.validate() is None
    assert repr(trace).startswith("Trace('numpy', 40 tokens, 3 layers, decode, digest ")


def test_the_bundled_trace():
    trace = Trace.bundled()
    assert (trace.tokens, len(trace.layers)) == (21504, 16)
    assert trace.ids.shape == (21504, 16, 8) and trace.ids.dtype == np.uint8
    again = Trace.from_numpy(trace.ids, experts=64, sequence=trace.to_numpy()["sequence"])
    assert again.digest == trace.digest
    assert hotset.compare(again, policy="lru", capacity=256, expert_size=1).rows
