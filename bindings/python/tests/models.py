"""Small random Mixture-of-Experts models, made from a configuration: nothing is fetched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers

VOCABULARY = 97
PAD, END = 0, 1

_SIZES = dict(
    vocab_size=VOCABULARY,
    hidden_size=32,
    intermediate_size=32,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=256,
    pad_token_id=PAD,
    eos_token_id=END,
    bos_token_id=2,
)


def qwen3(**changes: Any) -> Any:
    sizes = dict(num_experts=16, num_experts_per_tok=4, moe_intermediate_size=16, head_dim=8)
    return _model("Qwen3Moe", **{**_SIZES, **sizes, "norm_topk_prob": True, **changes})


def mixtral(**changes: Any) -> Any:
    sizes = dict(num_local_experts=8, num_experts_per_tok=2)
    return _model("Mixtral", **{**_SIZES, **sizes, **changes})


def olmoe(**changes: Any) -> Any:
    sizes = dict(num_experts=12, num_experts_per_tok=3)
    return _model("Olmoe", **{**_SIZES, **sizes, **changes})


def gpt_oss(**changes: Any) -> Any:
    sizes = dict(num_local_experts=8, num_experts_per_tok=4, head_dim=8, sliding_window=16)
    return _model("GptOss", **{**_SIZES, **sizes, **changes})


def deepseek_v3(**changes: Any) -> Any:
    """Layers 0 and 1 are dense, 2 to 4 route."""
    sizes = dict(
        num_hidden_layers=5,
        first_k_dense_replace=2,
        n_routed_experts=16,
        num_experts_per_tok=4,
        n_shared_experts=1,
        n_group=4,
        topk_group=2,
        moe_intermediate_size=16,
        q_lora_rank=16,
        kv_lora_rank=16,
        qk_rope_head_dim=8,
        qk_nope_head_dim=8,
        v_head_dim=8,
        num_key_value_heads=4,
    )
    return _model("DeepseekV3", **{**_SIZES, **sizes, **changes})


FAMILIES: dict[str, Callable[..., Any]] = {
    "qwen3": qwen3,
    "mixtral": mixtral,
    "olmoe": olmoe,
    "gpt_oss": gpt_oss,
    "deepseek_v3": deepseek_v3,
}


def _model(kind: str, **sizes: Any) -> Any:
    torch.manual_seed(7)
    config = getattr(transformers, f"{kind}Config")(**sizes)
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"
    model = getattr(transformers, f"{kind}ForCausalLM")(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            # Routers start near zero: spread them, so that no two experts tie.
            if name.endswith(("gate.weight", "router.weight")):
                weight.normal_()
    return model


def prompts(*lengths: int, seed: int = 3) -> list[torch.Tensor]:
    """Random prompts `[length]` without padding or end tokens."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(3, VOCABULARY, (n,), generator=generator) for n in lengths]


def padded(texts: list[torch.Tensor], side: str) -> dict[str, torch.Tensor]:
    """A batch with padding on one side, as a tokenizer makes it."""
    width = max(len(text) for text in texts)
    ids = torch.full((len(texts), width), PAD)
    mask = torch.zeros_like(ids)
    for row, text in enumerate(texts):
        place = slice(width - len(text), width) if side == "left" else slice(0, len(text))
        ids[row, place], mask[row, place] = text, 1
    return {"input_ids": ids, "attention_mask": mask}
