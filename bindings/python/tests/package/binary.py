"""The command line that results are compared with."""

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[4]


def _found():
    names = [REPOSITORY / "target" / kind / "hotset" for kind in ("release", "debug")]
    if "HOTSET_BIN" in os.environ:
        names = [Path(os.environ["HOTSET_BIN"])]
    found = next((name for name in names if name.is_file()), None)
    if found is None and "CI" in os.environ:
        pytest.fail(f"no hotset at {', '.join(map(str, names))}: build it or set HOTSET_BIN")
    return found


HOTSET = _found()
