"""Data sets behind loaders that return a ``Dataset``."""

from .dataset import Dataset
from .files import DataNotFoundError
from .imdb import load_imdb
from .mnist import load_mnist
from .moon import load_moon
from .sample import sample_table

# name on the command line -> loader
DATASETS = {"moon": load_moon, "mnist": load_mnist, "imdb": load_imdb}

__all__ = [
    "DATASETS",
    "DataNotFoundError",
    "Dataset",
    "load_imdb",
    "load_mnist",
    "load_moon",
    "sample_table",
]
