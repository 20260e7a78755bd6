"""Data sets of the paper by name: Moon comes with the library, MNIST and IMDB are looked for in the data folder."""

from floral_bench.datasets.imdb import load_imdb
from floral_bench.datasets.mnist import load_mnist
from floral_learn.datasets import load_moon

# name of a suite's data -> loader
DATASETS = {"moon": load_moon, "mnist": load_mnist, "imdb": load_imdb}

__all__ = ["DATASETS", "load_imdb", "load_mnist"]
