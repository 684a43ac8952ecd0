"""From a model to a comparison of cache policies: record, import, compare."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from hotset.record import Recorder

from . import models
from .recordings import read

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def hotset():
    """Runs the command line; its path is in HOTSET_BIN, or it was built in target/."""
    names = [REPOSITORY / "target" / kind / "hotset" for kind in ("release", "debug")]
    if "HOTSET_BIN" in os.environ:
        names = [Path(os.environ["HOTSET_BIN"])]
    binary = next((name for name in names if name.is_file()), None)
    if binary is None:
        looked = ", ".join(map(str, names))
        if "CI" in os.environ:
            pytest.fail(f"no hotset at {looked}: build it or set HOTSET_BIN")
        pytest.skip(f"no hotset at {looked}")

    def run(*arguments):
        return subprocess.run(
            [binary, *map(str, arguments)], capture_output=True, text=True, check=False
        )

    return run


def succeed(result):
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Recordings of a model whose first two layers are dense: with batches, and without."""
    folder = tmp_path_factory.mktemp("recorded")
    model = models.deepseek_v3()
    settings = dict(do_sample=False, eos_token_id=None, pad_token_id=models.PAD)
    texts = models.prompts(12, 7, 9)
    facts = dict(name="tiny", lookahead=2, embeddings=True)
    with Recorder(model, folder / "batch.npz", **facts) as recorder:
        recorder.label("a", "b", "c")
        model.generate(**models.padded(texts, "left"), max_new_tokens=30, **settings)
    with Recorder(model, folder / "single.npz", **facts):
        for text in texts:
            model.generate(text[None], max_new_tokens=30, **settings)
    return folder


def imported(hotset, path, folder):
    trace = folder / f"{path.stem}.hst"
    form = path.suffix.removeprefix(".")
    succeed(hotset("trace", "import", "--from", form, path, "-o", trace))
    return trace


def test_a_recording_is_imported_whole(hotset, recorded, tmp_path):
    trace = imported(hotset, recorded / "batch.npz", tmp_path)
    succeed(hotset("trace", "validate", trace))
    info = json.loads(succeed(hotset("trace", "info", trace, "--format", "json")))
    assert info["name"] == "tiny" and info["sequences"] == 3
    assert info["tokens_by_phase"] == {"prefill": 12 + 7 + 9, "decode": 3 * 29, "verify": 0}
    assert info["layers"] == 3 and info["experts"]["max"] == 16 and info["top_k"]["max"] == 4
    present = {column["name"] for column in info["columns"] if column["present"]}
    assert {"weights", "predictions", "embeddings", "token_ids"} <= present


def compare(hotset, trace, *flags):
    shared = ["--capacity", "50%", "--phase", "decode", "--expert-size", "1MiB"]
    result = json.loads(succeed(hotset("compare", trace, *shared, *flags, "--format", "json")))
    rows = {row["policy"]: row for row in result["rows"] if row["window"] == "all"}
    return result, rows["lru"]


def test_a_recording_goes_through_to_compare(hotset, recorded, tmp_path):
    arrays, _ = read(recorded / "single.npz")
    trace = imported(hotset, recorded / "single.npz", tmp_path)
    result, row = compare(hotset, trace, "--policy", "lru,lfu", "--semantics", "sequential")
    assert result["trace"]["tokens"] == len(arrays["sequence"])
    assert (result["trace"]["layers"], result["trace"]["experts"]) == (3, 16)
    decode = arrays["expert_ids"][arrays["phase"] == 1]
    assert row["accesses"] == decode.size
    assert row["hits"] == lru_hits(decode, slots=row["capacity_slots"])


def test_batches_are_replayed_as_they_ran(hotset, recorded, tmp_path):
    arrays, _ = read(recorded / "batch.npz")
    trace = imported(hotset, recorded / "batch.npz", tmp_path)
    result, row = compare(hotset, trace, "--policy", "lru")
    if result["settings"]["steps"] != "recorded":
        pytest.skip("this hotset does not import steps")
    decode = arrays["phase"] == 1
    steps, ids = arrays["step"][decode], arrays["expert_ids"][decode]
    unions = [np.unique(ids[steps == n, layer]) for n in set(steps) for layer in range(3)]
    assert row["accesses"] == sum(map(len, unions)) < ids.size


@pytest.mark.parametrize("name", ["single", "batch"])
def test_predictions_are_replayed(name, hotset, recorded, tmp_path):
    trace = imported(hotset, recorded / f"{name}.npz", tmp_path)
    _, row = compare(hotset, trace, "--policy", "lru", "--prefetch", "ahead")
    assert row["prefetches_used"] > 0


def lru_hits(ids: np.ndarray, slots: int) -> int:
    """An LRU of our own over `[tokens, layers, top-k]`, one access at a time."""
    recent: dict[int, None] = {}
    hits = 0
    for token in ids:
        for layer, chosen in enumerate(token):
            for expert in chosen:
                key = layer * 16 + int(expert)
                hits += key in recent
                recent.pop(key, None)
                recent[key] = None
                if len(recent) > slots:
                    del recent[next(iter(recent))]
    return hits


def test_safetensors_give_the_same_trace(hotset, tmp_path):
    if "safetensors" not in succeed(hotset("trace", "import", "--help")):
        pytest.skip("this hotset does not import safetensors")
    model, (text,) = models.qwen3(), models.prompts(40)
    contents = []
    for suffix in ("npz", "safetensors"):
        with Recorder(model, tmp_path / f"r.{suffix}", lookahead=1, embeddings=True):
            model(text[None])
        trace = imported(hotset, tmp_path / f"r.{suffix}", tmp_path)
        info = json.loads(succeed(hotset("trace", "info", trace, "--format", "json")))
        contents.append((info["digest"], info["columns"]))
    assert contents[0] == contents[1]
