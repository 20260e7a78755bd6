"""Find given labels that look wrong: the evidence, flags, equal rows and the names of the classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from floral_learn.audit.decisions import read_decisions, settle
from floral_learn.audit.inputs import ClassNames, Rows, look_at_names, read_arguments
from floral_learn.audit.result import REASONS, SHOWN, LabelIssues
from floral_learn.base.alignment import align
from floral_learn.base.rows import InputRows
from floral_learn.labels import LabelEvidence, judge_labels
from floral_learn.labels.evidence import checked_probabilities, draws_of
from floral_learn.labels.rows import label_votes, nearest_rows

Progress = Callable[[str, float], None]


def find_label_issues(
    X: Any,
    y: Any = None,
    *,
    model: Any = None,
    pred_probs: Any = None,
    groups: Any = None,
    label: Any = None,
    text: Any = (),
    text_encoder: str = "auto",
    ids: Any = None,
    trusted: Any = None,
    decisions: Any = None,
    drop: Any = (),
    random_state: Any = None,
    progress: Progress | None = None,
) -> LabelIssues:
    """Find labels that look wrong, rank all of them, and say what is known and what is not.

    Judges that did not see a row's label say what it would have been, and a model of how labels go wrong says how
    probable it is that this one did. All labels are ranked; where the judges know nothing about the labels, nothing is
    flagged.

    Parameters
    ----------
    X : array-like, sparse matrix, frame, Table, or None
        n rows of numbers or of any columns (words, categories, dates, holes). None with `pred_probs`.
    y : array-like of shape (n,), optional
        Labels of two or more classes; leave it out where `label` names a column of `X`.
    model : classifier, optional
        Judges in place of the library's own judges: cloned and trained on four fifths of the rows to judge the rest,
        five times over. It gets `X` as given, less the columns with a role.
    pred_probs : array-like of shape (n, M), optional
        Held-out probabilities of the classes, in sorted order, from a model of your own; nothing is trained then.
    groups, ids, trusted : str or array-like of shape (n,), optional
        Who gave each label; names of the rows; labels known to be right, which are never flagged. Each is an array or
        the name of a column. With `groups`, a label is weighed by how well the other labels of its author fit.
    label : str, optional
        The label column of the frame `X`.
    text : str or list of str
        Columns of the frame that are prose, whatever they look like.
    text_encoder : {"auto", "minilm", "tfidf"}, default="auto"
        How prose becomes numbers, see `TableEncoder`.
    decisions : path, DataFrame or list of dict, optional
        What people decided before (`read_decisions`): labels found wrong are replaced, those and the ones found right
        are trusted.
    drop : str or list of str
        Columns of the frame to leave out.
    random_state : int, RandomState, Generator or None
        Draws the folds, the landmarks and the map.
    progress : callable(stage, share), optional
        Told how much is done, a share in [0, 1].

    Returns
    -------
    LabelIssues
        A score, a flag and the evidence for every row, as tables and as a page.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn import find_label_issues
    >>> X, y = make_moons(200, noise=0.15, random_state=0)
    >>> given = y.copy()
    >>> given[:20] = 1 - given[:20]
    >>> issues = find_label_issues(X, given, random_state=0)
    >>> bool((issues.ranking[:15] < 20).mean() > 0.8)
    True
    """
    if model is not None and pred_probs is not None:
        raise ValueError("give model= or pred_probs=, not both")
    named = {"label": label, "text": text, "ids": ids, "groups": groups, "trusted": trusted, "drop": drop}
    first, whose = (y, "y") if X is None else (X, "X")
    pred_probs = align(first, pred_probs, (whose, "pred_probs"))
    data = read_arguments(X, y, text_encoder=text_encoder, rows_needed=pred_probs is None, **named)
    decided = [] if decisions is None else read_decisions(decisions, data.labels, rows=data.row_numbers)
    labels, sure = settle(data.labels, data.trusted, decided)
    if sure is not None and sure.all():
        raise ValueError("every label is trusted: there is nothing to judge")
    classes, before = np.unique(data.labels, return_inverse=True)
    given = np.searchsorted(classes, labels)
    names = look_at_names(classes, np.bincount(given, minlength=len(classes)))
    merged = names.merged[given]
    # rows of classes too small to be learned stay out of the evidence, and get zeros afterwards
    judged, known = _judged(merged, names)
    codes, said = np.searchsorted(known, merged[judged]), names.merged[before[judged]]
    rng, report = draws_of(random_state), progress or (lambda stage, share: None)
    if pred_probs is not None:
        pred_probs = _probabilities_of(pred_probs, classes, names, judged, known)
    settled = None if sure is None else sure[judged]
    rows = data.rows
    evidence = judge_labels(
        rows if rows is None or judged.all() else InputRows(rows.numbers[judged], rows.take(judged)),
        codes,
        model=model,
        pred_probs=pred_probs,
        groups=None if data.groups is None else data.groups[judged],
        # an author whose label was found wrong did give it
        author_codes=np.where(np.isin(said, known), np.searchsorted(known, said), codes),
        truth=None if settled is None else np.where(settled, codes, -1),
        random_state=rng,
        progress=lambda stage, share: report(stage, 0.85 * share),
    )
    flags = evidence.flags(trusted=settled)
    near = _neighbours(data, evidence.neighbours, judged)
    around = surroundings(None if rows is None else rows.numbers, merged, near, rng)
    report("map", 1.0)
    suggested = _favourite(near, merged, len(classes))
    suggested[judged] = known[flags.suggested]
    probability = np.zeros((len(given), len(classes)), dtype=evidence.probability.dtype)
    probability[np.ix_(judged, known)] = evidence.probability
    return LabelIssues(
        classes=classes,
        given=given,
        suggested=suggested,
        score=_spread(flags.score, judged),
        flagged=_spread(flags.flagged, judged),
        wrong_share=flags.wrong_share * float(judged.mean()),
        probability=probability,
        reasons=_reasons(evidence, flags.flagged, codes, judged, around),
        **around,
        informative=flags.informative,
        class_notes=names.lines,
        row_numbers=data.row_numbers,
        index=data.index,
        ids=data.ids,
        groups=data.groups,
        authors=evidence.authors,
        trusted=sure,
        decisions=decided,
        columns=data.columns,
        notes=data.notes,
    )


def _judged(merged: np.ndarray, names: ClassNames) -> tuple[np.ndarray, np.ndarray]:
    """Which rows can be judged (n,), and the numbers of their classes."""
    judged = ~np.isin(merged, names.few)
    known = np.unique(merged[judged])
    if len(known) < 2:
        m = len(names.merged)
        raise ValueError(
            f"the labels have {m} different value{'s' if m > 1 else ''} in {len(merged)} rows and {len(known)} of them "
            "with 5 rows or more; at least 2 such classes are needed"
        )
    return judged, known


def _probabilities_of(
    pred_probs: Any, classes: np.ndarray, names: ClassNames, judged: np.ndarray, known: np.ndarray
) -> np.ndarray:
    """The caller's probabilities of the judged rows and classes; columns of repeated names are added up."""
    given = checked_probabilities(pred_probs, len(judged), classes)
    out = np.zeros_like(given)
    for column, at in enumerate(names.merged):
        out[:, at] += given[:, column]
    part = out[np.ix_(judged, known)]
    return part / np.maximum(part.sum(axis=1, keepdims=True), 1e-12)


