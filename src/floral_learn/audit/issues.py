"""Find given labels that look wrong: the evidence, flags, equal rows and the names of the classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from floral_learn.audit.decisions import read_decisions, settle
from floral_learn.audit.inputs import ClassNames, Rows, look_at_names, read_arguments
from floral_learn.audit.result import REASONS, SHOWN, LabelIssues, overlapping_pairs
from floral_learn.base.alignment import align
from floral_learn.base.rows import InputRows
from floral_learn.labels import LabelEvidence, judge_labels
from floral_learn.labels.evidence import checked_probabilities, draws_of
from floral_learn.labels.rows import label_votes, nearest_rows

_STAGES = {"neighbours": 0.2, "held-out models": 0.85, "map": 1.0}

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
    classes, given = np.unique(labels, return_inverse=True)
    names = look_at_names(classes, np.bincount(given))
    judged, codes, known = _judged(given, names, len(classes))
    rng, tell = _own_draws(random_state), _Stages(progress)
    if pred_probs is not None:
        among = classes if decisions is None else np.unique(data.labels)
        pred_probs = _of_judged(_merged_probabilities(pred_probs, among, names, classes, len(given)), judged, known)
    # rows of classes too small to be learned stay out of the evidence, and get zeros afterwards
    settled = None if sure is None else sure[judged]
    evidence = judge_labels(
        _rows_of(data.rows, judged),
        codes,
        model=model,
        pred_probs=pred_probs,
        groups=None if data.groups is None else data.groups[judged],
        author_codes=_before_decisions(data.labels[judged], codes, classes, names, known),
        truth=None if settled is None else np.where(settled, codes, -1),
        random_state=rng,
        progress=tell,
    )
    flags = evidence.flags(trusted=settled)
    merged = names.merged[given]
    tell("map", 0)
    near = _neighbours(data, evidence.neighbours, judged)
    around = surroundings(None if data.rows is None else data.rows.numbers, merged, near, rng)
    tell("map", 1)
    suggested = _favourite(near, merged, len(classes))
    suggested[judged] = known[flags.suggested]
    return LabelIssues(
        classes=classes,
        given=given,
        suggested=suggested,
        score=_spread(flags.score, judged),
        flagged=_spread(flags.flagged, judged),
        wrong_probability=_spread(flags.wrong_probability, judged),
        wrong_share=flags.wrong_share * float(judged.mean()),
        probability=_all_classes(evidence.probability, judged, known, len(classes)),
        reasons=_reasons(evidence, flags.flagged, codes, judged, around),
        **around,
        log_loss_saved=flags.gain,
        informative=flags.informative,
        agreement=float((evidence.probability.argmax(axis=1) == codes).mean()),
        overlapping=overlapping_pairs(evidence.probability, known) if flags.informative else [],
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


def _judged(given: np.ndarray, names: ClassNames, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which rows can be judged (n,), their class numbers among the judged classes, and these classes."""
    merged = names.merged[given]
    judged = ~np.isin(merged, names.few)
    known = np.unique(merged[judged])
    if len(known) < 2:
        raise ValueError(
            f"the labels have {m} different value{'s' if m > 1 else ''} in {len(given)} rows and {len(known)} of them "
            "with 5 rows or more; at least 2 such classes are needed"
        )
    return judged, np.searchsorted(known, merged[judged]), known


def _own_draws(random_state: Any) -> np.random.Generator:
    """A generator for one audit; one of the caller's own moves on by one draw, whatever is judged."""
    rng = draws_of(random_state)
    return np.random.default_rng(int(rng.integers(2**31))) if rng is random_state else rng


def _rows_of(rows: InputRows | None, judged: np.ndarray) -> InputRows | None:
    return rows if rows is None or judged.all() else InputRows(rows.numbers[judged], rows.take(judged))


