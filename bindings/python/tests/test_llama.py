"""The recorder for llama.cpp, on a fake of the package whose every row is known."""

from __future__ import annotations

import numpy as np
import pytest

from hotset.record import RecorderError
from hotset.record.llama_cpp import Recorder

from .fake_llama import (
    EXPERTS,
    LAYERS,
    TOP_K,
    Engine,
    Params,
    batch,
    chosen,
    weighed,
)
from .recordings import read


@pytest.fixture
def engine():
    return Engine()


@pytest.fixture
def package(engine, monkeypatch):
    return engine.module(monkeypatch)


def context(package, n_ubatch=8):
    return package.llama_init_from_model(None, Params(n_ubatch=n_ubatch))


def column(arrays, name):
    return arrays[name].tolist()


def test_every_row_is_what_the_router_chose(package, tmp_path):
    with Recorder(tmp_path / "r.npz", weights="f32") as recorder:
        recorder.label("one")
        one = context(package, n_ubatch=4)
        assert package.llama_decode(one, batch([5, 6, 7, 8, 9, 10], [*range(6)])) == 0
        assert package.llama_decode(one, batch([11], [6], outputs=[1])) == 0
    arrays, info = read(tmp_path / "r.npz")
    tokens = [5, 6, 7, 8, 9, 10, 11]
    assert column(arrays, "token_id") == tokens
    assert column(arrays, "expert_ids") == [chosen(token) for token in tokens]
    assert np.array_equal(
        arrays["expert_weights"], np.array([weighed(token) for token in tokens], np.float32)
    )
    assert column(arrays, "position") == [*range(7)]
    assert column(arrays, "phase") == [0] * 6 + [1]
    assert column(arrays, "step") == [0] * 4 + [1] * 2 + [2]
    assert info["model"] == "fake" and info["sequence_labels"] == ["one"]
    assert info["experts"] == EXPERTS and info["top_k"] == TOP_K
    assert info["moe_layer_ids"] == list(LAYERS)
    # Of six blocks the last predicts further tokens and is no layer; 0 and 3 are dense.
    assert info["model_layers"] == 5 and info["dense_layers"] == [0, 3]


def test_the_callers_flags_and_functions_are_left_alone(package, tmp_path):
    before = package.llama_decode
    with Recorder(tmp_path / "r.npz"):
        given = batch([5, 6, 7], [0, 1, 2], outputs=[0, 0, 1])
        params = Params(n_ubatch=8)
        one = package.llama_init_from_model(None, params)
        package.llama_decode(one, given)
        assert given.logits[:3] == [0, 0, 1] and not params.cb_eval
    assert package.llama_decode is before is not None
    # The context lives on and still calls back: nothing is recorded, nothing fails.
    assert package.llama_decode(one, batch([8], [3])) == 0


def test_prompts_without_their_last_layer_are_left_out_and_counted(package, tmp_path):
    with pytest.warns(UserWarning, match="4 tokens were left out"):
        with Recorder(tmp_path / "r.npz", whole_prompts=False):
            one = context(package, n_ubatch=4)
            package.llama_decode(one, batch([5, 6, 7, 8, 9], [*range(5)]))
            package.llama_decode(one, batch([10], [5]))
    arrays, info = read(tmp_path / "r.npz")
    assert column(arrays, "position") == [4, 5] and info["left_out"] == 4
    assert column(arrays, "expert_ids") == [chosen(9), chosen(10)]


@pytest.mark.parametrize("side_by_side", [False, True])
def test_several_sequences_of_one_batch_are_told_apart(side_by_side, engine, package, tmp_path):
    engine.side_by_side = side_by_side
    texts = {0: [5, 6, 7, 8], 1: [5, 16], 2: [25, 26, 27]}
    flat = [
        (token, position, number, position == len(text) - 1)
        for number, text in texts.items()
        for position, token in enumerate(text)
    ]
    with Recorder(tmp_path / "r.npz") as recorder:
        recorder.label("a", "b", "c")
        one = context(package, n_ubatch=5)
        package.llama_decode(one, batch(*map(list, zip(*flat))))
        package.llama_decode(one, batch([9, 17, 28], [4, 2, 3], [0, 1, 2], [1, 1, 1]))
    arrays, info = read(tmp_path / "r.npz")
    for number, text in {0: [*texts[0], 9], 1: [*texts[1], 17], 2: [*texts[2], 28]}.items():
        rows = arrays["sequence"] == number
        assert arrays["token_id"][rows].tolist() == text
        assert arrays["expert_ids"][rows].tolist() == [chosen(token) for token in text]
        assert arrays["position"][rows].tolist() == [*range(len(text))]
        assert arrays["phase"][rows].tolist() == [0] * (len(text) - 1) + [1]
    # The last batch ran together.
    assert len({int(arrays["step"][arrays["sequence"] == s][-1]) for s in range(3)}) == 1
    assert info["sequence_labels"] == ["a", "b", "c"]


