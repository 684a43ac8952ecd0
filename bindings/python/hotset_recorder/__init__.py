"""The old name of `hotset.record`."""

from __future__ import annotations

from typing import Any

import hotset.record
from hotset.record import RecorderError, __version__

__all__ = ["Recorder", "RecorderError", "__version__"]


def __getattr__(name: str) -> Any:
    """`Recorder`, when it is first asked for: it needs torch."""
    return getattr(hotset.record, name)
