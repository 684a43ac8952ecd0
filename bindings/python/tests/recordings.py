"""Reading recordings back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np


def read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the info of an `.npz`."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    return arrays, json.loads(arrays.pop("info").tobytes())


def of_sequence(arrays: dict[str, np.ndarray], number: int) -> dict[str, np.ndarray]:
    """The rows of one sequence, but for what depends on what ran before it."""
    kept = arrays["sequence"] == number
    names = ("expert_ids", "expert_weights", "position", "token_id", "phase")
    return {name: arrays[name][kept] for name in names}
