"""Who gave each label: how often an author's other labels fit, and what that says about this one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logit
from scipy.stats import beta

from floral_learn.labels.noise import PRIOR_ROWS


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
    >>> from floral_learn.labels.authors import judge_authors
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
