"""Routers of other kinds: plain linear gates as in transformers 4, and unusual names."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from hotset.record import Recorder, RecorderError

from .recordings import read
from .toy import EXPERTS, TOP_K, WIDTH, Config, Toy


@pytest.mark.parametrize(
    ("config", "normalised"),
    [
        (Config("mixtral"), True),
        (Config("jamba"), False),
        (Config("qwen3_moe", norm_topk_prob=True), True),
        (Config("olmoe", norm_topk_prob=False), False),
    ],
)
def test_gates_of_logits_are_scored_as_the_model_type_does(config, normalised, tmp_path):
    model, logits = Toy(config), []
    for layer in (model.layers[0], model.layers[2]):
        layer.gate.register_forward_hook(lambda _, __, result: logits.append(result))
    with Recorder(model, tmp_path / "r.npz", weights="f32"), torch.no_grad():
        model(torch.arange(20)[None])
    arrays, info = read(tmp_path / "r.npz")
    for layer, scores in enumerate(logits):
        best = scores.softmax(-1).topk(TOP_K)
        weights = best.values / best.values.sum(-1, keepdim=True) if normalised else best.values
        assert (arrays["expert_ids"][:, layer] == best.indices.numpy()).all()
        assert (arrays["expert_weights"][:, layer] == weights.numpy()).all()
    assert info["moe_layer_ids"] == [0, 2] and info["dense_layers"] == [1]
    assert info["router_ids"].startswith(
        "computed from logits: softmax over all experts, top-k"
    )
    assert ("sum to 1" in info["router_ids"]) == normalised


def test_gates_of_logits_of_an_unknown_type_need_a_scoring(tmp_path):
    model, ids = Toy(Config("novel")), torch.arange(9)[None]
    with pytest.raises(RecorderError, match="type novel chooses from them is not known"):
        with Recorder(model, tmp_path / "r.npz"):
            model(ids)

    def scoring(logits):
        best = logits.sigmoid().topk(2)
        return best.values, best.indices

    with Recorder(model, tmp_path / "r.npz", scoring=scoring):
        model(ids)
    arrays, info = read(tmp_path / "r.npz")
    assert arrays["expert_ids"].shape == (9, 2, 2) and info["top_k"] == 2
    assert "scoring that was given" in info["router_ids"]


def test_routers_can_be_named(tmp_path):
    model = Toy(Config("mixtral"), gate="selector")
    with pytest.raises(RecorderError, match="no router that is known"):
        Recorder(model, tmp_path / "r.npz")
    names = ["layers.2.selector", "layers.0.selector"]
    with Recorder(model, tmp_path / "r.npz", routers=names):
        model(torch.arange(4)[None])
    assert read(tmp_path / "r.npz")[1]["moe_layer_ids"] == [0, 2]


def test_a_router_that_is_not_called_is_an_error(tmp_path):
    model = Toy(Config("mixtral"))
    model.layers[2].forward = lambda states: states
    with pytest.raises(RecorderError, match=r"1 of 2 routers were not called \(layers.2.gate"):
        with Recorder(model, tmp_path / "r.npz"):
            model(torch.arange(4)[None])


def test_outputs_of_an_unknown_kind_are_described(tmp_path):
    model = Toy(Config("mixtral"))
    model.layers[0].gate.register_forward_hook(lambda *_: ("what", torch.zeros(4, 2)))
    with pytest.raises(
        RecorderError, match=r"returned str, \(4, 2\) of torch.float32; known are"
    ):
        with Recorder(model, tmp_path / "r.npz"):
            model(torch.arange(4)[None])


@pytest.mark.parametrize("wrong", [-1, EXPERTS])
def test_ids_beyond_the_experts_are_refused(wrong, tmp_path):
    model = Toy(Config("mixtral"))

    def local(module, args, logits):
        ids = torch.full((len(logits), TOP_K), wrong)
        return logits, torch.ones(len(logits), TOP_K), ids

    # Called before the recorder's own hook, which is set later.
    for layer in (model.layers[0], model.layers[2]):
        layer.gate.register_forward_hook(local)
        layer.forward = lambda states, gate=layer.gate: (gate(states[0]), states)[1]
    with pytest.raises(RecorderError, match="under expert parallelism ids are local"):
        with Recorder(model, tmp_path / "r.npz"):
            model(torch.arange(4)[None])


def test_llama4_scores_are_zero_but_for_the_chosen(tmp_path):
    class Llama4Router(nn.Linear):
        def forward(self, states):
            logits = super().forward(states)
            best = logits.topk(TOP_K)
            kept = torch.full_like(logits, float("-inf")).scatter_(1, best.indices, best.values)
            return kept.sigmoid(), logits

    model, chosen = Toy(Config("llama4_text")), []
    for layer in (model.layers[0], model.layers[2]):
        layer.gate = Llama4Router(WIDTH, EXPERTS)
        layer.gate.register_forward_hook(lambda _, __, out: chosen.append(out[1].topk(TOP_K)))
        layer.forward = lambda states, gate=layer.gate: (gate(states[0]), states)[1]
    with Recorder(model, tmp_path / "r.npz", weights="f32"):
        model(torch.arange(30)[None])
    arrays, _ = read(tmp_path / "r.npz")
    for layer, best in enumerate(chosen):
        assert (arrays["expert_ids"][:, layer] == best.indices.numpy()).all()
        weights = best.values.sigmoid().detach().numpy()
        assert np.allclose(arrays["expert_weights"][:, layer], weights)


@pytest.mark.parametrize("in_place", [True, False])
def test_compiled_models_are_refused(in_place, tmp_path):
    model = Toy(Config("mixtral"))
    if in_place:
        model.compile()
    else:
        model = torch.compile(model)
    with pytest.raises(RecorderError, match="hooks need eager mode"):
        Recorder(model, tmp_path / "r.npz")


def test_encoder_decoder_models_are_refused(tmp_path):
    model = Toy(Config("switch_transformers", is_encoder_decoder=True))
    with pytest.raises(RecorderError, match="encoder-decoder models are not supported"):
        Recorder(model, tmp_path / "r.npz")
