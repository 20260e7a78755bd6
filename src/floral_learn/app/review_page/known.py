"""What a review knows so far: how many labels are wrong and where, what answers brought back, what more would bring.

Where wrong labels gather is said in words by a small tree over the columns that people see.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import fisher_exact

from floral_learn.app.review_page import words
from floral_learn.app.review_page.shown_rows import as_text, missing

CONFIDENCE = 0.95
_FEWEST = 2  # contradicted labels from which a part of the data is named
_DEPTH = 2  # of the tree that finds regions
_MOST_VALUES = 20  # of a category column
_WORDS = 200  # of a text column
_TREE_ROWS = 20_000  # on which the tree is grown


def describe(review: Any, rows: Any, groups: np.ndarray | None = None) -> dict[str, Any]:
    """What is known, for the page.

    Parameters
    ----------
    review : LabelReview
        The review; it is left as it was.
    rows : ShownRows
        The table as people read it.
    groups : ndarray of shape (n,), optional
        Where each label comes from.
    """
    share, sure = review.wrong_share, review.guarantee(confidence=CONFIDENCE)
    known = {
        "estimate": {
            "known": share.known,
            "share": float(share.estimate),
            "low": float(share.low),
            "high": float(share.high),
            "words": words.estimate(share),
            "under": words.share_below(share),
        },
        "guarantee": {"low": sure.low, "high": sure.high, "checked": sure.checked, "words": words.guarantee(sure)},
        "changed": int((review.labels != review.given).sum()),
        "where": [],
    }
    if not share.known:
        return known | {"ten": None, "stop": words.too_early()}
    ten = review.ten_more
    return known | {
        "where": where(review, rows, groups),
        "ten": {"labels": ten.labels, "words": words.ten_more(review.still_wrong, ten, len(rows.labels))},
        "stop": words.stop(bool(review.should_stop)),
    }


def where(review: Any, rows: Any, groups: np.ndarray | None) -> list[dict[str, Any]]:
    """The classes, sources and regions with clearly more wrong labels than the whole, most wrong first.

    Only those that answers bear out: at least two answers contradict labels there, and they do so more often than
    elsewhere (Fisher's exact test, one-sided). What the model believes of a part without such answers is its prior.
    """
    wrong = review.wrong_probability
    overall = float(wrong.mean())
    parts: list[tuple[Region, np.ndarray]] = []
    for name in rows.classes.tolist():
        inside = rows.labels == name
        parts.append((Region("class", f"labelled “{name}”", int(inside.sum()), float(wrong[inside].mean())), inside))
    for name in [] if groups is None else np.unique(groups).tolist():
        inside = groups == name
        parts.append((Region("source", f"from “{name}”", int(inside.sum()), float(wrong[inside].mean())), inside))
    parts += regions(rows, wrong)
    answers = {row: label for row, label in review.answers.items() if label is not None}
    notable = [
        (part, told)
        for part, inside in parts
        if part.share > overall and (told := _contradicted(answers, review.given, inside)) is not None
    ]
    notable.sort(key=lambda found: -(found[0].share - overall) * np.sqrt(found[0].rows))
    return [
        {
            "kind": part.kind,
            "name": part.name,
            "rows": part.rows,
            "share": part.share,
            "answers": told,
            "words": words.region(part, told),
        }
        for part, told in notable[:5]
    ]


def _contradicted(answers: Mapping[int, Any], given: np.ndarray, inside: np.ndarray) -> tuple[int, int] | None:
    """Answers `inside` that contradict the label, and all there; None where they are no more than elsewhere."""
    table = np.zeros((2, 2), dtype=int)
    for row, label in answers.items():
        table[int(not inside[row]), int(given[row] == label)] += 1
    if table[0, 0] < _FEWEST or fisher_exact(table, alternative="greater").pvalue > 1 - CONFIDENCE:
        return None
    return int(table[0, 0]), int(table[0].sum())


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
    some = np.arange(n) if n <= _TREE_ROWS else np.linspace(0, n - 1, _TREE_ROWS).astype(int)
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
        counter = CountVectorizer(binary=True, max_features=_WORDS)
        return counter.fit_transform(texts).toarray().astype(np.float32), counter.get_feature_names_out().tolist()
    except ValueError:
        return None


def _number(name: str) -> Any:
    return lambda threshold, above: f"{name} {'above' if above else 'at most'} {threshold:.4g}"


def _category(name: str, value: str) -> Any:
    return lambda threshold, above: f"{name} {'' if above else 'not '}{value or 'missing'}"


def _word(name: str, word: str) -> Any:
    return lambda threshold, above: f"{'' if above else 'no '}“{word}” in {name}"
