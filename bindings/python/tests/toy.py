"""A model without transformers, whose gates return logits alone."""

from __future__ import annotations

import torch
from torch import nn

EXPERTS, TOP_K, WIDTH = 8, 3, 16


class Block(nn.Module):
    """A MoE block whose gate returns logits alone."""

    def __init__(self, gate="gate"):
        super().__init__()
        self._gate = gate
        setattr(self, gate, nn.Linear(WIDTH, EXPERTS, bias=False))
        self.experts = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(EXPERTS))

    def forward(self, states):
        flat = states.reshape(-1, WIDTH)
        scores = getattr(self, self._gate)(flat).softmax(-1)
        every = torch.stack([expert(flat) for expert in self.experts], dim=1)
        return states + (scores[..., None] * every).sum(1).view_as(states)


class Config:
    is_encoder_decoder = False
    num_experts_per_tok = TOP_K

    def __init__(self, model_type, **more):
        self.model_type = model_type
        vars(self).update(more)


class Toy(nn.Module):
    """Three layers, of which the middle one is dense."""

    def __init__(self, config, **block):
        super().__init__()
        torch.manual_seed(5)
        self.config = config
        self.embed = nn.Embedding(50, WIDTH)
        self.layers = nn.ModuleList([Block(**block), nn.Linear(WIDTH, WIDTH), Block(**block)])

    def get_input_embeddings(self):
        return self.embed

    def forward(self, input_ids):
        states = self.embed(input_ids)
        for layer in self.layers:
            states = layer(states)
        return (states,)
