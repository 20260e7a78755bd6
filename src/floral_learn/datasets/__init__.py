"""The paper's Moon data and a table to try things on."""

from .dataset import Dataset
from .files import DataNotFoundError
from .files import find_file as find_file
from .files import search_path as search_path
from .moon import load_moon
from .sample import sample_table

__all__ = ["DataNotFoundError", "Dataset", "load_moon", "sample_table"]
