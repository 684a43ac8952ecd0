"""The one error that the recorder raises."""

from __future__ import annotations


class RecorderError(RuntimeError):
    """What cannot be recorded, why, and what to do about it."""
