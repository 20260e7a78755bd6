"""``budget="auto"``: how many labels, and which, the attacker may flip, chosen from untrusted labels alone.

The rule, found on the development sets of the arena and checked on the others (docs/results/arena.md):

1. Judge every label without its own say: SVMs that did not see the row (five folds, one batch of games) and the labels
   of its nearest rows (`floral_learn.core.evidence`). A label is a suspect where both together give another class more
   than that class's own labels get on average, and the given class less.
   Rare classes get less from their own labels by nature: where classes are uneven, their averages count half, unless
   the suspects move mostly one way, from frequent classes to rare ones, as poison that made the class rare does.
2. In each round the attacker flips every suspect with a positive dual (k = B, their number) to the class that the
   evidence suggests, and nobody else.
3. Leave the attacker off where there are few suspects (clean labels show some, too, near the boundary) or where a class
   would lose most of its labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from floral_learn.core.evidence import class_shares, deal_folds, neighbour_votes, out_of_fold, support_of_labels
from floral_learn.core.gram import Gram
from floral_learn.core.suspicion import predicted

FOLDS = 5
ROUNDS = 300  # of the games on the folds
NEIGHBOURS = 20
REFERENCES = 1000  # rows among which neighbours are looked for; fewer from 50,000 rows on
CAP_GAIN = 0.05  # by how much a larger C must lower the held-out error to be taken
EVEN = 0.7  # the smallest class has this share of n / n_classes labels or more: classes are even
ONE_WAY = (0.1, 3.0)  # suspects that move to a rarer class: at least this share of n, and this many times the others
FEWEST = 0.03  # share of suspects below which the attacker stays off
MOST_OF_A_CLASS = 0.7  # share of a class's labels from which on it stays off, too


@dataclass(frozen=True)
class BudgetSelection:
    """What ``budget="auto"`` chose for a fit, and why.

    Attributes
    ----------
    budget, flips : int
        B and k in points; 0 where the attacker was left off.
    cap : float
        C.
    reason : str
        One sentence for people.
    suspects : int
        Labels with a support below 0 that may be flipped.
    class_shares : dict
        Share of each class's labels that are suspect.
    support : ndarray of shape (n_samples,)
        How the row's held-out SVM and its neighbours see its label, from -1 to 2; below 0 they speak against it
        (`floral_learn.core.evidence.support_of_labels`). NaN for rows of weight 0.
    path_budget, path_support : ndarray of shape (n_points,)
        The budget path: were the `path_budget` least supported labels the suspects, the last of them would have
        `path_support`. The rule stops where this crosses 0.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn import FloralClassifier
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> y[:50] = 1 - y[:50]
    >>> clf = FloralClassifier(budget="auto", random_state=0).fit(X, y)
    >>> clf.selection_.budget == clf.budget_ > 40
    True
    """

    budget: int
    flips: int
    cap: float
    reason: str
    suspects: int
    class_shares: dict[str, float]
    support: np.ndarray
    path_budget: np.ndarray
    path_support: np.ndarray


def select_budget(
    gram: Gram,
    labels: np.ndarray,
    caps: tuple[float, ...],
    eta: float,
    classes: np.ndarray,
    seed: int,
    *,
    eligible: np.ndarray | None = None,
    weight: np.ndarray | None = None,
) -> tuple[BudgetSelection, np.ndarray, np.ndarray]:
    """The selection for the rows of `gram`, the mask of the labels that the attacker may flip, and their new classes.

    Parameters
    ----------
    gram : Gram
    labels : int ndarray of shape (n,)
        Places in `classes`.
    caps : tuple of float
        C, or several to choose from, smallest first.
    eta : float
        Step size.
    classes : ndarray
    seed : int
        Deals the folds and draws reference rows.
    eligible : bool ndarray of shape (n,), optional
        Labels that are not known to be right; the others are never suspects.
    weight : ndarray of shape (n,), optional
        Sample weights.
    """
    n, rng = len(labels), np.random.default_rng([seed, 9])
    counts = np.bincount(labels, minlength=len(classes))
    fold = deal_folds(labels, min(FOLDS, n), rng)
    cap, scores = _best_cap(gram, labels, caps, eta, fold, len(classes), weight)
    most = int(np.clip(50_000 * REFERENCES // n, 100, REFERENCES))
    references = np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))
    neighbours = int(np.clip(counts.min() // 2, min(5, n - 1), NEIGHBOURS))
    votes = neighbour_votes(gram, labels, len(classes), neighbours, references)
    support, rival = _support(class_shares(scores, votes), labels, counts)
    suspect = support < 0
    if eligible is not None:
        suspect &= eligible
    shares = np.bincount(labels[suspect], minlength=len(classes)) / np.maximum(counts, 1)
    budget, reason = _judge(int(suspect.sum()), n, shares, classes)
    if budget == 0:
        suspect = np.zeros(n, dtype=bool)
    points = np.unique(np.linspace(1, n, min(n, 200)).astype(int))
    order = np.sort(support if eligible is None else support[eligible])
    points = points[points <= len(order)]
    return (
        BudgetSelection(
            budget=budget,
            flips=budget,
            cap=cap,
            reason=reason,
            suspects=int((support < 0).sum() if eligible is None else ((support < 0) & eligible).sum()),
            class_shares={str(c): float(share) for c, share in zip(classes, shares)},
            support=support,
            path_budget=points,
            path_support=order[points - 1],
        ),
        suspect,
        rival,
    )


def _best_cap(
    gram: Gram,
    labels: np.ndarray,
    caps: tuple[float, ...],
    eta: float,
    fold: np.ndarray,
    n_classes: int,
    weight: np.ndarray | None,
) -> tuple[float, np.ndarray]:
    """C and the held-out scores under it: the smallest, unless a larger one repeats many more of the labels.

    Poison makes large caps look a little better, never much: where they are, it is the data that need them (a class
    between two others, one against all).
    """
    each = np.ones(len(labels)) if weight is None else weight
    found: list[tuple[float, np.ndarray, float]] = []
    for cap in caps:
        scores = out_of_fold(gram, labels, cap * each, eta, fold, n_classes=n_classes, rounds=ROUNDS, weight=weight)
        found.append((cap, scores, float((predicted(scores) != labels).mean())))
    best = found[0]
    for other in found[1:]:
        if other[2] < best[2] - CAP_GAIN:
            best = other
    return best[0], best[1]


def _support(shares: np.ndarray, labels: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Support of the labels and their rivals, with averages of one's own class as far as these can be believed."""
    n = len(labels)
    support, rival = support_of_labels(shares, labels)
    against = support < 0
    rarer = int((against & (counts[rival] < counts[labels])).sum())
    others = int((against & (counts[rival] > counts[labels])).sum())
    even = counts.min() * len(counts) >= EVEN * n
    if even or (rarer >= ONE_WAY[0] * n and rarer >= ONE_WAY[1] * others):
        return support, rival
    return support_of_labels(shares, labels, own_average=0.5)


def _judge(suspects: int, n: int, shares: np.ndarray, classes: np.ndarray) -> tuple[int, str]:
    """B, and the sentence that explains it."""
    found = f"{suspects:,} of {n:,} labels ({suspects / n:.0%}) are contradicted by the rest"
    if suspects < max(2, FEWEST * n):
        return 0, f"{found}: fewer than {FEWEST:.0%}, which clean labels may show, too, so that the attacker is off"
    worst = int(shares.argmax())
    if shares[worst] >= MOST_OF_A_CLASS:
        return (
            0,
            f"{found}, {shares[worst]:.0%} of class {classes[worst]}: too many to trust, so that the attacker is off",
        )
    return suspects, f"{found}: in each round the attacker flips those of them that pull at the model"