def test_equal_tokens_in_sequences_out_of_order_are_refused(package, tmp_path):
    with Recorder(tmp_path / "r.npz") as recorder:
        one = context(package)
        package.llama_decode(one, batch([5, 5], [0, 0], [0, 1]))
        with pytest.raises(RecorderError, match="in the order of their ids"):
            package.llama_decode(one, batch([5, 5], [1, 1], [1, 0]))
        recorder.close()
    assert column(read(tmp_path / "r.npz")[0], "sequence") == [0, 1]


def test_a_reused_prefix_begins_a_sequence_at_its_position(package, tmp_path):
    with Recorder(tmp_path / "r.npz") as recorder:
        recorder.label("whole", "after a cut", "after a copy")
        one = context(package)
        package.llama_decode(one, batch([5, 6, 7, 8], [0, 1, 2, 3]))
        package.llama_decode(one, batch([9], [4]))
        package.llama_decode(one, batch([16, 17], [2, 3]))
        package.llama_memory_seq_cp(None, 0, 1, 0, 4)
        package.llama_decode(one, batch([18], [4], [1]))
    arrays, info = read(tmp_path / "r.npz")
    assert column(arrays, "sequence") == [0] * 5 + [1] * 2 + [2]
    assert column(arrays, "position") == [0, 1, 2, 3, 4, 2, 3, 4]
    assert column(arrays, "phase") == [0, 0, 0, 0, 1, 0, 0, 1]
    assert info["sequence_labels"] == ["whole", "after a cut", "after a copy"]


def test_batches_without_positions_go_on_where_the_cache_ends(package, tmp_path):
    with Recorder(tmp_path / "r.npz"):
        one = context(package)
        package.llama_decode(one, batch([5, 6, 7]))
        package.llama_decode(one, batch([8]))
    arrays, _ = read(tmp_path / "r.npz")
    assert column(arrays, "position") == [0, 1, 2, 3] and column(arrays, "phase") == [
        0,
        0,
        0,
        1,
    ]


def test_the_last_token_of_a_prompt_in_chunks_is_prompt(package, tmp_path):
    with Recorder(tmp_path / "r.npz"):
        one = context(package)
        package.llama_decode(one, batch([5, 6], [0, 1], outputs=[0, 0]))
        package.llama_decode(one, batch([7], [2], outputs=[1]))
        package.llama_decode(one, batch([8], [3], outputs=[1]))
    assert column(read(tmp_path / "r.npz")[0], "phase") == [0, 0, 0, 1]


def run(llama, prompt, generated, **settings):
    tokens = llama.generate(prompt, **settings)
    next(tokens)
    for token in generated:
        tokens.send(token)
    tokens.close()


def test_llama_tells_prompts_from_generated_tokens(package, tmp_path):
    with Recorder(tmp_path / "r.npz"):
        llama = package.Llama()
        run(llama, [5, 6, 7, 8, 9], [10, 11])
        # All but the last token of the prompt is in the cache.
        run(llama, [5, 6, 7, 8, 9], [12], reuse=4)
        llama.eval([13])
    arrays, _ = read(tmp_path / "r.npz")
    assert column(arrays, "phase") == [0] * 5 + [1] * 2 + [0] + [1] * 2
    assert column(arrays, "sequence") == [0] * 7 + [1] * 3
    assert column(arrays, "position") == [*range(7), 4, 5, 6]


def test_a_further_turn_goes_on_with_the_sequence(package, tmp_path):
    with Recorder(tmp_path / "r.npz"):
        llama = package.Llama()
        run(llama, [5, 6], [10])
        # The answer's last token was never run: it comes with the next prompt.
        run(llama, [5, 6, 10, 11, 7, 8], [12], reuse=3)
    arrays, _ = read(tmp_path / "r.npz")
    assert column(arrays, "sequence") == [0] * 7 and column(arrays, "position") == [*range(7)]
    assert column(arrays, "phase") == [0, 0, 1, 0, 0, 0, 1]


def test_drafts_are_refused(package, tmp_path):
    with pytest.raises(RecorderError, match="a draft_model cannot be recorded"):
        with Recorder(tmp_path / "r.npz"):
            llama = package.Llama()
            llama.draft_model = object()
            llama.eval([5])


