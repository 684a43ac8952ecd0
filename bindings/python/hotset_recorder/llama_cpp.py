"""The old name of `hotset.record.llama_cpp`."""

from hotset.record.llama_cpp import Recorder

__all__ = ["Recorder"]
