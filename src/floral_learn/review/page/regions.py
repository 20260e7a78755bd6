"""Where the wrong labels are, in words: a small tree over the columns that people see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from floral_learn.review.page.shown_rows import as_text, missing

_DEPTH = 2
_MOST_VALUES = 20  # of a category column
_WORDS = 200
_MOST_ROWS = 20_000


@dataclass(frozen=True)
class Region:
    """A part of the data, its size, and the estimated share of wrong labels in it."""

    kind: str  # "class", "source" or "region"
    name: str
    rows: int
    share: float


def regions(rows: Any, wrong: np.ndarray, most: int = 2) -> list[tuple[Region, np.ndarray]]:
    """Parts of the table, described by at most two conditions, in which wrong labels gather, and their rows.

    Parameters
    ----------
    rows : ShownRows
        The table.
    wrong : ndarray of shape (n,)
        Probability that each label is wrong.
    most : int
        Number of parts.
    """
    from sklearn.tree import DecisionTreeRegressor

    n = len(wrong)
    if getattr(rows, "_region_table", None) is None:
        rows._region_table = _features(rows)
    table, conditions = rows._region_table
    if table is None or not table.shape[1]:
        return []
    some = np.arange(n) if n <= _MOST_ROWS else np.linspace(0, n - 1, _MOST_ROWS).astype(int)
    tree = DecisionTreeRegressor(max_depth=_DEPTH, min_samples_leaf=max(5, n // 50), random_state=0)
    leaves = tree.fit(table[some], wrong[some]).apply(table)
    found = []
    for leaf in np.unique(leaves):
        inside = leaves == leaf
        path = _path(tree.tree_, int(leaf))
        if path:
            name = " and ".join(conditions[column](threshold, above) for column, threshold, above in path)
            part = Region("region", f"rows with {name}", int(inside.sum()), float(wrong[inside].mean()))
            found.append((part, inside))
    return sorted(found, key=lambda pair: -pair[0].share)[:most]


def _path(tree: Any, leaf: int) -> list[tuple[int, float, bool]]:
    """Conditions from the root to a leaf; of two on the same side of one column only the last, narrower one."""
    parent: dict[int, tuple[int, bool]] = {}
    for node in range(tree.node_count):
        if tree.children_left[node] >= 0:
            parent[tree.children_left[node]] = (node, False)
            parent[tree.children_right[node]] = (node, True)
    path: dict[tuple[int, bool], tuple[int, float, bool]] = {}
    node = leaf
    while node in parent:
        above, (node, side) = parent[node][1], parent[node]
        path.setdefault((tree.feature[node], side), (int(tree.feature[node]), float(tree.threshold[node]), above))
    return list(reversed(path.values()))


def _features(rows: Any) -> tuple[np.ndarray | None, list[Any]]:
    """Numbers as they are, categories and words as yes or no; and how to say a condition on each."""
    blocks, say = [], []
    for i, column in enumerate(rows.columns):
        values = rows.frame.iloc[:, i]
        if column.kind == "number":
            numbers = values.to_numpy(dtype=float)
            middle = np.nanmedian(numbers[np.isfinite(numbers)]) if np.isfinite(numbers).any() else 0.0
            blocks.append(np.where(np.isfinite(numbers), numbers, middle)[:, None])
            say.append(_number(column.name))
        elif column.kind == "category":
            texts = np.array(["" if missing(value) else as_text(value) for value in values.tolist()])
            names, counts = np.unique(texts, return_counts=True)
            for name in names[np.argsort(-counts, kind="stable")][:_MOST_VALUES]:
                blocks.append((texts == name)[:, None].astype(float))
                say.append(_category(column.name, str(name)))
        elif column.kind == "text":
            made = _words_of(["" if missing(value) else str(value) for value in values.tolist()])
            if made is not None:
                blocks.append(made[0])
                say += [_word(column.name, word) for word in made[1]]
    return (np.hstack(blocks) if blocks else None), say


def _words_of(texts: list[str]) -> tuple[np.ndarray, list[str]] | None:
    from sklearn.feature_extraction.text import CountVectorizer

    try:
        counter = CountVectorizer(binary=True, max_df=0.6, min_df=max(2, len(texts) // 100), max_features=_WORDS)
        return counter.fit_transform(texts).toarray().astype(np.float32), counter.get_feature_names_out().tolist()
    except ValueError:
        return None


def _number(name: str) -> Any:
    return lambda threshold, above: f"{name} {'above' if above else 'at most'} {threshold:.4g}"


def _category(name: str, value: str) -> Any:
    return lambda threshold, above: f"{name} {'' if above else 'not '}{value or 'missing'}"


def _word(name: str, word: str) -> Any:
    return lambda threshold, above: f"{'' if above else 'no '}“{word}” in {name}"
