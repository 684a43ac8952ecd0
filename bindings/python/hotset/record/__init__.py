"""Records which experts a MoE model routes each token to, for hotset.

`Recorder` is for Hugging Face models; `hotset.record.llama_cpp` has the one for llama.cpp,
which needs no torch: so nothing is imported before it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import RecorderError
from .version import __version__

if TYPE_CHECKING:
    from .recorder import Recorder

__all__ = ["Recorder", "RecorderError", "__version__"]


def __getattr__(name: str) -> Any:
    """`Recorder`, when it is first asked for."""
    if name == "Recorder":
        try:
            from .recorder import Recorder
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise ImportError(
                "Recorder is for Hugging Face models and needs torch: "
                "pip install './bindings/python[transformers]' (for llama.cpp, which does not: "
                "from hotset.record.llama_cpp import Recorder)"
            ) from error

        return Recorder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
