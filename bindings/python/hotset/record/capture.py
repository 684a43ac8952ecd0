"""What the routers say during one forward pass, and its move to host memory at the end.

Choices stay on the device, 2 bytes an id and 4 a weight, until the pass has ended: one
copy a pass, so that recording does not make the host wait at every layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from . import prompts
from .architecture import MoeLayer
from .batches import Step, device_rows
from .errors import RecorderError
from .selection import Selection, SelectionReader


@dataclass(frozen=True)
class Rows:
    """A step's rows in host memory; rows are the tokens that are no padding."""

    ids: npt.NDArray[np.int16]
    """`[rows, layers, top-k]`."""
    weights: npt.NDArray[np.float32]
    """As `ids`."""
    predicted: list[npt.NDArray[np.int16]]
    """As `ids` for each lookahead; -1 where there is no prediction."""
    prompt_sums: prompts.Sums | None
    """`[in and out, sequences, dim]`: sums over the first prompt's tokens."""
    experts: int | None
    """Experts a layer, where the routers tell."""


class Capture:
    """The routers' choices of one step."""

    def __init__(
        self,
        step: Step,
        layers: Sequence[MoeLayer],
        lookahead: int,
        reader: SelectionReader,
    ) -> None:
        """Nothing captured yet."""
        self.step = step
        self.cache: Any = None
        """The KV cache that the step was given."""
        self.embedded: Tensor | None = None
        """Input embeddings `[sequences, columns, dim]`."""
        self._layers = layers
        self._lookahead = lookahead
        self._reader = reader
        self._chosen: dict[int, tuple[Tensor, Tensor]] = {}
        self._predicted: list[dict[int, Tensor]] = [{} for _ in range(lookahead)]
        self._experts: set[int | None] = set()

    def routed(
        self, index: int, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        """Takes what the router of the layer at `index` returned."""
        layer = self._layers[index]
        if index in self._chosen:
            raise RecorderError(
                f"router {layer.name} ran twice in one forward pass: a trace has one choice a "
                "token and layer"
            )
        chosen = self._kept(layer, self._reader.read(layer, result))
        self._experts.add(chosen.experts)
        self._chosen[index] = (chosen.ids.to(torch.int16), chosen.weights.float())
        later = self._layers[index + 1 : index + 1 + self._lookahead]
        if later and (len(args) != 1 or kwargs):
            raise RecorderError(
                f"router {layer.name} takes more than a hidden state, so a later layer's "
                "cannot be asked ahead; record with lookahead=0"
            )
        for ahead, target in enumerate(later):
            ids = self._ask(target, args[0]).ids
            self._predicted[ahead][index + 1 + ahead] = ids.to(torch.int16)

    def finish(self, hidden: Tensor | None) -> Rows:
        """Moves all to host memory; `hidden` is the final state, where it is wanted."""
        missing = [layer for at, layer in enumerate(self._layers) if at not in self._chosen]
        if missing:
            names = ", ".join(layer.name for layer in missing[:3])
            raise RecorderError(
                f"{len(missing)} of {len(self._layers)} routers were not called ({names}): "
                "fused MoE kernels go round them; load the model with use_kernels=False and "
                'experts_implementation="eager"'
            )
        if len(self._experts) > 1:
            raise RecorderError("layers have different numbers of experts; a file has one")
        ids = [self._chosen[at][0] for at in range(len(self._layers))]
        if len({part.shape[-1] for part in ids}) > 1:
            raise RecorderError("layers choose different numbers of experts; a file has one")
        return Rows(
            ids=_to_host(ids),
            weights=_to_host([self._chosen[at][1] for at in range(len(self._layers))]),
            predicted=[
                _to_host(
                    [ahead.get(at, torch.full_like(ids[at], -1)) for at in range(len(ids))]
                )
                for ahead in self._predicted
            ],
            prompt_sums=self._prompt_sums(hidden),
            experts=self._experts.pop(),
        )

    def _kept(self, layer: MoeLayer, chosen: Selection) -> Selection:
        """The rows that are no padding."""
        real = self.step.real
        if len(chosen.ids) != real.size:
            raise RecorderError(
                f"router {layer.name} chose for {len(chosen.ids)} rows of {real.size}: it does "
                "not see every token of the batch in order"
            )
        rows = device_rows(real, chosen.ids.device)
        if rows is None:
            return chosen
        return Selection(chosen.ids[rows], chosen.weights[rows], chosen.experts)

    def _ask(self, layer: MoeLayer, hidden: Tensor) -> Selection:
        """What a router says of another layer's input; `forward`, so that no hook runs."""
        weight = next(layer.router.parameters(), hidden)
        if weight.device.type != "meta":
            hidden = hidden.to(weight.device)
        with torch.no_grad():
            answer = layer.router.forward(hidden)
        return self._kept(layer, self._reader.read(layer, answer))

    def _prompt_sums(self, hidden: Tensor | None) -> prompts.Sums | None:
        tokens = self.step.first_prompt
        if hidden is None or not tokens.any():
            return None
        if self.embedded is None:
            raise RecorderError("the input embedding did not run; record with embeddings=False")
        both = [prompts.sums(states, tokens) for states in (self.embedded, hidden)]
        if both[0].shape != both[1].shape:
            widths = [part.shape[-1] for part in both]
            raise RecorderError(
                f"input embeddings have {widths[0]} numbers, final states {widths[1]}; record "
                "with embeddings=False"
            )
        return np.stack(both)


def _to_host(layers: list[Tensor]) -> npt.NDArray[Any]:
    """`[rows, layers, ...]` from one tensor a layer, of any devices."""
    device = layers[0].device
    stacked = torch.stack([part.to(device) for part in layers], dim=1)
    return stacked.cpu().numpy()
