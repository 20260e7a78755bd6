"""The paper's data sets, each behind a loader that returns a ``Dataset``."""

from .dataset import Dataset
from .files import DataNotFoundError
from .mnist import load_mnist
from .moon import load_moon

# name on the command line -> loader
DATASETS = {"moon": load_moon, "mnist": load_mnist}

__all__ = ["DATASETS", "DataNotFoundError", "Dataset", "load_mnist", "load_moon"]
