"""Tests run on one thread: the models are tiny, and sums then come out the same."""

try:
    import torch
except ModuleNotFoundError:
    # Those of the package itself need no engine.
    pass
else:
    torch.set_num_threads(1)
