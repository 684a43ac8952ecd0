"""The functions against the command line: the same bytes."""

import inspect
import json
import pickle
import subprocess

import numpy as np
import pytest

import hotset

from .binary import HOTSET

needs_hotset = pytest.mark.skipif(HOTSET is None, reason="no hotset binary: set HOTSET_BIN")


def command_line(*words):
    done = subprocess.run(
        [HOTSET, *words, "--format", "json"], capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture(scope="module")
def trace():
    return hotset.Trace.bundled()


@needs_hotset
def test_compare_is_the_command_lines(trace):
    told = command_line(
        "compare",
        "--policy",
        "lru,lfu,lru-k:k=3,belady",
        "--capacity",
        "25%,384",
        "--phase",
        "decode",
    )
    result = hotset.compare(
        trace,
        policy=["lru", "lfu", "lru-k:k=3", "belady"],
        capacity=["25%", 384],
        phase="decode",
    )
    assert result.to_json() == told
    assert [row.policy for row in result][:2] == ["lru", "lru"]
    # Without a trace: the bundled one, as on the command line.
    assert hotset.compare(policy="lru", capacity=384, phase="decode").rows == [
        row for row in result.rows if row.policy == "lru" and row.capacity_slots == 384
    ]


@needs_hotset
def test_compare_of_a_file_with_flags_of_every_kind(trace, tmp_path):
    path = tmp_path / "t.hst"
    trace.slice(sequences=range(6)).save(path)
    told = command_line(
        "compare",
        str(path),
        "--policy",
        "lru",
        "--no-timeline",
        "--warmup",
        "10",
        "--concurrency",
        "2",
        "--arrival",
        "shuffled",
        "--expert-size",
        "1MiB",
        "--seed",
        "3",
    )
    settings = dict(policy="lru", no_timeline=True, warmup=10, concurrency=2, arrival="shuffled")
    settings.update(expert_size="1MiB", seed=3)
    assert hotset.compare(path, **settings).to_json() == told
    assert hotset.compare(hotset.Trace.open(path), **settings).to_json() == told


@needs_hotset
def test_sweep_is_the_command_lines(trace, tmp_path):
    words = ["--policy", "lru,s3-fifo", "--capacity", "10%..50%:10%", "--phase", "decode"]
    journal = tmp_path / "journal"
    told = command_line("sweep", *words, "--resume", str(journal))
    settings = dict(policy="lru,s3-fifo", capacity="10%..50%:10%", phase="decode")
    result = hotset.sweep(trace, **settings)
    assert result.to_json() == told
    # The command line's journal is gone on with.
    assert hotset.sweep(trace, resume=journal, **settings).to_json() == told


@needs_hotset
def test_replay_is_the_command_lines(trace):
    told = command_line("replay", "--phase", "decode", "--capacity", "384", "--prefetch", "ahead")
    assert hotset.replay(trace, phase="decode", capacity=384, prefetch="ahead").to_json() == told


@needs_hotset
def test_plan_is_the_command_lines(trace):
    words = ["--model", "OLMoE-1B-7B", "--machine", "rtx-4090"]
    told = command_line("plan", *words, "--trace", "bundled", "--context", "32768")
    settings = dict(model="OLMoE-1B-7B", machine="rtx-4090")
    assert hotset.plan(trace=trace, context=32768, **settings).to_json() == told
    told = command_line("plan", *words, "--uniform", "--vary", "users=1..4")
    assert hotset.plan(uniform=True, vary=["users=1..4"], **settings).to_json() == told


@needs_hotset
def test_experiment_is_the_command_lines(trace):
    words = ["--arm", "lru/ahead", "--arm", "lru/popularity", "--resamples", "200"]
    told = command_line("experiment", "prefetch", *words)
    arms = ["lru/ahead", "lru/popularity"]
    assert hotset.experiment.prefetch(trace, arm=arms, resamples=200).to_json() == told
    assert hotset.experiment("prefetch", trace, arm=arms, resamples=200).to_json() == told


@needs_hotset
def test_link_fit_is_the_command_lines(tmp_path):
    csv = tmp_path / "links.csv"
    rows = ["device,link,mode,bytes,transfers,ms"]
    for size in (1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24):
        rows += [f"gpu,pcie,batched,{size},{n},{0.01 + n * size / 50e6}" for n in (1, 4, 16)]
    csv.write_text("\n".join(rows) + "\n")
    done = subprocess.run(
        [HOTSET, "link", "fit", str(csv), "--name", "m", "--format", "json"],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        with pytest.raises(hotset.HotsetError) as told:
            hotset.link.fit(csv, name="m")
        assert str(told.value) in done.stderr
    else:
        profile = tmp_path / "m.toml"
        fitted = hotset.link.fit(csv, name="m", output=profile)
        assert json.loads(done.stdout)["links"] == fitted.data["links"]
        assert profile.read_text().startswith("name = ")


def test_results_to_look_at(trace):
    result = hotset.compare(trace, policy=["lru", "lfu"], capacity="25%", phase="decode")
    frame = result.to_pandas()
    assert len(frame) == len(result) and "h200-pcie.serial_ms_per_token" in frame.columns
    row = result.rows[0]
    assert row.link("h200-pcie").serial_ms_per_token == frame["h200-pcie.serial_ms_per_token"][0]
    assert row["hits"] + row["misses"] == row.accesses
    assert "<table>" in result._repr_html_() and "lfu" in result._repr_html_()
    assert repr(result) == f"<hotset compare: {len(result)} rows>"
    assert pickle.loads(pickle.dumps(result)) == result
    assert pickle.loads(pickle.dumps(row)).hits == row.hits
    with pytest.raises(KeyError, match="no link 'nvlink'; there are: h200-pcie, h200-nvlink"):
        row.link("nvlink")
    with pytest.raises(AttributeError, match="no 'hitrate'"):
        getattr(row, "hitrate")  # noqa: B009


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"policy": "lrru"}, hotset.HotsetError, "did you mean 'lru'"),
        ({"polcy": "lru"}, TypeError, "did you mean 'policy'"),
        ({"capacity": "0"}, hotset.HotsetError, "capacity|slots"),
        ({"capacity": float("nan")}, hotset.HotsetError, "capacity: nan is not a number"),
        ({"phase": "encode"}, hotset.HotsetError, "encode"),
        ({"no_timeline": 3}, TypeError, "True or False"),
        ({"seed": True}, TypeError, "seed"),
        ({"seed": [1, 2]}, TypeError, "one value"),
        ({"policy": 7}, TypeError, "neither a name nor a class"),
        ({"link": object()}, TypeError, "neither text nor a number"),
    ],
)
def test_bad_settings_are_exceptions(trace, settings, error, text):
    with pytest.raises(error, match=text):
        hotset.compare(trace, **settings)


