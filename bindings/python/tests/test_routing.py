"""What is recorded is what the model routed, for each family of models."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers

from hotset.record import Recorder, RecorderError

from . import models
from .recordings import of_sequence, read

FAMILIES = pytest.mark.parametrize("family", sorted(models.FAMILIES))


@FAMILIES
def test_ids_are_those_of_the_router_logits(family, tmp_path):
    model, (text,) = models.FAMILIES[family](), models.prompts(11)
    if family == "deepseek_v3" and transformers.__version__.startswith("4."):
        pytest.skip("transformers 4 gives no router logits of DeepSeek-V3")
    with Recorder(model, tmp_path / "r.npz", weights="f32"), torch.no_grad():
        logits = model(text[None], output_router_logits=True).router_logits
    arrays, info = read(tmp_path / "r.npz")
    top_k = info["top_k"]
    assert arrays["expert_ids"].shape == (11, len(logits), top_k)
    assert info["layers"] == len(logits) and info["experts"] == logits[0].shape[-1]
    for layer, scores in enumerate(logits):
        if family == "deepseek_v3":
            # The best 2 of 4 groups first, by their two best scores, then the best 4 of those.
            scores = scores.sigmoid()
            groups = scores.view(11, 4, 4)
            best = groups.topk(2).values.sum(-1).topk(2).indices
            keep = torch.zeros(11, 4).scatter_(1, best, 1).bool()
            scores = groups.masked_fill(~keep[..., None], 0).view(11, 16)
        expected = scores.topk(top_k, dim=-1).indices
        assert np.array_equal(arrays["expert_ids"][:, layer], expected.numpy())


@FAMILIES
def test_weights_are_those_that_experts_are_given(family, tmp_path):
    model, (text,) = models.FAMILIES[family](), models.prompts(6)
    given = []

    def experts_ran(module, args):
        # Each family hands its experts the hidden state, the ids and the weights.
        floats = [arg for arg in args[1:] if torch.is_tensor(arg) and arg.is_floating_point()]
        given.append(floats[-1].sort(dim=-1, descending=True).values)

    blocks = [m for name, m in model.named_modules() if name.endswith("mlp.experts")]
    if transformers.__version__.startswith("4."):
        pytest.skip("transformers 4 does not hand its experts ids and weights")
    for block in blocks:
        block.register_forward_pre_hook(experts_ran)
    with Recorder(model, tmp_path / "r.npz", weights="f32"), torch.no_grad():
        model(text[None])
    arrays, _ = read(tmp_path / "r.npz")
    expected = torch.stack(given, dim=1).numpy()
    assert np.array_equal(arrays["expert_weights"], expected)


@FAMILIES
def test_generation_equals_a_forward_pass_over_its_tokens(family, tmp_path):
    model, (text,) = models.FAMILIES[family](), models.prompts(9)
    with Recorder(model, tmp_path / "g.npz", weights="f32") as recorder, torch.no_grad():
        recorder.label("greedy")
        whole = model.generate(
            text[None], max_new_tokens=12, do_sample=False, eos_token_id=None, pad_token_id=0
        )
    with Recorder(model, tmp_path / "f.npz", weights="f32"), torch.no_grad():
        model(whole[:, :-1])
    generated, info = read(tmp_path / "g.npz")
    forward, _ = read(tmp_path / "f.npz")
    assert info["sequence_labels"] == ["greedy"]
    assert np.array_equal(generated["token_id"], whole[0, :-1])
    assert np.array_equal(generated["position"], np.arange(9 + 11))
    assert np.array_equal(generated["phase"], [0] * 9 + [1] * 11)
    assert np.array_equal(generated["step"], [0] * 9 + list(range(1, 12)))
    assert np.array_equal(generated["expert_ids"], forward["expert_ids"])
    assert np.allclose(
        generated["expert_weights"], forward["expert_weights"], rtol=1e-4, atol=1e-6
    )


@FAMILIES
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_padded_batch_equals_single_runs(family, side, tmp_path):
    model, texts = models.FAMILIES[family](), models.prompts(4, 9, 6)
    batch = models.padded(texts, side)
    # Positions as generate() counts them: padding moves no token.
    batch["position_ids"] = (batch["attention_mask"].cumsum(-1) - 1).clamp(min=0)
    with Recorder(model, tmp_path / "batch.npz", weights="f32"), torch.no_grad():
        model(**batch)
    with Recorder(model, tmp_path / "single.npz", weights="f32"), torch.no_grad():
        for text in texts:
            model(text[None])
    compare(tmp_path / "batch.npz", tmp_path / "single.npz", [4, 9, 6])


@FAMILIES
def test_generation_in_a_padded_batch_equals_single_generations(family, tmp_path):
    model, texts = models.FAMILIES[family](), models.prompts(5, 8, 3)
    settings = dict(max_new_tokens=10, do_sample=False, pad_token_id=models.PAD)
    # An end token that the first sequence comes to before the others do.
    free = model.generate(texts[0][None], eos_token_id=None, **settings)[0, 5:]
    settings["eos_token_id"] = int(free[3])
    lengths = []
    with Recorder(model, tmp_path / "single.npz", weights="f32"):
        for text in texts:
            lengths.append(model.generate(text[None], **settings).shape[1] - 1)
    with Recorder(model, tmp_path / "batch.npz", weights="f32"):
        model.generate(**models.padded(texts, "left"), **settings)
    assert lengths[0] < 5 + 9
    compare(tmp_path / "batch.npz", tmp_path / "single.npz", lengths)


def compare(batch_path, single_path, lengths):
    batch, info = read(batch_path)
    single, _ = read(single_path)
    assert len(info["sequence_labels"]) == len(lengths)
    assert len(batch["sequence"]) == sum(lengths)
    for number, length in enumerate(lengths):
        found, expected = of_sequence(batch, number), of_sequence(single, number)
        assert len(expected["position"]) == length
        weights = found.pop("expert_weights"), expected.pop("expert_weights")
        assert np.allclose(*weights, rtol=1e-4, atol=1e-6)
        for name, values in expected.items():
            assert np.array_equal(found[name], values), name


def test_dense_layers_keep_their_numbers(tmp_path):
    model, (text,) = models.deepseek_v3(), models.prompts(3)
    with Recorder(model, tmp_path / "r.npz"):
        model(text[None])
    _, info = read(tmp_path / "r.npz")
    assert info["moe_layer_ids"] == [2, 3, 4]
    assert info["dense_layers"] == [0, 1]
    assert info["model_layers"] == 5 and info["layers"] == 3


@pytest.mark.parametrize(("experts", "dtype"), [(255, "uint8"), (256, "uint16")])
def test_over_255_experts_ids_take_two_bytes(experts, dtype, tmp_path):
    model, (text,) = models.qwen3(num_experts=experts), models.prompts(64)
    with Recorder(model, tmp_path / "r.npz", lookahead=2), torch.no_grad():
        logits = model(text[None], output_router_logits=True).router_logits
    arrays, _ = read(tmp_path / "r.npz")
    assert arrays["expert_ids"].dtype == arrays["predicted_ids"].dtype == dtype
    assert np.array_equal(arrays["expert_ids"][:, 0], logits[0].topk(4).indices.numpy())
    none = np.iinfo(dtype).max
    for ahead in range(2):
        entries = arrays["predicted_ids"][ahead]
        assert (entries[:, : ahead + 1] == none).all()
        assert (entries[:, ahead + 1 :] < experts).all()


@FAMILIES
def test_predictions_are_the_later_routers_on_the_earlier_input(family, tmp_path):
    model, (text,) = models.FAMILIES[family](), models.prompts(7)
    inputs, routers = [], []
    for name, module in model.named_modules():
        if name.endswith(("mlp.gate", "mlp.router", "block_sparse_moe.gate")):
            routers.append(module)
            module.register_forward_pre_hook(lambda _, args: inputs.append(args[0].clone()))
    with Recorder(model, tmp_path / "r.npz", lookahead=2), torch.no_grad():
        model(text[None])
    arrays, _ = read(tmp_path / "r.npz")
    assert len(inputs) == len(routers) == 3  # hooks of others do not see the questions
    with torch.no_grad():
        for ahead, layer in [(0, 1), (0, 2), (1, 2)]:
            answer = routers[layer](inputs[layer - ahead - 1])
            if torch.is_tensor(answer):
                expected = answer.topk(arrays["expert_ids"].shape[-1]).indices
            else:
                (ids,) = [part for part in answer if not part.is_floating_point()]
                weights = next(part for part in answer[::-1] if part.is_floating_point())
                weights = weights if weights.shape == ids.shape else weights.gather(1, ids)
                expected = ids.gather(-1, weights.argsort(dim=-1, descending=True, stable=True))
            assert np.array_equal(arrays["predicted_ids"][ahead, :, layer], expected.numpy())


@pytest.mark.parametrize(("weights", "exact"), [("f16", np.float16), ("u8", np.uint8)])
def test_weights_are_rounded_as_asked(weights, exact, tmp_path):
    model, (text,) = models.mixtral(), models.prompts(20)
    for kind in (weights, "f32", None):
        with Recorder(model, tmp_path / f"{kind}.npz", weights=kind):
            model(text[None])
    whole = read(tmp_path / "f32.npz")[0]["expert_weights"]
    found = read(tmp_path / f"{weights}.npz")[0]["expert_weights"]
    expected = np.rint(whole * 255) if weights == "u8" else whole
    assert found.dtype == exact and np.array_equal(found, expected.astype(exact))
    assert "expert_weights" not in read(tmp_path / "None.npz")[0]


def test_weights_that_do_not_fit_are_refused(tmp_path):
    model = models.deepseek_v3(num_experts_per_tok=1, routed_scaling_factor=2.5)
    with pytest.raises(RecorderError, match=r'keeps 0 to 1.001: record with weights="f32"'):
        with Recorder(model, tmp_path / "r.npz", weights="u8"):
            model(models.prompts(5)[0][None])
    assert list(tmp_path.iterdir()) == []
