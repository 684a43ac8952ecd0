"""The recorder for llama.cpp on llama.cpp itself, held against transformers.

Skipped where `llama_cpp` (llama-cpp-python, which is compiled for minutes) or `gguf` is not
installed: `pip install llama-cpp-python==0.3.36 gguf` into the tests' environment.
"""

from __future__ import annotations

import ctypes
import importlib.util

import numpy as np
import pytest
import torch

from hotset.record import Recorder as TransformersRecorder
from hotset.record.llama_cpp import Recorder

from . import gguf_models, models
from .recordings import of_sequence, read
from .test_end_to_end import compare, hotset, imported, succeed  # noqa: F401

_MISSING = [n for n in ("llama_cpp", "gguf") if importlib.util.find_spec(n) is None]
pytestmark = pytest.mark.skipif(
    bool(_MISSING),
    reason=f"LLAMA.CPP IS NOT TESTED: {' and '.join(_MISSING)} not installed",
)

END = dict(temp=0.0)


@pytest.fixture(scope="module")
def model():
    return models.qwen3(vocab_size=gguf_models.VOCABULARY)


@pytest.fixture(scope="module")
def file(model, tmp_path_factory):
    return gguf_models.write_qwen3(model, tmp_path_factory.mktemp("gguf") / "tiny.gguf")


def load(file, **settings):
    import llama_cpp

    # The cache in full precision, as in transformers.
    settings = dict(n_ctx=256, n_batch=64, n_ubatch=16, type_k=0, type_v=0, **settings)
    return llama_cpp.Llama(str(file), verbose=False, n_threads=1, **settings)


def generated(llm, prompt, count):
    """Runs a prompt and `count` tokens after it: all tokens that ran."""
    tokens = list(prompt)
    for token in llm.generate(list(prompt), temp=0.0):
        tokens.append(token)
        if len(tokens) == len(prompt) + count + 1:
            break
    return tokens[:-1]


def expected(model, texts, path):
    """What transformers chooses for whole texts."""
    with TransformersRecorder(model, path, weights="f32"), torch.no_grad():
        for text in texts:
            model(torch.tensor([text]))
    arrays, _ = read(path)
    return [of_sequence(arrays, number) for number in range(len(texts))]


def assert_rows(found, whole):
    places = found["position"]
    assert np.array_equal(found["token_id"], whole["token_id"][places])
    assert np.array_equal(found["expert_ids"], whole["expert_ids"][places])
    assert np.allclose(found["expert_weights"], whole["expert_weights"][places], atol=1e-4)


def test_llama_class_with_prefix_reuse(model, file, tmp_path):
    prompts = [text.tolist() for text in models.prompts(90, 7)]
    prompts.append(prompts[1][:4] + prompts[0][:20])
    with Recorder(tmp_path / "l.npz", weights="f32") as recorder:
        llm = load(file)
        recorder.label("long", "short", "prefix")
        texts = [generated(llm, prompt, 9) for prompt in prompts]
    arrays, info = read(tmp_path / "l.npz")
    wholes = expected(model, texts, tmp_path / "t.npz")
    for number, (prompt, text, whole) in enumerate(zip(prompts, texts, wholes)):
        found = of_sequence(arrays, number)
        first = 4 if number == 2 else 0
        assert found["position"].tolist() == [*range(first, len(text))]
        assert found["phase"].tolist() == [0] * (len(prompt) - first) + [1] * 9
        assert_rows(found, whole)
    assert info["experts"] == 16 and info["top_k"] == 4 and info["moe_layer_ids"] == [0, 1, 2]
    assert info["sequence_labels"] == ["long", "short", "prefix"] and info["model"] == "tiny"


def test_a_prompt_one_token_longer_than_the_batch(file, tmp_path):
    prompt = models.prompts(65)[0].tolist()
    with Recorder(tmp_path / "l.npz"):
        llm = load(file)
        generated(llm, prompt, 3)
        # The whole prompt is there but for its last token, which runs again.
        generated(llm, prompt, 2)
    arrays, _ = read(tmp_path / "l.npz")
    assert arrays["phase"].tolist() == [0] * 65 + [1] * 3 + [0] + [1] * 2
    assert arrays["position"].tolist() == [*range(68), 64, 65, 66]


