"""Tests run on one thread: the models are tiny, and sums then come out the same."""

import torch

torch.set_num_threads(1)
