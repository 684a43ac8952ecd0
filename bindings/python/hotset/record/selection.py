"""What a router chose: from what it returned, or computed from its logits.

transformers 5 routers return logits, weights and ids, and are taken at their word.
transformers 4 gates are plain linear layers that return logits: the choice is then
computed as the model's own code does, for the model types where that is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .architecture import MoeLayer
from .errors import RecorderError

Scoring = Callable[[Tensor], "tuple[Tensor, Tensor]"]
"""Logits `[tokens, experts]` to weights and ids, both `[tokens, top-k]`."""

# Softmax over all experts, then top-k; whether the k weights are scaled to sum to 1
# (None: as the configuration's norm_topk_prob says).
_SOFTMAX_GATES: dict[str, bool | None] = {
    "flex_olmo": None,
    "jamba": False,
    "minimax": True,
    "mixtral": True,
    "olmoe": None,
    "qwen2_moe": None,
    "qwen3_moe": None,
    "qwen3_next": None,
    "qwen3_vl_moe_text": None,
}


@dataclass(frozen=True)
class Selection:
    """Experts chosen for each token, best first."""

    ids: Tensor
    """`[tokens, top-k]`, integers."""
    weights: Tensor
    """`[tokens, top-k]`, floats; those that the experts' outputs are multiplied by."""
    experts: int | None
    """Experts of the layer, where the router's output tells."""


class SelectionReader:
    """Reads routers' outputs, all in the same way."""

    def __init__(self, config: Any, scoring: Scoring | None = None) -> None:
        """`scoring` replaces the choice computed from logits."""
        self._config = config
        self._scoring = scoring
        self.source = "as the routers returned them"

    def read(self, layer: MoeLayer, output: Any) -> Selection:
        """The selection in what a router returned."""
        if isinstance(output, Tensor):
            return self._computed(layer, output)
        tensors = [part for part in output if isinstance(part, Tensor)]
        ids = [part for part in tensors if not part.is_floating_point()]
        floats = [_rows(part) for part in tensors if part.is_floating_point()]
        if len(ids) != 1:
            if type(layer.router).__name__ == "Llama4Router":
                return self._llama4(layer, floats[0])
            raise self._unknown(layer, output)
        chosen = _rows(ids[0])
        alike = [part for part in floats if part.shape == chosen.shape]
        full = [part for part in floats if part.shape != chosen.shape]
        experts = full[0].shape[-1] if full else None
        if alike:
            weights = alike[-1]
        elif full and full[0].shape[0] == chosen.shape[0]:
            weights = full[0].gather(-1, chosen.long())
        else:
            raise self._unknown(layer, output)
        return _best_first(chosen, weights, experts)

    def _computed(self, layer: MoeLayer, logits: Tensor) -> Selection:
        logits = _rows(logits)
        if self._scoring is not None:
            self.source = "computed from logits by the scoring that was given"
            weights, ids = self._scoring(logits)
            return _best_first(ids, weights, logits.shape[-1])
        kind = getattr(self._config, "model_type", None)
        if kind not in _SOFTMAX_GATES:
            raise RecorderError(
                f"router {layer.name} returns logits alone, and how a model of type {kind} "
                "chooses from them is not known; give scoring=, a function from logits to "
                "weights and ids"
            )
        normalised = _SOFTMAX_GATES[kind]
        if normalised is None:
            normalised = bool(getattr(self._config, "norm_topk_prob", False))
        self.source = "computed from logits: softmax over all experts, top-k" + (
            ", weights scaled to sum to 1" if normalised else ""
        )
        scores = torch.softmax(logits, dim=-1, dtype=torch.float32)
        weights, ids = torch.topk(scores, self._top_k(layer), dim=-1)
        if normalised:
            weights = weights / weights.sum(dim=-1, keepdim=True)
        return _best_first(ids, weights, logits.shape[-1])

    def _llama4(self, layer: MoeLayer, scores: Tensor) -> Selection:
        """Sigmoids of the chosen logits, zeros elsewhere."""
        self.source = "top-k of the scores that the routers returned"
        weights, ids = torch.topk(scores, self._top_k(layer), dim=-1)
        return _best_first(ids, weights, scores.shape[-1])

    def _top_k(self, layer: MoeLayer) -> int:
        for owner, name in (
            (layer.router, "top_k"),
            (layer.block, "top_k"),
            (self._config, "num_experts_per_tok"),
        ):
            top_k = getattr(owner, name, None)
            if isinstance(top_k, int):
                return top_k
        raise RecorderError(f"router {layer.name}: the model does not say how many it chooses")

    def _unknown(self, layer: MoeLayer, output: Any) -> RecorderError:
        parts = output if isinstance(output, (tuple, list)) else [output]
        found = ", ".join(
            (
                f"{tuple(part.shape)} of {part.dtype}"
                if isinstance(part, Tensor)
                else type(part).__name__
            )
            for part in parts
        )
        return RecorderError(
            f"router {layer.name} ({type(layer.router).__name__}) returned {found}; known are "
            "logits alone, and tuples with one tensor of ids [tokens, top-k] and its weights"
        )


def _rows(tensor: Tensor) -> Tensor:
    return tensor.detach().reshape(-1, tensor.shape[-1])


def _best_first(ids: Tensor, weights: Tensor, experts: int | None) -> Selection:
    """Some routers do not sort; where weights are equal, the router's order stays."""
    order = weights.argsort(dim=-1, descending=True, stable=True)
    return Selection(ids.gather(-1, order), weights.gather(-1, order), experts)
