"""Progress bars: tqdm's where it is installed, else none."""

from __future__ import annotations

import sys
from typing import Any, Callable

Progress = Callable[[int, int], Any]


def told(progress: bool | Progress | None, title: str) -> tuple[Progress | None, Callable[[], None]]:
    """Whom to tell how many replays of how many are done, and what to call at the end."""
    if callable(progress):
        return progress, lambda: None
    if progress is None and not (sys.stderr is not None and sys.stderr.isatty()):
        progress = "ipykernel" in sys.modules
    if progress is False:
        return None, lambda: None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None, lambda: None
    bar = tqdm(total=None, desc=title, unit="replay", leave=False)

    def move(done: int, of: int) -> None:
        if of and bar.total != of:
            bar.reset(total=of)
        bar.update(done - bar.n)

    return move, bar.close