def test_a_batch_that_llama_gave_up_is_no_row(engine, package, tmp_path):
    with Recorder(tmp_path / "r.npz"):
        one = context(package)
        package.llama_decode(one, batch([5, 6], [0, 1]))
        engine.code = 1
        assert package.llama_decode(one, batch([7], [2])) == 1
        engine.code = 0
        package.llama_decode(one, batch([8], [2]))
    arrays, _ = read(tmp_path / "r.npz")
    assert column(arrays, "token_id") == [5, 6, 8] and column(arrays, "sequence") == [0, 0, 1]


def test_only_what_is_wanted_is_copied(engine, package, tmp_path):
    shown = []
    for weights in ("f16", None):
        with Recorder(tmp_path / f"{weights}.npz", weights=weights):
            one = context(package)
            package.llama_decode(one, batch([5], [0]))
            engine.shown = 0
            package.llama_decode(one, batch([6], [1]))
            shown.append(engine.shown)
    # The choice, and the last form of the weights alone once it is known.
    assert shown == [2 * len(LAYERS), len(LAYERS)]
    assert "expert_weights" not in read(tmp_path / "None.npz")[0]


def test_a_model_without_experts_is_left_alone(engine, package, tmp_path):
    with Recorder(tmp_path / "r.npz"):
        one = context(package)
        del engine.metadata["fakemoe.expert_count"]
        other = context(package)
        package.llama_decode(other, batch([50], [0]))
        package.llama_decode(one, batch([5], [0]))
    assert column(read(tmp_path / "r.npz")[0], "token_id") == [5]


def test_contexts_follow_one_another(package, tmp_path):
    with Recorder(tmp_path / "r.npz") as recorder:
        one = context(package)
        package.llama_decode(one, batch([5, 6], [0, 1]))
        with pytest.raises(RecorderError, match="takes one at a time"):
            context(package)
        package.llama_free(one)
        two = context(package)
        package.llama_decode(two, batch([7], [2]))
        with pytest.raises(RecorderError, match="one at a time"):
            Recorder(tmp_path / "s.npz").start()
        recorder.close()
    assert column(read(tmp_path / "r.npz")[0], "sequence") == [0, 0, 1]


def test_a_context_from_before_is_named_as_the_reason(package, tmp_path):
    one = context(package)
    with pytest.raises(RecorderError, match="make the Llama inside the block"):
        with Recorder(tmp_path / "r.npz"):
            package.llama_decode(one, batch([5], [0]))
    assert list(tmp_path.iterdir()) == []


def refused(package, tmp_path, why, *batches):
    with pytest.raises(RecorderError, match=why):
        with Recorder(tmp_path / "r.npz"):
            one = context(package)
            for given in batches:
                package.llama_decode(one, given)
    assert list(tmp_path.iterdir()) == []


def test_a_layer_that_chooses_twice_is_refused(engine, package, tmp_path):
    engine.twice = True
    refused(package, tmp_path, "layer 1 chooses experts twice", batch([5], [0]))


def test_another_number_of_experts_than_stated_is_refused(engine, package, tmp_path):
    engine.metadata["fakemoe.expert_count"] = "8"
    refused(package, tmp_path, "sort 6 experts, the GGUF states 8", batch([5], [0]))


def test_a_callback_that_never_comes_is_an_error(engine, package, tmp_path):
    engine.calls_back = False
    refused(package, tmp_path, "without one call of cb_eval", batch([5], [0]))


def test_a_token_of_two_sequences_is_refused(package, tmp_path):
    given = batch([5], [0])
    given.n_seq_id[0] = 2
    refused(package, tmp_path, "in 2 sequences at once", given)


def test_runs_that_no_call_told_of_are_refused(engine, package, tmp_path):
    with pytest.raises(RecorderError, match="whose tokens they were is unknown"):
        with Recorder(tmp_path / "r.npz"):
            engine.decode(context(package), batch([5], [0]))


def test_embeddings_have_no_token_ids(engine, package, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "decode", lambda *a: 0)
    graph = lambda params: engine.graph(params, [5, 6], [0, 1], [0, 1])  # noqa: E731
    make = engine.library.memory.tensor
    monkeypatch.setattr(
        engine.library.memory,
        "tensor",
        lambda name, *a, **k: make("nothing" if name == "inp_tokens" else name, *a, **k),
    )
    with Recorder(tmp_path / "r.npz"):
        one = context(package)
        engine.decode = lambda context, given: graph(engine.contexts[context]) or 0
        given = batch([0, 0], [0, 1])
        given.token = None
        package.llama_decode(one, given)
    arrays, info = read(tmp_path / "r.npz")
    assert "token_id" not in arrays and "embeddings" in info["token_id"]
    assert column(arrays, "expert_ids") == [chosen(5), chosen(6)]
