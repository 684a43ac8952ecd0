"""The file: whole or not at all, the same bytes for the same run, in bounded memory."""

from __future__ import annotations

import gc
import json
import os
import re
import threading
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

import hotset.record as hotset_recorder
from hotset.record import Recorder, RecorderError
from hotset.record.output import Array, write
from hotset.record.spool import Column, Spool

from . import models
from .recordings import read
from .toy import Config, Toy

TYPES = {
    "expert_ids": "uint8",
    "expert_weights": "float16",
    "predicted_ids": "uint8",
    "sequence": "uint32",
    "position": "uint32",
    "token_id": "uint32",
    "phase": "uint8",
    "step": "uint32",
    "prompt_embedding_in": "float16",
    "prompt_embedding_out": "float16",
}


@pytest.fixture(scope="module")
def model():
    return models.qwen3()


def record(model, path: Path, **settings) -> Path:
    with Recorder(model, path, lookahead=1, embeddings=True, **settings):
        batch = models.padded(models.prompts(5, 3, 8), "left")
        end = dict(do_sample=False, eos_token_id=None, pad_token_id=models.PAD)
        model.generate(**batch, max_new_tokens=6, **end)
        model.generate(models.prompts(7)[0][None], max_new_tokens=4, **end)
    return path


def test_arrays_have_the_types_and_shapes_of_the_format(model, tmp_path):
    arrays, info = read(record(model, tmp_path / "r.npz", name="tiny", info={"set": "x"}))
    tokens = (5 + 3 + 8) + 3 * 5 + 7 + 3
    assert {name: str(array.dtype) for name, array in arrays.items()} == TYPES
    assert arrays["expert_ids"].shape == arrays["expert_weights"].shape == (tokens, 3, 4)
    assert arrays["predicted_ids"].shape == (1, tokens, 3, 4)
    assert arrays["prompt_embedding_in"].shape == (4, 32)
    assert info["model"] == "tiny" and info["set"] == "x"
    assert info["layout"] == "hotset-npz/1"
    assert info["recorder"] == f"hotset-recorder {hotset_recorder.__version__}"


def test_safetensors_hold_the_same_arrays(model, tmp_path):
    arrays, info = read(record(model, tmp_path / "r.npz"))
    path = record(model, tmp_path / "r.safetensors")
    safetensors = pytest.importorskip("safetensors")
    with safetensors.safe_open(path, framework="numpy") as file:
        assert sorted(file.keys()) == sorted(arrays)
        assert json.loads(file.metadata()["info"]) == info
        for name, array in arrays.items():
            found = file.get_tensor(name)
            assert found.dtype == array.dtype and np.array_equal(found, array)


def test_the_same_run_gives_the_same_bytes(model, tmp_path):
    for suffix in ("npz", "safetensors"):
        first = record(model, tmp_path / f"a.{suffix}").read_bytes()
        assert record(model, tmp_path / f"b.{suffix}").read_bytes() == first


def test_small_buffers_give_the_same_file(model, tmp_path):
    whole = record(model, tmp_path / "a.npz")
    pieces = record(model, tmp_path / "b.npz", buffer_bytes=100)
    assert pieces.read_bytes() == whole.read_bytes()


def test_compressed_arrays_are_the_same(model, tmp_path):
    plain, _ = read(record(model, tmp_path / "a.npz"))
    path = record(model, tmp_path / "b.npz", compress=True)
    with zipfile.ZipFile(path) as file:
        assert {entry.compress_type for entry in file.infolist()} == {zipfile.ZIP_DEFLATED}
    for name, array in read(path)[0].items():
        assert np.array_equal(array, plain[name])


@pytest.mark.parametrize("stop", [KeyboardInterrupt, ValueError])
def test_an_interrupted_recording_leaves_nothing(model, stop, tmp_path):
    with pytest.raises(stop):
        with Recorder(model, tmp_path / "r.npz", temporary=tmp_path, buffer_bytes=1):
            model(models.prompts(5)[0][None])
            raise stop
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_recording_can_be_kept(model, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        with Recorder(model, tmp_path / "r.npz") as recorder:
            model(models.prompts(5)[0][None])
            recorder.close()
            raise KeyboardInterrupt
    assert len(read(tmp_path / "r.npz")[0]["sequence"]) == 5


def test_a_failing_write_leaves_the_old_file(model, tmp_path, monkeypatch):
    path = tmp_path / "r.npz"
    path.write_bytes(b"before")

    def full(self, name):
        yield b"half"
        raise OSError("no space left")

    monkeypatch.setattr(Spool, "blocks", full)
    with pytest.raises(OSError, match="no space left"):
        record(model, path, overwrite=True)
    assert [file.name for file in tmp_path.iterdir()] == ["r.npz"]
    assert path.read_bytes() == b"before"


def test_a_failed_forward_pass_is_no_row(model, tmp_path):
    (text,) = models.prompts(5)
    layer = model.model.layers[2]

    def fail(*_):
        raise ValueError("out of memory")

    with Recorder(model, tmp_path / "r.npz"):
        hook = layer.register_forward_pre_hook(fail)
        with pytest.raises(ValueError, match="out of memory"):
            model(text[None])
        hook.remove()
        model(text[None])
    arrays, _ = read(tmp_path / "r.npz")
    assert arrays["sequence"].tolist() == [0] * 5


def test_hooks_are_gone_afterwards(model, tmp_path):
    record(model, tmp_path / "r.npz")
    for module in model.modules():
        assert not module._forward_hooks and not module._forward_pre_hooks
        assert "generate" not in vars(module)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (dict(path="r.hst"), "must end in .npz or .safetensors"),
        (dict(path="no/r.npz"), "there is no folder"),
        (dict(path="old.npz"), "overwrite=True replaces it"),
        (dict(lookahead=3), "has 3 layers that route, so 0 to one less"),
        (dict(weights="f8"), "known are f16, f32, u8 and None"),
        (dict(info={"layers": 3}), "layers are the recorder's own keys"),
        (dict(info={"x": object()}), "info: not JSON"),
        (dict(info={"x": float("nan")}), "info: not JSON"),
        (dict(routers=["model.layers.0.nothing"]), "is no module of"),
    ],
)
def test_arguments_are_checked_before_anything_runs(model, settings, why, tmp_path):
    (tmp_path / "old.npz").touch()
    path = tmp_path / settings.pop("path", "r.npz")
    with pytest.raises(RecorderError, match=re.escape(why)):
        Recorder(model, path, **settings)