def _reasons(
    evidence: LabelEvidence, flagged: np.ndarray, codes: np.ndarray, judged: np.ndarray, around: dict[str, Any]
) -> np.ndarray:
    """Which of `REASONS` speak against each label, (n, reasons)."""
    reasons = np.zeros((len(judged), len(REASONS)), dtype=bool)
    reasons[judged, 0] = evidence.probability.argmax(axis=1) != codes
    reasons[:, 1] = around["neighbour_disagreement"] > 0.5
    reasons[around["near_duplicate_pairs"].ravel(), 2] = True
    reasons[:, 3] = ~judged
    if evidence.authors is not None:
        reasons[judged, 4] = (evidence.authors.shift > 0) & flagged
    return reasons


def _neighbours(data: Rows, near: np.ndarray | None, judged: np.ndarray) -> np.ndarray:
    """The nearest rows that a page shows, among all rows, (n, at most SHOWN)."""
    if data.rows is None or near is None:
        return np.empty((len(judged), 0), dtype=int)
    return near[:, :SHOWN] if judged.all() else nearest_rows(np.nan_to_num(data.rows.numbers), SHOWN)


def _favourite(near: np.ndarray, codes: np.ndarray, m: int) -> np.ndarray:
    """The class that most neighbours carry, the row's own left out, (n,); any other one without neighbours."""
    others = label_votes(near, codes, m)
    others[np.arange(len(codes)), codes] = -1
    return others.argmax(axis=1)


