"""Rank given labels by how likely they are to be wrong: games, neighbours, and flips planted to calibrate."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.utils import check_array, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from threadpoolctl import threadpool_limits

from floral_learn.audit.calibrate import Calibration, calibrate, plant
from floral_learn.audit.neighbours import SHOWN, Neighbours, find_neighbours
from floral_learn.audit.result import THRESHOLD, AuditResult
from floral_learn.audit.views import PATH, Grams, Progress, Views, build_grams, look
from floral_learn.core.suspicion import best_other, margins, relative

ENOUGH_ROWS, MOST_PLANTINGS = 2000, 5
_STAGES = {"kernel": 0.05, "neighbours": 0.15, "games": 0.65, "calibration": 0.97, "map": 1.0}


def audit(
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    trusted: Any = None,
    random_state: Any = None,
    progress: Progress | None = None,
) -> AuditResult:
    """Rank the labels `y` of the rows `X` by the probability that they are wrong.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        Any features: numbers, embeddings of texts or images. Distances must mean something: standardise columns of
        different units.
    y : array-like of shape (n,)
        Any labels, two or more classes.
    groups : array-like of shape (n,), optional
        Who gave each label (annotator, source, batch): adds a ranking of groups.
    trusted : bool array of shape (n,), optional
        Labels known to be right: never attacked, planted or suspected.
    random_state : int, RandomState, Generator or None
        Draws the games, the planted flips and the landmarks.
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
    >>> bool(np.isin(found.order[:10], np.arange(15)).mean() >= 0.8)
    True
    """
    X, given, classes = _check(X, y)
    n, m = len(given), len(classes)
    sure = _check_trusted(trusted, n)
    names = None if groups is None else _check_groups(groups, n)
    rng = np.random.default_rng(_seed(random_state))
    seed = int(rng.integers(2**40))
    tell = _Teller(progress)
    with threadpool_limits(1 if n <= 1000 else None, user_api="blas"):
        tell("kernel", 0)
        grams = build_grams(X, rng)
        tell("neighbours", 0)
        near = find_neighbours(X, rng)
        views = look(grams, given, m, seed, trusted=sure, with_path=True, progress=tell)
        raw = _raw(views, near, given)
        tell.stage = "calibration"
        fitted = _calibrated(grams, near, given, m, sure, seed, rng, tell)
        suspicion = fitted(raw)
        if sure is not None:
            suspicion[sure] = 0.0
        path = _path(views, near.disagreement(given), fitted, sure)
        tell("map", 0)
        place, map_name = _place(X, rng)
    holds = np.stack(
        [
            margins(views.scores, given) < 0,
            relative(views.flip_rate) > 0.5,
            views.load > 0.99,
            near.disagreement(given) > 0.5,
        ],
        axis=1,
    )
    # Games and neighbours name a class together, as they do for the score.
    together = _one_column_a_class(views.scores) + near.votes(given, m)
    return AuditResult(
        classes=classes,
        given=given,
        suggested=best_other(together, given),
        suspicion=suspicion,
        raw=raw,
        disagreement=views.disagreement,
        neighbour_disagreement=near.disagreement(given),
        flip_rate=views.flip_rate,
        holds=holds,
        neighbours=near.rows[:, :SHOWN],
        place=place,
        map_name=map_name,
        wrong_share=fitted.wrong_share,
        path=path,
        groups=names,
    )


def _calibrated(
    grams: Grams,
    near: Neighbours,
    given: np.ndarray,
    m: int,
    sure: np.ndarray | None,
    seed: int,
    rng: np.random.Generator,
    tell: _Teller,
) -> Calibration:
    """Plant flips, play again and compare; small data several times over, so that a few hundred flips are planted."""
    n = len(given)
    unsure = np.ones(n, dtype=bool) if sure is None else ~sure
    scores, planted = [], []
    for number in range(min(MOST_PLANTINGS, 1 + ENOUGH_ROWS // n)):
        rows = plant(given, unsure, m, rng)
        labels = given.copy()
        labels[rows] = (given[rows] + rng.integers(1, m, size=len(rows))) % m
        views = look(grams, labels, m, seed + 1000 * (number + 1), trusted=sure, progress=tell)
        scores.append(_raw(views, near, labels)[unsure])
        planted.append(np.isin(np.arange(n), rows)[unsure])
    return calibrate(np.concatenate(scores), np.concatenate(planted), m)


def _raw(views: Views, near: Neighbours, labels: np.ndarray) -> np.ndarray:
    return (views.disagreement + near.disagreement(labels)) / 2


def _path(views: Views, near: np.ndarray, fitted: Calibration, sure: np.ndarray | None) -> list[dict[str, float]]:
    """How many labels are flagged, and how many the model repeats, for each budget of the attacker."""
    rows = []
    for j, budget in enumerate(PATH):
        flagged = fitted((views.path_disagreement[:, j] + near) / 2) >= THRESHOLD
        issues = int(flagged.sum() if sure is None else flagged[~sure].sum())
        rows.append({"budget": budget, "issues": issues, "agreement": float(views.path_agreement[j])})
    return rows


def _one_column_a_class(scores: np.ndarray) -> np.ndarray:
    """tanh of the decision values, one column a class."""
    return np.tanh(np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores)


class _Teller:
    """Turn the stages' own shares into one share of the whole."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress, self.stage, self.told = progress, "games", 0.0

    def __call__(self, stage: str, share: float) -> None:
        if self.progress is None:
            return
        stage = self.stage if stage == "games" else stage
        names = list(_STAGES)
        start = _STAGES[names[names.index(stage) - 1]] if stage != names[0] else 0.0
        # A stage may start over (two widths, several plantings); what has been told stays told.
        self.told = max(self.told, start + share * (_STAGES[stage] - start))
        self.progress(stage, self.told)


