"""A small transformers model as a GGUF file, in full precision, with a vocabulary of bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

VOCABULARY = 300

_PARTS = {
    "input_layernorm.weight": "attn_norm",
    "self_attn.q_proj.weight": "attn_q",
    "self_attn.k_proj.weight": "attn_k",
    "self_attn.v_proj.weight": "attn_v",
    "self_attn.o_proj.weight": "attn_output",
    "self_attn.q_norm.weight": "attn_q_norm",
    "self_attn.k_norm.weight": "attn_k_norm",
    "post_attention_layernorm.weight": "ffn_norm",
    "mlp.gate.weight": "ffn_gate_inp",
    "mlp.experts.down_proj": "ffn_down_exps",
}


def write_qwen3(model: Any, path: Path) -> Path:
    """Writes a Qwen3-MoE model of `VOCABULARY` tokens."""
    import gguf

    config = model.config
    writer = gguf.GGUFWriter(path, "qwen3moe")
    writer.add_name("tiny")
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    writer.add_expert_count(config.num_experts)
    writer.add_expert_used_count(config.num_experts_per_tok)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    _vocabulary(writer, gguf)
    for name, weight in model.state_dict().items():
        values = weight.float().numpy()
        if name.endswith("gate_up_proj"):
            # One tensor in transformers, two in a GGUF.
            for part, half in zip(("gate", "up"), np.split(values, 2, axis=1)):
                writer.add_tensor(
                    f"blk.{name.split('.')[2]}.ffn_{part}_exps.weight", half.copy()
                )
        else:
            writer.add_tensor(_name(name), values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _name(name: str) -> str:
    whole = {
        "model.embed_tokens.weight": "token_embd.weight",
        "model.norm.weight": "output_norm.weight",
        "lm_head.weight": "output.weight",
    }
    if name in whole:
        return whole[name]
    _, _, layer, part = name.split(".", 3)
    return f"blk.{layer}.{_PARTS[part]}.weight"


def _vocabulary(writer: Any, gguf: Any) -> None:
    kinds = gguf.TokenType
    tokens = [("<unk>", kinds.UNKNOWN), ("<s>", kinds.CONTROL), ("</s>", kinds.CONTROL)]
    tokens += [(f"<0x{byte:02X}>", kinds.BYTE) for byte in range(256)]
    tokens += [(f"word{n}", kinds.NORMAL) for n in range(VOCABULARY - len(tokens))]
    writer.add_tokenizer_model("llama")
    writer.add_token_list([text for text, _ in tokens])
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([kind for _, kind in tokens])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
