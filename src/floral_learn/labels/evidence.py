"""The evidence about labels, once for every room: what held-out models, neighbours and authors say of each label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import logit
from scipy.stats import beta
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets

from floral_learn.base import Shown
from floral_learn.base.alignment import align
from floral_learn.base.rows import InputRows, read_rows
from floral_learn.base.validation import refuse_measurements, refuse_several_labels
from floral_learn.labels.flagging import Flags, flag_labels
from floral_learn.labels.judges import deal_folds, held_out, in_best_scale, near_rows, three_judges
from floral_learn.labels.noise import PRIOR_ROWS, NoiseModel, calibrate, fit_noise, log_or_floor

Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Authors:
    """What is known of the people or sources behind n labels.

    Attributes
    ----------
    names : ndarray of shape (A,)
        Who they are.
    number : int ndarray of shape (n,)
        Who gave each label.
    labels : int ndarray of shape (A,)
        How many each of them gave.
    reliability, low, high : ndarray of shape (A,)
        Estimated share of labels that fit what held-out models say, and a 95 % interval for it.
    shift : ndarray of shape (n,)
        What an author's *other* labels add to the log-odds that this one is wrong.
    """

    names: np.ndarray
    number: np.ndarray
    labels: np.ndarray
    reliability: np.ndarray
    low: np.ndarray
    high: np.ndarray
    shift: np.ndarray


@dataclass(frozen=True, repr=False)
class LabelEvidence(Shown):
    """What is known about n labels of M classes before any of them is called wrong.

    Attributes
    ----------
    classes : ndarray of shape (M,)
        The labels.
    codes : int ndarray of shape (n,)
        Class numbers of the given labels.
    probability : ndarray of shape (n, M)
        Of each class, by judges that did not see the row's own label, calibrated on the given labels.
    log_odds : ndarray of shape (n,)
        Against the given label: log((1 - p) / p).
    noise : NoiseModel
        How labels seem to go wrong: `noise.confusion` (M, M) is how often a true class is labelled as another.
    neighbours : int ndarray of shape (n, k) or None
        The nearest other rows, nearest first; None without rows.
    authors : Authors or None
        How far the author of each label can be relied on; None without groups.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.labels import judge_labels
    >>> y = np.repeat([0, 1], 50)
    >>> evidence = judge_labels(None, y, pred_probs=np.where(np.arange(2) == y[:, None], 0.9, 0.1))
    >>> evidence.probability.shape, bool(evidence.flags().flagged.any())
    ((100, 2), False)
    """

    classes: np.ndarray
    codes: np.ndarray
    probability: np.ndarray
    log_odds: np.ndarray
    noise: NoiseModel
    neighbours: np.ndarray | None = None
    authors: Authors | None = None

    def _facts(self) -> dict[str, str]:
        contradicted = 100 * np.mean(self.probability.argmax(axis=1) != self.codes)
        facts = {
            "labels": f"{len(self.codes):,}, {len(self.classes)} classes",
            "given label is not the most probable": f"{contradicted:.1f} %",
        }
        if self.authors is not None:
            facts["authors"] = f"{len(self.authors.names):,}"
        return facts

    def flags(self, *, trusted: np.ndarray | None = None) -> Flags:
        """Which labels to look at: `floral_learn.labels.flagging.flag_labels` on this evidence."""
        shift = None if self.authors is None else self.authors.shift
        return flag_labels(self.probability, self.codes, noise=self.noise, trusted=trusted, shift=shift)


def judge_labels(
    X: Any,
    y: Any,
    *,
    model: Any = None,
    pred_probs: Any = None,
    groups: Any = None,
    author_codes: np.ndarray | None = None,
    truth: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    progress: Progress | None = None,
) -> LabelEvidence:
    """Gather what held-out judges say about every label.

    Parameters
    ----------
    X : array-like, sparse matrix or frame of shape (n, d), or None
        Rows; columns in different units are brought to one scale where that helps, and frames of words, dates and holes
        become numbers. None with `pred_probs`.
    y : array-like of shape (n,)
        Labels of two or more classes.
    model : classifier, optional
        Cross-validated in place of the library's own three judges (`floral_learn.labels.judges`); it gets `X` as given.
    pred_probs : array-like of shape (n, M), optional
        Held-out class probabilities of your own, columns in the order of the sorted labels; nothing is trained then.
    groups : array-like of shape (n,), optional
        Who gave each label.
    author_codes : int ndarray of shape (n,), optional
        Class numbers as the authors gave them, where some of `y` were corrected since.
    truth : int ndarray of shape (n,), optional
        Class numbers that are known to be right, -1 elsewhere: an author who is found wrong there is trusted less.
    n_jobs : int or None
        joblib workers over the trees and folds.
    random_state : int, RandomState, Generator or None
        Draws folds and landmarks.
    progress : callable(stage, share), optional
        Told how much is done, a share in [0, 1].

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn.labels import judge_labels
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> y[:3] = 1 - y[:3]
    >>> sorted(judge_labels(X, y, random_state=0).log_odds.argsort()[-3:].tolist())
    [0, 1, 2]
    """
    if model is not None and pred_probs is not None:
        raise ValueError("give model= or pred_probs=, not both")
    if isinstance(model, type):
        raise TypeError(f"model={model.__name__} is a class; give an instance, {model.__name__}()")
    if model is not None and not (hasattr(model, "predict_proba") or hasattr(model, "decision_function")):
        raise ValueError(f"model={model!r} needs predict_proba or decision_function")
    first, name = (y, "y") if X is None else (X, "X")  # whose index names the rows
    y = align(X, y)
    groups, pred_probs = align(first, groups, (name, "groups")), align(first, pred_probs, (name, "pred_probs"))
    classes, codes = read_labels(y)
    n, m = len(codes), len(classes)
    rng = draws_of(random_state)
    report = progress or (lambda stage, share: None)
    shares = None if pred_probs is None else checked_probabilities(pred_probs, n, classes)
    if shares is not None:
        refuse_another_order(shares, codes, classes)
    rows = _read_rows(X, n, optional=shares is not None)
    neighbours = None
    if rows is not None:
        report("neighbours", 0.0)
        measured = in_best_scale(rows.numbers, codes, m, rng)
        neighbours = near_rows(measured, rng)
        report("held-out models", 0.3)
        if model is not None:
            found = held_out(model, rows.given, codes, classes, deal_folds(codes, rng), n_jobs=n_jobs)
            probability = calibrate(log_or_floor(found), codes)
        elif shares is None:
            probability = three_judges(measured, neighbours, codes, m, rng, n_jobs=n_jobs)
    if shares is not None:
        probability = calibrate(log_or_floor(shares), codes).astype(shares.dtype, copy=False)
    report("held-out models", 1.0)
    own = np.clip(probability[np.arange(n), codes].astype(np.float64), 1e-12, 1 - 1e-12)
    logs = log_or_floor(probability)
    noise = fit_noise(logs, codes)
    authors = None
    if groups is not None:
        before = np.exp(noise.truth(logs))  # of the true class, before anybody gave a label
        given = codes if author_codes is None else author_codes
        authors = judge_authors(np.array(read_names(groups, n, "groups")), given, before, truth=truth)
    return LabelEvidence(classes, codes, probability, np.log1p(-own) - np.log(own), noise, neighbours, authors)


def judge_authors(
    groups: np.ndarray, codes: np.ndarray, probability: np.ndarray, *, truth: np.ndarray | None = None
) -> Authors:
    """Find how far the author of each label can be relied on.

    Parameters
    ----------
    groups : ndarray of shape (n,)
        Who gave each label.
    codes : int ndarray of shape (n,)
        The class that they gave.
    probability : ndarray of shape (n, M)
        Held-out probabilities of the classes.
    truth : int ndarray of shape (n,), optional
        The right class where it is known, -1 elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.labels.evidence import judge_authors
    >>> truth = np.tile([0, 1], 100)
    >>> who = np.repeat(["ann", "bob", "cy", "di"], 50)
    >>> given = np.where(who == "cy", 1 - truth, truth)
    >>> found = judge_authors(who, given, np.where(truth[:, None] == [0, 1], 0.9, 0.1))
    >>> str(found.names[found.reliability.argmin()]), bool(found.shift[who == "cy"].min() > 1)
    ('cy', True)
    """
    names, number = np.unique(groups, return_inverse=True)
    misfit = 1.0 - probability[np.arange(len(codes)), codes].astype(np.float64)
    if truth is not None:
        misfit = np.where(truth >= 0, truth != codes, misfit)
    labels = np.bincount(number)
    total = np.bincount(number, weights=misfit)
    usual = float(np.clip(misfit.mean(), 1e-3, 1 - 1e-3))
    # Posterior mean of a binomial share under a Beta prior, as wrong as is usual here, this label left out
    # (Gelman et al., BDA3, eq. 2.5).
    others = (total[number] - misfit + PRIOR_ROWS * usual) / (labels[number] - 1 + PRIOR_ROWS)
    wrong, right = total + PRIOR_ROWS * usual, labels - total + PRIOR_ROWS * (1 - usual)
    return Authors(
        names=names,
        number=number,
        labels=labels,
        reliability=right / (right + wrong),
        low=beta.ppf(0.025, right, wrong),
        high=beta.ppf(0.975, right, wrong),
        shift=logit(np.clip(others, 1e-3, 1 - 1e-3)) - logit(usual),
    )


def checked_probabilities(pred_probs: Any, n: int, classes: np.ndarray) -> np.ndarray:
    """Return probabilities (n, M) as given by the caller, in their own precision, or say what is wrong with them."""
    try:
        shares = np.asarray(pred_probs)
        shares = shares if shares.dtype in (np.float32, np.float64) else shares.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"pred_probs must be numbers, held-out probabilities of each class: {error}.") from error
    order = ", ".join(map(str, classes.tolist()[:12]))
    names = list(map(str, getattr(pred_probs, "columns", [])))
    known = list(map(str, classes.tolist()))
    # else the columns of a frame are numbers that mean nothing
    named = bool(set(names) & set(known))
    if named and (extra := [name for name in names if name not in known]):
        raise ValueError(f"pred_probs has a column {extra[0]!r}, and no label in y is {extra[0]!r}: drop that column")
    if shares.shape != (n, len(classes)):
        wide = shares.ndim == 2 and shares.shape[1] > len(classes)
        hint = "; drop the columns of classes that never occur in y" if wide else ""
        raise ValueError(
            f"pred_probs has shape {shares.shape}; it must be ({n}, {len(classes)}): one row for each label and one "
            f"column per class, in the order {order}{hint}"
        )
    if named and names != known:
        raise ValueError(f"pred_probs has its columns in the order {', '.join(names[:12])}; it must be {order}")
    low, total = shares.min(axis=1), shares.sum(axis=1)
    if (bad := np.flatnonzero(~np.isfinite(total) | (low < 0))).size:
        logs = np.isfinite(shares).all()
        hint = ": are they log-odds? scipy.special.softmax(..., axis=1) makes probabilities of them" if logs else ""
        row = shares[bad[0]].tolist()[:12]
        raise ValueError(f"pred_probs must be finite and not negative; row {bad[0]} is {row}{hint}")
    if abs(total - 1).max() > 0.05:
        row = int(np.argmax(abs(total - 1)))
        raise ValueError(f"pred_probs must sum to 1 in every row; row {row} sums to {total[row]:.4g}")
    return shares


def refuse_another_order(probability: np.ndarray, codes: np.ndarray, classes: np.ndarray) -> None:
    """Refuse probabilities (n, M) whose columns fit the labels in another order only.

    For the classes whose column fits another one best: most of their labels agree in that order, and in the given one
    fewer than where columns and labels have nothing to do with each other.
    """
    m = len(classes)
    counts = np.bincount(codes * m + probability.argmax(axis=1), minlength=m * m).reshape(m, m)
    best = linear_sum_assignment(-counts)[1]
    moved = np.flatnonzero(best != np.arange(m))
    labels, said = counts.sum(axis=1)[moved], counts.sum(axis=0)[moved]
    if 2 * counts[moved, best[moved]].sum() > labels.sum() and counts[moved, moved].sum() < labels @ said / len(codes):
        one, other = classes[moved[0]], classes[best[moved[0]]]
        raise ValueError(
            f"pred_probs has its columns in another order than the classes: rows labelled {str(one)!r} are highest in "
            f"the column of {str(other)!r}; the order must be {', '.join(map(str, classes.tolist()[:12]))}"
        )


def read_labels(y: Any, most: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return classes (M,), at most `most`, and the code (n,) of each label; of any kind that sorts, none missing."""
    refuse_several_labels(y)
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"y has shape {labels.shape}; it must be one label per row")
    if labels.dtype == object:
        if any(value is None or value != value for value in labels):  # NaN differs from itself
            raise ValueError("y has missing labels; drop those rows or label them first")
        labels = np.array(labels.tolist())
    elif labels.dtype.kind == "f" and np.isnan(labels).any():
        raise ValueError("y has missing labels; drop those rows or label them first")
    refuse_measurements(labels, "an audit")
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y has only one class ({classes.tolist()[0]!r}); at least 2 are needed")
    if most is not None and len(classes) > most:
        raise ValueError(
            f"y has {len(classes)} different labels in {len(labels)} rows; at least 5 rows per class are needed"
        )
    check_classification_targets(labels)
    return classes, codes


def _read_rows(X: Any, n: int, *, optional: bool) -> InputRows | None:
    """Return the rows as numbers and as given, or None where there are none and none are needed."""
    if X is None:
        if not optional:
            raise ValueError("X is missing: give rows, or pred_probs=, probabilities of your own")
        return None
    rows = X if isinstance(X, InputRows) else read_rows(X, allow_nan=True)
    if len(rows) != n:
        raise ValueError(f"X has {len(rows)} rows and y has {n} labels")
    return rows


def read_names(values: Any, n: int, option: str) -> list[str]:
    """Return one name per row as text."""
    names = np.asarray(values, dtype=object)
    if names.shape != (n,):
        raise ValueError(f"{option}= must hold one name per row ({n}); got shape {names.shape}")
    return ["(missing)" if name is None or name != name or name == "" else str(name) for name in names]


def draws_of(random_state: Any) -> np.random.Generator:
    """Return a Generator for anything that scikit-learn or numpy call a random state."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