def _place(X: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, str]:
    """Two coordinates a row: the features themselves, UMAP where it is installed, else principal components."""
    if X.shape[1] == 1:
        return np.column_stack([X[:, 0], np.zeros(len(X))]), "the one feature"
    if X.shape[1] == 2:
        return np.array(X, dtype=float), "the two features"
    seed = int(rng.integers(2**31))
    try:
        from umap import UMAP
    except ImportError:
        made = PCA(2, svd_solver="randomized" if min(X.shape) > 50 else "full", random_state=seed)
        place = made.fit_transform(X)
        return place, f"two principal components ({100 * made.explained_variance_ratio_.sum():.0f} % of the variance)"
    return np.asarray(UMAP(random_state=seed).fit_transform(X)), "UMAP"


def _check(X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from scipy.sparse import issparse

    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=20, input_name="X")
    y = np.asarray(y)
    if y.shape != (X.shape[0],):
        raise ValueError(f"y has shape {y.shape}; X has {X.shape[0]} rows, so it must be ({X.shape[0]},)")
    if y.dtype == object and any(value is None or value != value for value in y):  # NaN differs from itself
        raise ValueError("y has missing labels; drop those rows or label them first")
    classes, given = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y has only one class ({classes[0]!r}); an audit needs at least 2")
    if len(classes) > len(y) // 5:
        raise ValueError(
            f"y has {len(classes)} different labels in {len(y)} rows; an audit needs at least 5 rows a class"
        )
    check_classification_targets(y)
    if issparse(X):
        from sklearn.decomposition import TruncatedSVD

        X = TruncatedSVD(min(100, X.shape[1] - 1), random_state=0).fit_transform(X)
    return np.ascontiguousarray(X), given, classes


def _check_trusted(trusted: Any, n: int) -> np.ndarray | None:
    if trusted is None:
        return None
    mask = np.asarray(trusted)
    if mask.dtype != bool or mask.shape != (n,):
        raise ValueError(f"trusted= must be a boolean mask with one entry a row ({n}); got {mask.dtype} {mask.shape}")
    if mask.all():
        raise ValueError("trusted= is true for every row: there is nothing to audit")
    return mask


def _check_groups(groups: Any, n: int) -> np.ndarray:
    names = np.asarray(groups, dtype=object)
    if names.shape != (n,):
        raise ValueError(f"groups= must hold one name a row ({n}); got shape {names.shape}")
    return np.array(["(missing)" if g is None or g != g or g == "" else str(g) for g in names])


def _seed(random_state: Any) -> int:
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    return int(check_random_state(random_state).randint(2**31 - 1))
