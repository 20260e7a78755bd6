"""Experiments as data: a suite unfolds into cells, cells leave tidy rows, rows become tables, figures and a page."""

__version__ = "0.4.0"
