"""Which token of which sequence a row is: calls, turns, chunks, padding, labels."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import DynamicCache

from hotset.record import Recorder, RecorderError

from . import models
from .recordings import of_sequence, read

GREEDY = dict(do_sample=False, eos_token_id=None, pad_token_id=models.PAD)


@pytest.fixture(scope="module")
def model():
    return models.qwen3()


def test_calls_and_batches_follow_each_other(model, tmp_path):
    one, *two = models.prompts(4, 3, 5)
    with Recorder(model, tmp_path / "r.npz") as recorder:
        recorder.label("first", "second")
        model.generate(one[None], max_new_tokens=3, **GREEDY)
        model.generate(**models.padded(two, "left"), max_new_tokens=2, **GREEDY)
    arrays, info = read(tmp_path / "r.npz")
    assert info["sequence_labels"] == ["first", "second", ""]
    assert arrays["sequence"].tolist() == [0] * 6 + [1] * 4 + [2] * 6
    assert arrays["position"].tolist() == [*range(6), *range(4), *range(6)]
    assert arrays["phase"].tolist() == [0] * 4 + [1] * 2 + [0] * 3 + [1] + [0] * 5 + [1]
    assert arrays["step"].tolist() == [0] * 4 + [1, 2] + [3] * 3 + [4] + [3] * 5 + [4]
    for number, text in enumerate((one, *two)):
        rows = of_sequence(arrays, number)
        assert rows["token_id"][: len(text)].tolist() == text.tolist()


def test_several_answers_to_a_prompt_share_its_label(model, tmp_path):
    torch.manual_seed(1)
    with Recorder(model, tmp_path / "r.npz") as recorder:
        recorder.label("a", "b")
        batch = models.padded(models.prompts(2, 3), "left")
        settings = {**GREEDY, "do_sample": True, "num_return_sequences": 2}
        model.generate(**batch, max_new_tokens=2, **settings)
    arrays, info = read(tmp_path / "r.npz")
    assert info["sequence_labels"] == ["a", "a", "b", "b"]
    assert arrays["sequence"].tolist() == [0] * 3 + [1] * 3 + [2] * 4 + [3] * 4


def test_a_second_turn_on_the_same_cache_goes_on(model, tmp_path):
    first, more = models.prompts(5, 4)
    cache = DynamicCache(config=model.config)
    with Recorder(model, tmp_path / "r.npz", embeddings=True):
        settings = dict(max_new_tokens=3, past_key_values=cache, **GREEDY)
        answer = model.generate(first[None], **settings)
        whole = torch.cat([answer, more[None]], dim=1)
        whole = model.generate(whole, **settings)
    with Recorder(model, tmp_path / "f.npz"), torch.no_grad():
        model(whole[:, :-1])
    arrays, info = read(tmp_path / "r.npz")
    assert info["sequence_labels"] == [""]
    # The answer's last token is fed with the second turn's text.
    assert arrays["phase"].tolist() == [0] * 5 + [1] * 2 + [0] * 5 + [1] * 2
    assert arrays["token_id"].tolist() == whole[0, :-1].tolist()
    assert np.array_equal(arrays["expert_ids"], read(tmp_path / "f.npz")[0]["expert_ids"])
    inputs = model.get_input_embeddings()(first).mean(0).detach().half().numpy()
    assert np.array_equal(arrays["prompt_embedding_in"], inputs[None])


def test_a_loop_of_ones_own_with_chunks(model, tmp_path):
    (text,) = models.prompts(10)
    with Recorder(model, tmp_path / "r.npz"), torch.no_grad():
        cache = None
        for chunk in text.split([4, 4, 1, 1]):
            cache = model(chunk[None], past_key_values=cache, use_cache=True).past_key_values
    arrays, _ = read(tmp_path / "r.npz")
    assert arrays["phase"].tolist() == [0] * 8 + [1, 1]
    assert arrays["step"].tolist() == [0] * 4 + [1] * 4 + [2, 3]
    assert arrays["token_id"].tolist() == text.tolist()


def test_chunked_prompts_inside_generate_are_prefill_to_the_last_token(model, tmp_path):
    (text,) = models.prompts(9)
    with Recorder(model, tmp_path / "r.npz"):
        model.generate(text[None], max_new_tokens=2, prefill_chunk_size=4, **GREEDY)
    arrays, _ = read(tmp_path / "r.npz")
    assert arrays["step"].tolist() == [0] * 4 + [1] * 4 + [2, 3]
    assert arrays["phase"].tolist() == [0] * 9 + [1]


def test_a_static_cache_is_recorded_like_a_dynamic_one(model, tmp_path):
    batch = models.padded(models.prompts(3, 6), "left")
    for name in ("static", "dynamic"):
        settings = dict(cache_implementation=name, disable_compile=True, **GREEDY)
        with Recorder(model, tmp_path / f"{name}.npz"):
            for _ in range(2):  # the second call takes the first one's cache, emptied
                model.generate(**batch, max_new_tokens=4, **settings)
    static, dynamic = (read(tmp_path / f"{n}.npz")[0] for n in ("static", "dynamic"))
    assert len(static["sequence"]) == 2 * (3 + 6 + 2 * 3)
    for name in ("sequence", "position", "phase", "token_id", "expert_ids"):
        assert np.array_equal(static[name], dynamic[name]), name


def test_a_custom_end_is_told_by_its_padding(model, tmp_path):
    batch = models.padded(models.prompts(3, 3), "left")
    free = model.generate(**batch, max_new_tokens=8, **GREEDY)
    end = free[0, 5]

    def ended(ids, scores, **_):
        return (ids[:, 3:] == end).any(dim=1)

    settings = {**GREEDY, "eos_token_id": models.VOCABULARY - 1}
    with Recorder(model, tmp_path / "r.npz"):
        whole = model.generate(**batch, max_new_tokens=8, stopping_criteria=[ended], **settings)
    arrays, _ = read(tmp_path / "r.npz")
    for number in range(2):
        tokens = of_sequence(arrays, number)["token_id"]
        assert tokens.tolist() == [t for t in whole[number, :-1].tolist() if t != models.PAD]


def test_embeddings_are_means_over_the_first_prompt(model, tmp_path):
    texts = models.prompts(4, 7)
    with Recorder(model, tmp_path / "r.npz", embeddings=True):
        model.generate(**models.padded(texts, "left"), max_new_tokens=3, **GREEDY)
    arrays, _ = read(tmp_path / "r.npz")
    for number, text in enumerate(texts):
        with torch.no_grad():
            into = model.model.embed_tokens(text).mean(0)
            out = model.model(text[None]).last_hidden_state[0].mean(0)
        assert np.allclose(arrays["prompt_embedding_in"][number], into, atol=1e-3)
        assert np.allclose(arrays["prompt_embedding_out"][number], out, atol=2e-3)
        assert arrays["prompt_embedding_in"].dtype == np.float16


def test_embeddings_as_input_leave_no_token_ids(model, tmp_path):
    (text,) = models.prompts(4)
    with Recorder(model, tmp_path / "r.npz", embeddings=True), torch.no_grad():
        model(inputs_embeds=model.get_input_embeddings()(text)[None])
    arrays, info = read(tmp_path / "r.npz")
    assert "token_id" not in arrays and "given embeddings" in info["token_id"]
    assert len(arrays["sequence"]) == 4


def test_a_step_that_generate_undid_is_dropped(model, tmp_path, monkeypatch):
    """On some devices generate() runs one pass too many and takes it back."""
    (text,) = models.prompts(4)
    plain = type(model).generate

    def one_too_many(self, ids, **settings):
        return plain(self, ids, max_new_tokens=4, **settings)[:, :-1]

    monkeypatch.setattr(type(model), "generate", one_too_many)
    with Recorder(model, tmp_path / "r.npz"):
        whole = model.generate(text[None], **GREEDY)
    arrays, _ = read(tmp_path / "r.npz")
    assert whole.shape == (1, 7)
    assert arrays["token_id"].tolist() == whole[0, :-1].tolist()


def test_rows_of_packed_sequences_are_refused(model, tmp_path):
    ids, positions = models.prompts(5)[0][None], torch.tensor([[0, 1, 2, 0, 1]])
    with pytest.raises(RecorderError, match="packed sequences"):
        with Recorder(model, tmp_path / "r.npz"):
            model(ids, position_ids=positions)


def test_a_cache_from_before_the_recording_is_refused(model, tmp_path):
    (text,) = models.prompts(4)
    cache = model(text[None], use_cache=True).past_key_values
    with pytest.raises(RecorderError, match="4 columns that were not recorded"):
        with Recorder(model, tmp_path / "r.npz"):
            model(text[None], past_key_values=cache)


def test_a_cache_that_was_cut_is_refused(model, tmp_path):
    (text,) = models.prompts(6)
    with pytest.raises(RecorderError, match="holds 3 columns of 1 sequences, 6 of 1"):
        with Recorder(model, tmp_path / "r.npz"):
            cache = model(text[None], use_cache=True).past_key_values
            cache.crop(-3)
            model(text[None, 3:], past_key_values=cache)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (dict(num_beams=3), "beam search cannot be recorded: beams swap places"),
        (dict(prompt_lookup_num_tokens=3), "assisted generation .* rejected drafts"),
        (dict(use_cache=False), "without a KV cache cannot be recorded: each step runs"),
        (dict(cache_implementation="static"), "hooks need eager steps"),
        (dict(penalty_alpha=0.6, top_k=4), "contrastive search"),
        (dict(guidance_scale=1.5), "guidance_scale cannot be recorded"),
    ],
)
def test_generation_without_one_token_a_row_is_refused(model, settings, why, tmp_path):
    (text,) = models.prompts(4)
    with pytest.raises(RecorderError, match=why):
        with Recorder(model, tmp_path / "r.npz"):
            model.generate(text[None], max_new_tokens=3, **{**GREEDY, **settings})
    assert list(tmp_path.iterdir()) == []


def test_beams_in_a_configuration_are_refused(model, tmp_path):
    config = type(model.generation_config)(num_beams=2, max_new_tokens=2)
    with pytest.raises(RecorderError, match="set num_beams=1"):
        with Recorder(model, tmp_path / "r.npz"):
            model.generate(models.prompts(4)[0][None], generation_config=config)


@pytest.mark.parametrize(
    ("shape", "why"),
    [((2, 1, 4, 4), "cannot be told from this attention_mask"), ((2, 3), "cache holds 0")],
)
def test_masks_that_do_not_tell_padding_are_refused(model, shape, why, tmp_path):
    ids = torch.stack(models.prompts(4, 4))
    with pytest.raises(RecorderError, match=why):
        with Recorder(model, tmp_path / "r.npz"):
            model(ids, attention_mask=torch.ones(shape, dtype=torch.bool))
