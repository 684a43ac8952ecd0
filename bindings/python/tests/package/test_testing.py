"""Helpers for an engine's own tests, types, and the recorder's names."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import hotset
from hotset.testing import assert_conforms, check_conforms, record_log

HERE = Path(__file__).parent.parent.parent


def test_an_engine_that_decides_as_the_policy_and_one_that_does_not(tmp_path):
    trace = hotset.Trace.bundled().slice(sequences=[0])
    log = tmp_path / "engine.jsonl"
    record_log(log, trace, "lru", 256, phase="decode")
    assert_conforms(log, trace, "lru", 256, phase="decode")
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert_conforms(events, trace, "lru", capacity=256, phase="decode")
    assert not check_conforms(log, trace, "fifo", 256, phase="decode").passed
    wrong = next(index for index, event in enumerate(events) if len(event["fetches"]) > 1)
    first, second = events[wrong]["fetches"][:2]
    first["evicted"], second["evicted"] = second["evicted"], first["evicted"]
    if first["evicted"] == second["evicted"]:
        events[wrong]["fetches"].pop()
    with pytest.raises((AssertionError, hotset.HotsetError), match="'lru'|line|fetch"):
        assert_conforms(events, trace, "lru", capacity=256, phase="decode")
    with pytest.raises(AssertionError, match="does not decide as 'fifo'"):
        assert_conforms(log, trace, "fifo", 256, phase="decode")
    log.write_text("{}\n")
    with pytest.raises(hotset.HotsetError, match="engine.jsonl"):
        assert_conforms(log, trace, "lru", 256, phase="decode")


def test_the_recorder_needs_no_engine():
    code = "import hotset.record, sys; sys.exit('torch' in sys.modules or 'llama_cpp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    old = importlib.import_module("hotset_recorder")
    assert old.RecorderError is importlib.import_module("hotset.record").RecorderError


def test_the_stubs_are_current():
    done = subprocess.run(
        [sys.executable, str(HERE / "stubs.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_readmes_example_runs(tmp_path):
    readme = (HERE / "README.md").read_text(encoding="utf-8")
    example = readme.split("```python\n")[1].split("```")[0]
    assert len(example.strip().splitlines()) <= 10
    done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_the_example_of_a_policy_runs(tmp_path):
    path = HERE / "examples" / "lru_with_a_twist.py"
    body = path.read_text(encoding="utf-8").split("class ")[1].split("\n\n\n")[0]
    assert len(body.splitlines()) <= 25
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "belady" in done.stdout
