"""Where a model keeps its decoder layers and their routers.

A router is a module named or typed as one whose parent also holds `experts`; its layer's
number is its place in the list of decoder layers, so dense layers keep their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from .errors import RecorderError

_NAMES = ("gate", "router", "gating")
_TYPES = re.compile(r"(Router|Gate|Gating)$")


@dataclass(frozen=True)
class MoeLayer:
    """A decoder layer that routes."""

    number: int
    """Its number in the model, counting dense layers."""
    name: str
    """The router's name in `model.named_modules()`."""
    router: nn.Module
    block: nn.Module
    """The router's parent: the MoE block."""


@dataclass(frozen=True)
class Architecture:
    """What the recorder hooks."""

    config: Any
    """The configuration of the text model."""
    trunk: nn.Module
    """The module whose forward pass runs the decoder layers."""
    embedding: nn.Module | None
    layers: tuple[MoeLayer, ...]
    """In the order in which they run."""
    model_layers: int

    @property
    def dense_layers(self) -> list[int]:
        """Numbers of the layers without a router."""
        routed = {layer.number for layer in self.layers}
        return [number for number in range(self.model_layers) if number not in routed]


def find(model: nn.Module, routers: Sequence[str] | None = None) -> Architecture:
    """Finds the routers of a model, or takes those of the given module names."""
    config = getattr(model, "config", None)
    if getattr(config, "is_encoder_decoder", False):
        raise RecorderError(
            "encoder-decoder models are not supported: a token of such a model passes two "
            "stacks of layers, and a trace has one"
        )
    modules = dict(model.named_modules())
    names = list(routers) if routers is not None else _routers(modules)
    if not names:
        raise RecorderError(
            f"{type(model).__name__} has no router that is known as one (a module named "
            f"{', '.join(_NAMES)} beside experts); give routers=[...], names as in "
            "model.named_modules()"
        )
    layers, lists = [], set()
    for name in names:
        if name not in modules:
            raise RecorderError(f"routers: {name} is no module of {type(model).__name__}")
        list_name, number = _place(modules, name)
        lists.add(list_name)
        block = modules[name.rpartition(".")[0]]
        layers.append(MoeLayer(number, name, modules[name], block))
    if len(lists) > 1:
        raise RecorderError(
            f"routers lie in several stacks of layers ({', '.join(sorted(lists))}); pass the "
            "one to record as the model, or its routers=[...]"
        )
    layers.sort(key=lambda layer: layer.number)
    for before, layer in zip(layers, layers[1:]):
        if before.number == layer.number:
            raise RecorderError(
                f"layer {layer.number} has two routers, {before.name} and {layer.name}; "
                "give routers=[...] with one a layer"
            )
    list_name = lists.pop()
    trunk = modules[list_name.rpartition(".")[0]]
    config = getattr(trunk, "config", config)
    stack = modules[list_name]
    return Architecture(
        config=getattr(config, "text_config", config),
        trunk=trunk,
        embedding=_embedding(trunk),
        layers=tuple(layers),
        model_layers=len(list(stack.children())),
    )


def _routers(modules: dict[str, nn.Module]) -> list[str]:
    found = []
    for name, module in modules.items():
        parent, _, child = name.rpartition(".")
        typed = child in _NAMES or _TYPES.search(type(module).__name__)
        if typed and hasattr(modules[parent], "experts") and child != "experts":
            found.append(name)
    return found


def _place(modules: dict[str, nn.Module], name: str) -> tuple[str, int]:
    """The list of layers that a router lies in, and its layer's place there."""
    parts = name.split(".")
    for at in range(1, len(parts)):
        prefix = ".".join(parts[:at])
        if isinstance(modules[prefix], nn.ModuleList) and parts[at].isdigit():
            return prefix, int(parts[at])
    raise RecorderError(f"router {name} lies in no list of layers, so its layer has no number")


def _embedding(trunk: nn.Module) -> nn.Module | None:
    getter = getattr(trunk, "get_input_embeddings", None)
    if getter is None:
        return None
    try:
        module = getter()
    except NotImplementedError:
        return None
    return module if isinstance(module, nn.Module) else None
