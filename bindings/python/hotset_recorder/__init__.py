"""Records which experts a Hugging Face MoE model routes each token to, for hotset."""

from .errors import RecorderError
from .recorder import Recorder
from .version import __version__

__all__ = ["Recorder", "RecorderError", "__version__"]
