"""What the source of a label says about it: an annotator, a file, a day.

Each group has an own effect on the log-odds that its labels are wrong. Its labels speak through held-out class
probabilities (a group whose labels fit the rows worse than is usual errs more), answers speak for themselves. Effects
count only where groups that differ explain all of this at least twenty times better than groups that are alike: names
that mean nothing reach that at most once in twenty reviews, however many answers come (Ville's inequality), and until
then the review is the one without groups.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit, logsumexp

from floral_learn.review.calibration import TAIL
from floral_learn.review.posterior import SPREAD, Evidence

# log-odds; an author who always lies adds about six
_EFFECTS = np.arange(-3.0, 6.5, 0.5)


def group_shift(
    groups: np.ndarray, codes: np.ndarray, proba: np.ndarray, usual: float, evidence: Evidence, chance: np.ndarray
) -> np.ndarray | None:
    """What each row's group adds to the log-odds that its label is wrong, (n,); None where groups do not differ.

    Parameters
    ----------
    groups : int ndarray of shape (n,)
        Numbers of the groups.
    codes : int ndarray of shape (n,)
        Given labels as class numbers.
    proba : ndarray of shape (n, M)
        Held-out probabilities of the labels.
    usual : float
        Share of wrong labels in all.
    evidence : Evidence
        The answers.
    chance : ndarray of shape (m,)
        P(wrong) of each answered row without groups, by the other answers.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.review.groups import group_shift
    >>> from floral_learn.review.posterior import Evidence
    >>> truth, groups = np.tile([0, 1], 100), np.repeat([0, 1, 2, 3], 50)
    >>> proba = np.where(truth[:, None] == [0, 1], 0.8, 0.2)
    >>> none = Evidence(np.zeros(0, int), np.zeros(0), np.zeros(0))
    >>> lies = group_shift(groups, np.where(groups == 2, 1 - truth, truth), proba, 0.2, none, np.zeros(0))
    >>> bool(lies[groups == 2].min() > 2), group_shift(groups, truth, proba, 0.05, none, np.zeros(0)) is None
    (True, True)
    """
    n, M = proba.shape
    rate = expit(logit(usual) + _EFFECTS)
    # P(label | row) by the truth's probability, which is the held-out one with the usual errors taken out
    other = usual / (M - 1)
    truth = np.clip((proba[np.arange(n), codes] - other) / (1 - usual - other), 0.0, 1.0)[:, None]
    log = np.log(np.maximum((1 - rate) * truth + rate * (1 - truth) / (M - 1), 1e-6))
    wrong = expit(logit(np.clip(chance, 1e-3, 1 - 1e-3))[:, None] + _EFFECTS)
    log[evidence.at] = np.log(wrong * evidence.wrong[:, None] + (1 - wrong) * evidence.right[:, None])
    prior = -0.5 * (_EFFECTS / SPREAD) ** 2
    prior -= logsumexp(prior)
    by_group = np.zeros((groups.max() + 1, len(_EFFECTS)))
    np.add.at(by_group, groups, log)
    alike = by_group.sum(axis=0) + prior  # one effect for all
    if logsumexp(by_group + prior, axis=1).sum() - logsumexp(alike) < -np.log(TAIL):
        return None
    # a label does not speak about itself twice
    others = prior + by_group[groups] - log
    share = np.exp(others - logsumexp(others, axis=1, keepdims=True))
    return share @ _EFFECTS - np.exp(alike - logsumexp(alike)) @ _EFFECTS