@needs_hotset
def test_a_sample_is_the_command_lines(trace):
    settings = {"policy": "lru", "capacity": "25%", "link": "h200-pcie", "sample": "25%", "seed": 3}
    told = command_line(
        *("compare", "--policy", "lru", "--capacity", "25%", "--link", "h200-pcie"),
        *("--sample", "25%", "--seed", "3"),
    )
    result = hotset.compare(trace, **settings)
    assert result.to_json() == told
    assert result.data["settings"]["sample"]["sequences"] == 12
    with pytest.raises(hotset.HotsetError, match="sample"):
        hotset.compare(trace, sample="0%")


def test_a_missing_trace_is_told():
    with pytest.raises(hotset.HotsetError, match="nowhere.hst"):
        hotset.compare("nowhere.hst")
    with pytest.raises(hotset.HotsetError, match="nowhere.hst"):
        hotset.Trace.open("nowhere.hst")


def test_help_names_the_flags():
    signature = inspect.signature(hotset.compare)
    assert list(signature.parameters)[:2] == ["trace", "policy"]
    assert "expert_size" in signature.parameters and "progress" in signature.parameters
    assert "lru,clock,lfu" in hotset.compare.__doc__
    assert inspect.signature(hotset.plan).parameters["model"].default is inspect.Parameter.empty


def test_progress_is_told(trace):
    told = []
    hotset.compare(trace, policy=["lru", "lfu"], capacity="25%", progress=lambda *n: told.append(n))
    done, of = told[-1]
    assert done == of > 1

    def stop(done, of):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        hotset.sweep(trace, policy=["lfu"], progress=stop)


LONG = (
    "import hotset, numpy, signal\n"
    # Shells start what runs behind them with Ctrl-C ignored.
    "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "ids = numpy.random.default_rng(0).integers(0, 64, (200000, 8, 4), dtype=numpy.uint8)\n"
    "ids = numpy.sort(ids, axis=2); ids += numpy.arange(4, dtype=numpy.uint8) * 64\n"
    "sequence = numpy.arange(200000, dtype=numpy.uint32) // 5000\n"
    "trace = hotset.Trace.from_numpy(ids, experts=256, sequence=sequence)\n"
    "print('ready', flush=True)\n"
    "try:\n"
    "    {}\n"
    "except KeyboardInterrupt:\n"
    "    print('stopped', flush=True)\n"
)


@pytest.mark.parametrize(
    "work",
    [
        "hotset.sweep(trace, policy=['lfu', 'lru-k', 'arc'], expert_size=1)",
        "hotset.plan(model='gpt-oss-120b', machine='rtx-4090', trace=trace, stand_in=True, users=32)",
        "hotset.plan(model='gpt-oss-120b', machine='rtx-4090', trace=trace, stand_in=True, "
        "vary=['users=1..32', 'speculate=0..3'])",
    ],
)
def test_ctrl_c_ends_what_takes_long(work):
    import signal
    import sys
    import time

    code = LONG.format(work)
    run = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "ready\n"
    time.sleep(0.4)
    begun = time.monotonic()
    run.send_signal(signal.SIGINT)
    assert run.stdout.readline() == "stopped\n"
    # Within a second where nobody else computes.
    assert time.monotonic() - begun < 5
    assert run.wait() == 0


def test_the_interpreter_runs_beside_a_replay(trace):
    import threading

    result = []
    thread = threading.Thread(
        target=lambda: result.append(hotset.sweep(trace, policy="lfu", capacity="10%..90%:10%"))
    )
    thread.start()
    count = 0
    while thread.is_alive():
        np.arange(10).sum()
        count += 1
    assert count > 1000 and result[0].rows
