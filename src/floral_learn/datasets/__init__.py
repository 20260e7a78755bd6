"""The paper's Moon data and a table to try things on."""

from .dataset import Dataset
from .files import DataNotFoundError
from .moon import load_moon
from .sample import sample_table

__all__ = ["DataNotFoundError", "Dataset", "load_moon", "sample_table"]
