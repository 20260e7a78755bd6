"""Labels that are suspect by their spelling alone: classes of a few rows, and names that mean the same class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from floral_learn.tables.class_names import merge_alike, name_of, plain_name

FEWEST = 5  # rows of a class below which nobody can learn what it looks like
_SHORTEST = 4  # letters from which two names that differ in one are taken for a slip


@dataclass(frozen=True)
class ClassNames:
    """What the names and sizes of the classes say.

    Attributes
    ----------
    merged : int ndarray of shape (M,)
        For each class, the class whose name it repeats (its own number for most): differs in case, spaces or the like.
    few : int ndarray
        Classes of fewer than five rows after merging: their rows are not judged.
    lines : list of str
        The finds in words.
    """

    merged: np.ndarray
    few: np.ndarray
    lines: list[str]


def look_at_names(classes: np.ndarray, counts: np.ndarray) -> ClassNames:
    """Find classes that repeat another's name, look like a slip of the pen, or have too few rows.

    Parameters
    ----------
    classes : ndarray of shape (M,)
        The labels.
    counts : int ndarray of shape (M,)
        Rows of each.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.audit.class_names import look_at_names
    >>> found = look_at_names(np.array(["Stays", "leaves", "stays"]), np.array([1, 40, 60]))
    >>> found.merged.tolist(), found.lines
    ([2, 1, 2], ["'Stays' (1 row) and 'stays' (60 rows) differ only in case or spaces: probably one class"])
    """
    merged, lines = merge_alike(classes, counts)
    names = [str(c) if isinstance(c, str) else None for c in classes.tolist()]
    total = np.bincount(merged, weights=counts, minlength=len(classes))
    few = np.array([c for c in range(len(classes)) if merged[c] == c and total[c] < FEWEST], dtype=int)
    for c in few:
        like = next((d for d in range(len(classes)) if d not in few and _slip(names[c], names[d])), None)
        hint = "" if like is None else f"; perhaps {str(classes[like])!r} is meant"
        lines.append(f"class {name_of(classes, counts, c)} is too small to judge: its labels are not audited{hint}")
    return ClassNames(merged, few, lines)


def _slip(one: str | None, other: str | None) -> bool:
    """Whether two names differ by one letter added, left out, replaced or swapped with its neighbour; digits count."""
    if one is None or other is None:
        return False
    a, b = plain_name(one), plain_name(other)
    if min(len(a), len(b)) < _SHORTEST or abs(len(a) - len(b)) > 1:
        return False
    start = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    x, y = a[start:], b[start:]
    if any(character.isdigit() for character in x[:1] + y[:1]):
        return False
    return x[1:] == y[1:] or x[1:] == y or x == y[1:] or (x[:2] == y[1::-1] and x[2:] == y[2:])
