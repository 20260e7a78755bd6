"""Kinds of cells: each module computes the cells of one kind, given their labels."""
