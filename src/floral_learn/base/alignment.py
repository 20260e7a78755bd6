"""Which row belongs to which: what carries an index is matched by it, or refused; what carries none, by position."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from floral_learn.base.cells import TableError

WAY_OUT = "Give them the same index, or match them by position with .reset_index(drop=True) or .to_numpy()."


def index_of(data: Any) -> Any:
    """The pandas index of a frame or Series, the keys of a dict of rows; None for what has positions only.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from floral_learn.base.alignment import index_of
    >>> list(index_of(pd.Series([1, 2], index=["a", "b"])))
    ['a', 'b']
    >>> index_of(np.zeros(3)) is None, index_of([1, 2]) is None
    (True, True)
    """
    if hasattr(data, "iloc"):
        return None if callable(data.index) else data.index
    if isinstance(data, Mapping) and not hasattr(data, "shape"):  # scipy's sparse matrices by keys are dicts too
        import pandas as pd

        return pd.Index(list(data), tupleize_cols=False)
    return None


def align(rows: Any, other: Any, names: tuple[str, str] = ("X", "y")) -> Any:
    """`other` in the order of `rows`.

    Two equal indexes (names may repeat) match by position, and so does anything where one side has no index. The same
    unique names in another order are matched by name. All else is refused: nobody could say which row is which.

    Parameters
    ----------
    rows, other : array-like, Series, frame or dict of row -> value, or None
        `other` is returned as it came where positions match, and reordered by its index where names do. A dict has to
        name every row of `rows`, or every position from 0 where `rows` has no index; its values come as an array.
    names : pair of str
        What messages call the two.

    Examples
    --------
    >>> import pandas as pd
    >>> from floral_learn.base.alignment import align
    >>> X = pd.DataFrame({"age": [30, 40]}, index=["ann", "bob"])
    >>> align(X, pd.Series([1, 0], index=["bob", "ann"])).tolist()
    [0, 1]
    >>> align(X, [1, 0])
    [1, 0]
    """
    if isinstance(rows, np.ndarray) and (other is None or isinstance(other, np.ndarray)):
        return other
    refuse_repeated_columns(rows, names[0])
    left, right = index_of(rows), index_of(other)
    if right is None:
        return other
    if isinstance(other, Mapping):
        import pandas as pd

        if left is None:
            first = right if rows is None else rows
            left = pd.RangeIndex(first.shape[0] if hasattr(first, "shape") else len(first))
        other = pd.Series(list(other.values()), index=right, dtype=object if len(right) == 0 else None)
        return _by_name(left, right, other, names).to_numpy()
    if left is None or len(left) != len(right):
        return other  # a wrong length is refused where lengths are checked, in the words of that place
    return _by_name(left, right, other, names)


def refuse_repeated_columns(rows: Any, name: str = "X") -> None:
    """Refuse a frame of pandas or pyarrow with two columns of one name: nothing says which of them is meant."""
    columns = list(getattr(rows, "columns" if hasattr(rows, "iloc") else "column_names", ()))
    if len(set(columns)) < len(columns):
        ((repeated, _),) = Counter(columns).most_common(1)
        raise TableError(f"{name} has two columns named {_short(repeated)}; rename one of them")


def _by_name(left: Any, right: Any, other: Any, names: tuple[str, str]) -> Any:
    """`other`, whose index is `right`, in the order of the names `left`."""
    if left.equals(right):
        return other
    first, second = names
    for name, index in ((first, left), (second, right)):
        if not index.is_unique:
            twice = index[index.duplicated()][0]
            raise ValueError(
                f"{first} and {second} have different indexes, and that of {name} repeats names ({_short(twice)}), "
                f"so rows cannot be matched by name. {WAY_OUT}"
            )
    order = right.get_indexer(left)
    if len(left) != len(right) or (order < 0).any():
        lost, extra = left[order < 0], right[left.get_indexer(right) < 0]
        parts = [
            f"in {name} only: {first_names(index)}" for name, index in ((first, lost), (second, extra)) if len(index)
        ]
        known = int((order >= 0).sum())
        raise ValueError(
            f"{first} and {second} name different rows: {known:,} of {len(left):,} are in both; "
            f"{'; '.join(parts)}. {WAY_OUT}"
        )
    return other.iloc[order]


def first_names(index: Any) -> str:
    """The first three names."""
    return ", ".join(map(_short, index[:3])) + (", ..." if len(index) > 3 else "")


def _short(name: Any) -> str:
    name = name.item() if isinstance(name, np.generic) else name
    text = repr(name)
    return text if len(text) <= 40 else f"{text[:37]}..."
