"""Find given labels that look wrong: held-out models, neighbours, equal rows and the names of the classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.decomposition import PCA
from sklearn.utils import _safe_indexing, check_random_state

from floral_learn.audit.class_names import ClassNames, look_at_names
from floral_learn.audit.decisions import Decision, read_decisions
from floral_learn.audit.inputs import Rows, gather
from floral_learn.audit.judge import Progress, held_out, kernel_and_neighbours, log_of
from floral_learn.audit.neighbours import SHOWN, find_neighbours
from floral_learn.audit.result import REASONS, THRESHOLD, AuditResult, look_alikes
from floral_learn.audit.twins import find_twins
from floral_learn.crowd.authors import judge_authors
from floral_learn.labels.flagging import flag, temper

MOST_BY_AUTHOR = 2.5  # log-odds that an author's other labels add: they must not drown what the row says
A_REASON = 1.0  # log-odds from which they are a reason of their own

_STAGES = {"neighbours": 0.2, "held-out models": 0.85, "map": 1.0}


def audit(
    X: Any,
    y: Any = None,
    *,
    label: Any = None,
    text: Any = (),
    text_encoder: str = "auto",
    ids: Any = None,
    groups: Any = None,
    trusted: Any = None,
    decisions: Any = None,
    drop: Any = (),
    estimator: Any = None,
    pred_probs: Any = None,
    random_state: Any = None,
    progress: Progress | None = None,
) -> AuditResult:
    """Find labels that look wrong, rank all of them, and say what is known and what is not.

    A model that did not see a row's label says what it would have been. Labels that it contradicts are flagged where
    they form a group of their own; where classes merely overlap, only the strongest contradictions are, and the result
    says so; where the model knows nothing about the labels, nothing is flagged.

    Parameters
    ----------
    X : array-like, sparse matrix, DataFrame or Table of n rows
        Numbers in which distances mean something (standardised columns, embeddings), or a table of any columns, which
        `TableEncoder` turns into numbers.
    y : array-like of shape (n,), optional
        Labels of two or more classes; leave it out where `label` names a column of `X`.
    label : str, optional
        The label column of the table `X`.
    text : str or list of str
        Columns of the table that are prose, whatever they look like.
    text_encoder : {"auto", "minilm", "tfidf"}, default="auto"
        How prose becomes numbers, see `TableEncoder`.
    ids, groups, trusted : str or array-like of shape (n,), optional
        Names of the rows; who gave each label; labels known to be right, which are never suspected. Each is an array
        or the name of a column. With `groups`, a label is weighed by how well the other labels of its author fit, as
        `aggregate_votes` weighs votes, and the result has a ranking of the authors.
    decisions : path, DataFrame or list of dict, optional
        What people decided before (`read_decisions`): labels found wrong are replaced, those and the ones found right
        are trusted.
    drop : str or list of str
        Columns of the table to leave out.
    estimator : classifier, optional
        The judge: cloned and trained on four fifths of the rows to judge the rest, five times over. By default a
        kernel machine (C = 1) and the nearest rows together. It gets `X` as given, less the columns with a role.
    pred_probs : array-like of shape (n, M), optional
        Held-out probabilities of the classes, in sorted order, from a judge of your own; nothing is trained then.
    random_state : int, RandomState, Generator or None
        Draws the folds, the landmarks and the map.
    progress : callable(stage, share), optional
        Told how much is done, a share in [0, 1].

    Returns
    -------
    AuditResult
        Suspicion and evidence for every row, as tables and as a page.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn.audit import audit
    >>> X, y = make_moons(200, noise=0.15, random_state=0)
    >>> given = y.copy()
    >>> given[:15] = 1 - given[:15]
    >>> found = audit(X, given, random_state=0)
    >>> found.apart, bool(np.isin(found.flagged(), np.arange(15)).mean() >= 0.8)
    (True, True)
    """
    if estimator is not None and pred_probs is not None:
        raise ValueError("give estimator= or pred_probs=, not both")
    named = {"label": label, "text": text, "ids": ids, "groups": groups, "trusted": trusted, "drop": drop}
    data = gather(X, y, text_encoder=text_encoder, **named)
    decided = [] if decisions is None else read_decisions(decisions, data.labels, rows=data.rows)
    labels, sure = _decide(data, decided)
    classes, given = np.unique(labels, return_inverse=True)
    names = look_at_names(classes, np.bincount(given))
    judged, codes, known = _judged(given, names, len(classes))
    rng = np.random.default_rng(_seed(random_state))
    tell = _Teller(progress)
    tell("neighbours", 0)
    near = find_neighbours(data.X, rng)
    twins = find_twins(data.X, names.merged[given], near.rows[:, :SHOWN], rng)
    inner = near if judged.all() else find_neighbours(data.X[judged], rng)
    if pred_probs is not None:
        among = classes if decisions is None else np.unique(data.labels)
        chances = _checked(pred_probs, len(given), among, names, classes)[judged][:, known]
        model = temper(log_of(chances), codes)
        opinions = [model]
    elif estimator is not None:
        model = held_out(estimator, _part(data.raw, judged), codes, len(known), _draw(rng), tell)
        opinions = [model]
    else:
        model, votes = kernel_and_neighbours(data.X[judged], inner, codes, len(known), _draw(rng), tell)
        opinions = [model, votes]
    chances = np.mean(opinions, axis=0)
    settled = None if sure is None else sure[judged]
    found = flag(chances, codes, shares=inner.votes(codes, len(known)), trusted=settled)
    authors, against = None, np.zeros(len(codes))
    if data.groups is not None:
        answers = None if settled is None else np.where(settled, codes, -1)
        said = _as_said(data.labels[judged], codes, classes, names, known)
        authors = judge_authors(said, data.groups[judged], chances, known=answers)
        against = np.clip(authors.shift(chances), -MOST_BY_AUTHOR, MOST_BY_AUTHOR)
        found = replace(found, suspicion=expit(_logit(found.suspicion) + against))
    tell("map", 0)
    place, map_name = place_on_map(data.X, rng)
    tell("map", 1)
    disputes = np.zeros(len(given))
    disputes[judged] = 1 - model[np.arange(len(codes)), codes]
    differ = near.disagreement(names.merged[given])
    suggested = near.favourite(names.merged[given], len(classes))
    suggested[judged] = known[found.suggested]
    suspicion = np.zeros(len(given))
    suspicion[judged] = found.suspicion
    probabilities = np.zeros((len(given), len(classes)))
    probabilities[np.ix_(judged, known)] = chances
    holds = np.zeros((len(given), len(REASONS)), dtype=bool)
    holds[judged, 0] = model.argmax(axis=1) != codes
    holds[:, 1] = differ > 0.5
    holds[twins.ravel(), 2] = True
    holds[:, 3] = ~judged
    holds[judged, 4] = (against >= A_REASON) & (found.suspicion >= THRESHOLD)
    return AuditResult(
        classes=classes,
        given=given,
        suggested=suggested,
        suspicion=suspicion,
        probabilities=probabilities,
        disagreement=disputes,
        neighbour_disagreement=differ,
        holds=holds,
        neighbours=near.rows[:, :SHOWN],
        twins=twins,
        place=place,
        map_name=map_name,
        gain=found.gain,
        informative=found.informative,
        apart=found.apart,
        agreement=float((chances.argmax(axis=1) == codes).mean()),
        alike=look_alikes(chances, known) if found.informative else [],
        names=names.lines,
        rows=data.rows,
        index=data.index,
        ids=data.ids,
        groups=data.groups,
        authors=None if authors is None else authors.frame,
        trusted=sure,
        decisions=decided,
        shown=data.shown,
        notes=data.notes,
    )


def _decide(data: Rows, decided: list[Decision]) -> tuple[np.ndarray, np.ndarray | None]:
    """The labels after people's decisions, and which are trusted."""
    labels, sure = data.labels.copy(), None if data.trusted is None else data.trusted.copy()
    settled = [d for d in decided if d.kind != "unsure"]
    if settled:
        sure = np.zeros(len(labels), dtype=bool) if sure is None else sure
        for decision in settled:
            labels[decision.position] = decision.label
            sure[decision.position] = True
    if sure is not None and sure.all():
        raise ValueError("every label is trusted: there is nothing to audit")
    return labels, sure


