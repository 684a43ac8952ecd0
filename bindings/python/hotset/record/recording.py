"""A Hugging Face recording on its way to a file: rows in a table, facts for `info`."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from . import output
from .architecture import Architecture
from .batches import Batch, Step
from .capture import Rows
from .errors import RecorderError
from .prompts import NAMES, PromptMeans
from .table import Routed, Table, check_facts
from .version import __version__

_OWN_KEYS = (
    "model layers experts top_k moe_layer_ids model_layers dense_layers layout phases "
    "sequence_labels router_ids weights predictions token_id step recorder torch transformers "
    "dtype device prompt_tokens turns expert_bytes"
).split()


class Recording:
    """Rows in, a file out. The number of experts is known with the first rows."""

    def __init__(
        self,
        architecture: Architecture,
        *,
        name: str | None,
        weights: str | None,
        lookahead: int,
        embeddings: bool,
        extra: dict[str, Any],
        buffer_bytes: int,
        folder: Path | None,
    ) -> None:
        """Checks `extra`; opens no file yet."""
        check_facts(extra, _OWN_KEYS)
        self._table = Table(weights, buffer_bytes, folder, lookahead)
        self._architecture = architecture
        self._name = name
        self._lookahead = lookahead
        self._embeddings = embeddings
        self._extra = extra
        self._buffer_bytes = buffer_bytes
        self._folder = folder
        self._labels: list[str] = []
        self._prompts: PromptMeans | None = None

    def add(self, step: Step, rows: Rows) -> None:
        """Adds a step's rows and moves its batch on."""
        if len(rows.ids):
            routed = Routed(
                ids=rows.ids,
                weights=rows.weights,
                sequence=self._numbers(step),
                position=step.positions,
                token_id=None if step.tokens is None else step.tokens[step.real],
                phase=np.broadcast_to(step.phase, step.real.shape)[step.real],
                predicted=rows.predicted,
            )
            known = rows.experts or self._table.experts or self._stated_experts()
            self._table.add(routed, known)
        if self._embeddings:
            self._add_prompts(step, rows)
        step.advance()

    def end(self, batch: Batch) -> None:
        """The batch will not go on."""
        if self._prompts is not None:
            self._prompts.end(batch)

    def write(self, path: Path, router_ids: str, compress: bool) -> None:
        """Writes the file."""
        arrays = self._table.arrays()
        if self._prompts is not None:
            self._prompts.end_all()
            extent = (len(self._labels), self._prompts.dim)
            for name in NAMES:
                blocks = partial(self._prompts.spool.blocks, name)
                arrays.append(output.Array(name, np.dtype(np.float16), extent, blocks))
        info = json.dumps(self._info(router_ids), ensure_ascii=False)
        output.write(path, arrays, info, compress)

    def close(self) -> None:
        """Gives temporary files back."""
        self._table.close()
        if self._prompts is not None:
            self._prompts.spool.close()

    def _stated_experts(self) -> int:
        layer = self._architecture.layers[0]
        names = (
            "num_experts",
            "num_local_experts",
            "n_routed_experts",
            "moe_num_experts",
        )
        for owner in (layer.router, layer.block, self._architecture.config):
            for name in names:
                if isinstance(experts := getattr(owner, name, None), int):
                    return experts
        raise RecorderError("neither the routers nor the configuration say how many experts")

    def _numbers(self, step: Step) -> npt.NDArray[np.int64]:
        """`[rows]`: sequence numbers, new ones for sequences that have their first row."""
        batch = step.batch
        for place in np.flatnonzero(step.real.any(axis=1)):
            if batch.numbers[place] is None:
                batch.numbers[place] = len(self._labels)
                self._labels.append(batch.labels[place])
        counts = step.real.sum(axis=1)
        known = np.array([-1 if n is None else n for n in batch.numbers], np.int64)
        return np.repeat(known, counts)

    def _add_prompts(self, step: Step, rows: Rows) -> None:
        without = (
            step.real.any(axis=1) & step.batch.in_first_prompt & ~step.first_prompt.any(axis=1)
        )
        if (without & (step.batch.positions == 0)).any():
            raise RecorderError("a sequence has no prompt; record with embeddings=False")
        if rows.prompt_sums is None:
            return
        if self._prompts is None:
            dim = rows.prompt_sums.shape[-1]
            self._prompts = PromptMeans(dim, self._buffer_bytes, self._folder)
        self._prompts.add(step.batch, rows.prompt_sums, step.first_prompt.sum(axis=1))

    def _info(self, router_ids: str) -> dict[str, Any]:
        found = self._architecture
        weight = next(found.trunk.parameters(), None)
        transformers = sys.modules.get("transformers")
        stated = getattr(found.config, "_name_or_path", "") or type(found.trunk).__name__
        info: dict[str, Any] = {
            "layout": "hotset-npz/1",
            "model": self._name or stated,
            "layers": len(found.layers),
            "experts": self._table.experts,
            "top_k": self._table.top_k,
            "moe_layer_ids": [layer.number for layer in found.layers],
            "model_layers": found.model_layers,
            "dense_layers": found.dense_layers,
            "phases": ["prefill", "decode"],
            "sequence_labels": self._labels,
            "router_ids": f"{router_ids} ({type(found.layers[0].router).__name__})",
            "step": "number of the forward pass",
            "recorder": f"hotset-recorder {__version__}",
            "torch": torch.__version__,
            "transformers": getattr(transformers, "__version__", None),
            "dtype": (None if weight is None else str(weight.dtype).removeprefix("torch.")),
            "device": None if weight is None else weight.device.type,
        }
        info |= self._table.weights_fact()
        if self._lookahead:
            info["predictions"] = (
                "entry [a, t, l]: the router of MoE layer l run on the router input of MoE "
                "layer l - a - 1"
            )
        return {**info, **self._table.tokens_fact(), **self._extra}
