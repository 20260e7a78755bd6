"""One fixture for every backend the core runs on."""

import pytest

from floral_learn.core.arrays import NUMPY
from floral_learn.core.torch_arrays import TorchBackend


def _backends():
    names = ["numpy", "torch-cpu"]
    import torch

    if torch.cuda.is_available():
        names.append("torch-cuda")
    return names


@pytest.fixture(params=_backends())
def backend(request):
    return NUMPY if request.param == "numpy" else TorchBackend(request.param.removeprefix("torch-"))