def _judged(given: np.ndarray, names: ClassNames, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which rows can be judged (n,), their class numbers among the judged classes, and these classes."""
    merged = names.merged[given]
    judged = ~np.isin(merged, names.few)
    known = np.unique(merged[judged])
    if len(known) < 2:
        raise ValueError(
            f"the labels have {m} different value{'s' if m > 1 else ''} in {len(given)} rows and {len(known)} of them "
            "with 5 rows or more; an audit needs at least 2 such classes"
        )
    return judged, np.searchsorted(known, merged[judged]), known


def _as_said(
    labels: np.ndarray, codes: np.ndarray, classes: np.ndarray, names: ClassNames, known: np.ndarray
) -> np.ndarray:
    """Class numbers of the labels before people's decisions: an author whose label was found wrong did say it."""
    place = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    merged = names.merged[place]
    number = np.minimum(np.searchsorted(known, merged), len(known) - 1)
    there = (classes[place] == labels) & (known[number] == merged)
    return np.where(there, number, codes)


def _checked(pred_probs: Any, n: int, among: np.ndarray, names: ClassNames, classes: np.ndarray) -> np.ndarray:
    """Probabilities (n, M) with one column per class of `classes`, those of repeated names added up."""
    given = np.asarray(pred_probs, dtype=float)
    if given.shape != (n, len(among)):
        raise ValueError(
            f"pred_probs has shape {given.shape}; it must be ({n}, {len(among)}): one column per class, in the order "
            f"{', '.join(map(str, among.tolist()[:12]))}"
        )
    if not np.isfinite(given).all() or (given < 0).any() or (given > 1 + 1e-6).any():
        raise ValueError("pred_probs must hold probabilities: finite numbers from 0 to 1")
    if (given.sum(axis=1) < 1e-6).any() or abs(given.sum(axis=1) - 1).max() > 0.05:
        raise ValueError("pred_probs must sum to 1 in every row")
    out = np.zeros((n, len(classes)))
    for column, name in enumerate(among):
        at = np.flatnonzero(classes == name)
        if len(at):  # a class whose last label was decided away has no column any more
            out[:, names.merged[at[0]]] += given[:, column]
    return out


def _part(X: Any, rows: np.ndarray) -> Any:
    if rows.all():
        return X
    return _safe_indexing(X, np.flatnonzero(rows))


class _Teller:
    """Turn the stages' own shares into one share of the whole."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress, self.told = progress, 0.0

    def __call__(self, stage: str, share: float) -> None:
        if self.progress is None:
            return
        names = list(_STAGES)
        start = _STAGES[names[names.index(stage) - 1]] if stage != names[0] else 0.0
        self.told = max(self.told, start + share * (_STAGES[stage] - start))
        self.progress(stage, self.told)


def place_on_map(X: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, str]:
    """Two coordinates per row: the features themselves, UMAP where it is installed, else principal components."""
    if X.shape[1] == 1:
        return np.column_stack([X[:, 0], np.zeros(len(X))]), "the one feature"
    if X.shape[1] == 2:
        return np.array(X, dtype=float), "the two features"
    seed = _draw(rng)
    if not X.var(axis=0).any():
        return np.zeros((len(X), 2)), "nothing: all rows are equal"
    try:
        from umap import UMAP
    except ImportError:
        made = PCA(2, svd_solver="randomized" if min(X.shape) > 50 else "full", random_state=seed)
        place = made.fit_transform(X)
        return place, f"two principal components ({100 * made.explained_variance_ratio_.sum():.0f} % of the variance)"
    return np.asarray(UMAP(random_state=seed).fit_transform(X)), "UMAP"


def _logit(share: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(share) - np.log1p(-share)  # labels that are never suspected stay at minus infinity


def _draw(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


def _seed(random_state: Any) -> int:
    if isinstance(random_state, np.random.Generator):
        return _draw(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
