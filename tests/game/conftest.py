"""One fixture for every backend the core runs on."""

from importlib.util import find_spec

import pytest

from floral_learn.game import NUMPY


def _backends():
    names = ["numpy"]
    if find_spec("torch") is None:  # an install without the extra tests what it has
        return names
    import torch

    names.append("torch-cpu")
    if torch.cuda.is_available():
        names.append("torch-cuda")
    return names


@pytest.fixture(params=_backends())
def backend(request):
    if request.param == "numpy":
        return NUMPY
    from floral_learn.game.arrays import TorchBackend

    return TorchBackend(request.param.removeprefix("torch-"))