@pytest.mark.parametrize("unified", [False, True])
def test_sequences_side_by_side(unified, model, file, tmp_path):
    import llama_cpp

    texts = [text.tolist() for text in models.prompts(30, 9, 23)]
    with Recorder(tmp_path / "l.npz", weights="f32") as recorder:
        recorder.label("a", "b", "c")
        held = load(file)
        params = type(held.context_params).from_buffer_copy(held.context_params)
        held._ctx.close()
        params.n_seq_max, params.kv_unified = 3, unified
        context = llama_cpp.llama_init_from_model(held._model.model, params)
        given = llama_cpp.llama_batch_init(128, 0, 1)
        decode(given, context, [(s, range(len(t) - 1)) for s, t in enumerate(texts)], texts)
        decode(given, context, [(s, [len(t) - 1]) for s, t in enumerate(texts)], texts)
        llama_cpp.llama_batch_free(given)
        llama_cpp.llama_free(context)
    arrays, info = read(tmp_path / "l.npz")
    for number, whole in enumerate(expected(model, texts, tmp_path / "t.npz")):
        found = of_sequence(arrays, number)
        assert found["position"].tolist() == [*range(len(texts[number]))]
        assert found["phase"].tolist() == [0] * (len(texts[number]) - 1) + [1]
        assert_rows(found, whole)
    assert info["sequence_labels"] == ["a", "b", "c"]
    ends = [arrays["step"][arrays["sequence"] == number][-1] for number in range(3)]
    assert len(set(ends)) == 1


def decode(given, context, runs, texts):
    import llama_cpp

    given.n_tokens = 0
    for number, places in runs:
        for place in places:
            at = given.n_tokens
            given.token[at], given.pos[at] = texts[number][place], place
            given.n_seq_id[at], given.seq_id[at][0] = 1, number
            given.logits[at] = place == places[-1]
            given.n_tokens += 1
    assert llama_cpp.llama_decode(context, given) == 0


def test_prompts_without_their_last_layer(model, file, tmp_path):
    prompt = models.prompts(50)[0].tolist()
    with pytest.warns(UserWarning, match="49 tokens were left out"):
        with Recorder(tmp_path / "l.npz", weights="f32", whole_prompts=False):
            text = generated(load(file), prompt, 5)
    found = of_sequence(read(tmp_path / "l.npz")[0], 0)
    assert found["position"].tolist() == [*range(49, 55)]
    assert_rows(found, expected(model, [text], tmp_path / "t.npz")[0])


def test_recording_changes_no_answer(file, tmp_path):
    prompt = models.prompts(70)[0].tolist()
    plain = generated(load(file), prompt, 20)
    with Recorder(tmp_path / "l.npz"):
        llm = load(file)
        assert generated(llm, prompt, 20) == plain
    # The context outlives the recording.
    llm.reset()
    assert generated(llm, prompt, 20) == plain


def test_a_draft_model_is_refused(file, tmp_path):
    from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

    from hotset.record import RecorderError

    with pytest.raises(RecorderError, match="a draft_model cannot be recorded"):
        with Recorder(tmp_path / "l.npz"):
            llm = load(file, draft_model=LlamaPromptLookupDecoding())
            generated(llm, [5, 6, 7], 4)


def test_the_layout_is_proven_on_the_library_itself():
    import llama_cpp

    from hotset.record.ggml import Tensor

    library = ctypes.CDLL(llama_cpp.llama_cpp._lib._name)
    library.ggml_tensor_overhead.restype = ctypes.c_size_t
    # A header of 32 bytes stands before each tensor.
    assert library.ggml_tensor_overhead() == 32 + ctypes.sizeof(Tensor)


def test_a_recording_goes_through_to_compare(hotset, file, tmp_path):  # noqa: F811
    with Recorder(tmp_path / "l.npz"):
        llm = load(file)
        for text in models.prompts(30, 12):
            generated(llm, text.tolist(), 25)
    trace = imported(hotset, tmp_path / "l.npz", tmp_path)
    succeed(hotset("trace", "validate", trace))
    result, row = compare(hotset, trace, "--policy", "lru", "--semantics", "sequential")
    assert result["trace"]["tokens"] == 30 + 12 + 2 * 25
    assert row["accesses"] == 2 * 25 * 3 * 4