def test_models_without_a_known_router_are_refused(tmp_path):
    with pytest.raises(RecorderError, match="Linear has no router that is known"):
        Recorder(torch.nn.Linear(2, 2), tmp_path / "r.npz")


def test_nothing_recorded_is_no_file(model, tmp_path):
    with pytest.raises(RecorderError, match="nothing was recorded"):
        with Recorder(model, tmp_path / "r.npz"):
            pass
    assert list(tmp_path.iterdir()) == []


def test_one_recorder_a_model_at_a_time(model, tmp_path):
    with Recorder(model, tmp_path / "r.npz"):
        with pytest.raises(RecorderError, match="one recorder a model at a time"):
            Recorder(model, tmp_path / "s.npz").start()
        model.generate(models.prompts(3)[0][None], max_new_tokens=2)
    assert (tmp_path / "r.npz").exists()


def test_another_thread_is_refused_and_the_first_goes_on(model, tmp_path):
    ids = torch.arange(4)[None]
    with Recorder(model, tmp_path / "a.npz"):
        model(ids)
        errors = []

        def run():
            try:
                model(ids)
            except RecorderError as error:
                errors.append(str(error))

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        model(ids)
    assert len(errors) == 1 and "another thread runs the model" in errors[0]
    with np.load(tmp_path / "a.npz") as arrays:
        assert len(arrays["token_id"]) == 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes to fork")
def test_a_forked_process_adds_nothing(model, tmp_path):
    ids = torch.arange(4)[None]
    with Recorder(model, tmp_path / "a.npz", buffer_bytes=1) as recorder:
        model(ids)
        child = os.fork()
        if child == 0:
            refused = 0
            for attempt in (lambda: model(ids), recorder.close):
                try:
                    attempt()
                except RecorderError:
                    refused += 1
            os._exit(refused)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
        model(ids)
    with np.load(tmp_path / "a.npz") as arrays:
        assert len(arrays["token_id"]) == 8


def test_labels_left_over_are_warned_about(model, tmp_path):
    with pytest.warns(UserWarning, match="1 labels were left over"):
        with Recorder(model, tmp_path / "r.npz") as recorder:
            recorder.label("a", "b")
            model(models.prompts(3)[0][None])


def test_the_spool_and_the_file_take_bounded_memory(tmp_path):
    """240 MiB of rows of 64 mixed sequences, through a buffer of 4 MiB."""
    rows, buffer = 1 << 14, 4 << 20
    column = Column("expert_ids", np.dtype(np.uint8), (48, 8))
    block = np.arange(rows * 48 * 8, dtype=np.uint8).reshape(rows, 48, 8)
    sequences = np.arange(rows) % 64
    steps = (240 << 20) // block.nbytes
    gc.collect()
    tracemalloc.start()
    spool = Spool([column], buffer, tmp_path)
    for _ in range(steps):
        spool.append(sequences, {"expert_ids": block})
    shape = (spool.rows, 48, 8)
    array = Array("expert_ids", column.dtype, shape, lambda: spool.blocks("expert_ids"))
    write(tmp_path / "r.npz", [array], "{}", compress=False)
    spool.close()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (tmp_path / "r.npz").stat().st_size > 240 << 20
    # One append is larger than the buffer: its rows joined, sorted, and as bytes.
    assert peak < 3 * block.nbytes + (2 << 20)
    with np.load(tmp_path / "r.npz") as file:
        found = file["expert_ids"].reshape(64, steps, rows // 64, 48, 8)
    for number in (0, 63):
        assert (found[number] == block[number::64]).all()


def test_a_long_recording_takes_no_more_memory_than_a_short_one(tmp_path):
    model, ids = Toy(Config("mixtral")), torch.arange(1000).reshape(4, 250) % 50
    peaks = []
    for passes in (50, 250):
        gc.collect()
        tracemalloc.start()
        with Recorder(model, tmp_path / f"{passes}.npz", buffer_bytes=64 << 10):
            with torch.no_grad():
                for _ in range(passes):
                    model(ids)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert (tmp_path / "250.npz").stat().st_size > 8 << 20
    # A label and 12 runs of 24 bytes for the sequences of each pass.
    # Each of the 800 sequences more is in one or two buffers: about 100 bytes for each.
    assert peaks[1] < peaks[0] + 800 * 160 and max(peaks) < 1 << 20, peaks