def _spread(values: np.ndarray, judged: np.ndarray) -> np.ndarray:
    """Values of the judged rows among all rows; zero for the others."""
    out = np.zeros(len(judged), dtype=values.dtype)
    out[judged] = values
    return out


def surroundings(X: Any, labels: np.ndarray, near: np.ndarray, rng: np.random.Generator) -> dict[str, Any]:
    """What is shown around each row, by the names of `LabelIssues`: neighbours, equal rows with other labels, a map."""
    n, k = near.shape
    position, method = place_on_map(X, n, rng)
    return {
        "neighbours": near,
        "neighbour_disagreement": (labels[near] != labels[:, None]).sum(axis=1) / max(k, 1),
        "near_duplicate_pairs": np.empty((0, 2), int) if X is None else find_near_duplicates(X, labels, near),
        "map_position": position,
        "map_method": method,
    }


def find_near_duplicates(X: np.ndarray, labels: np.ndarray, neighbours: np.ndarray, nearer: float = 0.1) -> np.ndarray:
    """Pairs of near-duplicate rows with different labels, nearest first, (pairs, 2).

    `labels` are class numbers (n,), `neighbours` the numbers of the nearest rows (n, k), nearest first. Rows are equal
    up to `nearer` of the typical distance to the nearest row: where rows lie densely, near is not equal.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.audit.issues import find_near_duplicates
    >>> X = np.array([[0.0], [0.001], [5.0], [9.0], [14.0]])
    >>> near = np.array([[1], [0], [3], [2], [3]])
    >>> find_near_duplicates(X, np.array([0, 1, 0, 1, 1]), near).tolist()
    [[0, 1]]
    """
    n, k = neighbours.shape
    one = np.repeat(np.arange(n), k)
    other = neighbours.ravel()
    differ = labels[one] != labels[other]
    pairs = np.unique(np.sort(np.column_stack([one, other])[differ], axis=1), axis=0)
    if not len(pairs):
        return pairs.reshape(0, 2)
    X = np.nan_to_num(X)
    distance = np.linalg.norm(X[pairs[:, 0]] - X[pairs[:, 1]], axis=1)
    nearest = float(np.median(np.linalg.norm(X - X[neighbours[:, 0]], axis=1)))
    close = np.flatnonzero(distance <= nearer * nearest)
    return pairs[close[np.argsort(distance[close], kind="stable")]]


def place_on_map(X: Any, n: int, rng: np.random.Generator) -> tuple[np.ndarray, str]:
    """Two coordinates per row: the features themselves, or principal components."""
    if X is None:
        return np.zeros((n, 2)), "nothing: no rows were given"
    X = np.nan_to_num(X)
    if X.shape[1] == 1:
        return np.column_stack([X[:, 0], np.zeros(n)]), "the one feature"
    if X.shape[1] == 2:
        return np.array(X, dtype=float), "the two features"
    if not X.var(axis=0).any():
        return np.zeros((n, 2)), "nothing: all rows are equal"
    solver = "randomized" if min(X.shape) > 50 else "full"
    made = PCA(2, svd_solver=solver, random_state=int(rng.integers(2**31)))
    position = made.fit_transform(X)
    share = 100 * made.explained_variance_ratio_.sum()
    return position, f"two principal components ({share:.0f} % of the variance)"