def _of_judged(probability: np.ndarray, judged: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The probabilities of the judged rows and classes, which add up to one again."""
    if judged.all() and len(known) == probability.shape[1]:
        return probability
    part = probability[np.ix_(judged, known)]
    return part / np.maximum(part.sum(axis=1, keepdims=True), 1e-12)


def _all_classes(probability: np.ndarray, judged: np.ndarray, known: np.ndarray, m: int) -> np.ndarray:
    """Probabilities of all rows and classes, (n, m); zero for those that were not judged."""
    out = np.zeros((len(judged), m), dtype=probability.dtype)
    out[np.ix_(judged, known)] = probability
    return out


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


def _before_decisions(
    labels: np.ndarray, codes: np.ndarray, classes: np.ndarray, names: ClassNames, known: np.ndarray
) -> np.ndarray:
    """Class numbers of the labels before people's decisions: an author whose label was found wrong did say it."""
    place = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    merged = names.merged[place]
    number = np.minimum(np.searchsorted(known, merged), len(known) - 1)
    there = (classes[place] == labels) & (known[number] == merged)
    return np.where(there, number, codes)


def _merged_probabilities(
    pred_probs: Any, among: np.ndarray, names: ClassNames, classes: np.ndarray, n: int
) -> np.ndarray:
    """Probabilities (n, M) with one column per class of `classes`, those of repeated names added up."""
    given = checked_probabilities(pred_probs, n, among)
    if len(among) == len(classes) and (names.merged == np.arange(len(classes))).all():
        return given
    out = np.zeros((n, len(classes)), dtype=given.dtype)
    for column, name in enumerate(among):
        at = np.flatnonzero(classes == name)
        if len(at):  # a class whose last label was decided away has no column any more
            out[:, names.merged[at[0]]] += given[:, column]
    return out


def _neighbours(data: Rows, near: np.ndarray | None, judged: np.ndarray) -> np.ndarray:
    """The nearest rows that a page shows, among all rows, (n, at most SHOWN)."""
    if data.rows is None or near is None:
        return np.empty((len(judged), 0), dtype=int)
    if judged.all():
        return near[:, :SHOWN]
    return nearest_rows(np.nan_to_num(data.rows.numbers), SHOWN)


def _favourite(near: np.ndarray, codes: np.ndarray, m: int) -> np.ndarray:
    """The class that most neighbours carry, the row's own left out, (n,); any other one without neighbours."""
    if not near.shape[1]:
        return (codes + 1) % m
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


class _Stages:
    """Turn the stages' own shares into one share of the whole."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress, self.done = progress, 0.0

    def __call__(self, stage: str, share: float) -> None:
        if self.progress is None:
            return
        names = list(_STAGES)
        start = _STAGES[names[names.index(stage) - 1]] if stage != names[0] else 0.0
        self.done = max(self.done, start + share * (_STAGES[stage] - start))
        self.progress(stage, self.done)


def place_on_map(X: Any, n: int, rng: np.random.Generator) -> tuple[np.ndarray, str]:
    """Two coordinates per row: the features themselves, UMAP where it is installed, else principal components."""
    if X is None:
        return np.zeros((n, 2)), "nothing: no rows were given"
    X = np.nan_to_num(X)
    if X.shape[1] == 1:
        return np.column_stack([X[:, 0], np.zeros(n)]), "the one feature"
    if X.shape[1] == 2:
        return np.array(X, dtype=float), "the two features"
    seed = int(rng.integers(2**31))
    if not X.var(axis=0).any():
        return np.zeros((n, 2)), "nothing: all rows are equal"
    try:
        from umap import UMAP
    except ImportError:
        made = PCA(2, svd_solver="randomized" if min(X.shape) > 50 else "full", random_state=seed)
        position = made.fit_transform(X)
        share = 100 * made.explained_variance_ratio_.sum()
        return position, f"two principal components ({share:.0f} % of the variance)"
    return np.asarray(UMAP(random_state=seed).fit_transform(X)), "UMAP"
