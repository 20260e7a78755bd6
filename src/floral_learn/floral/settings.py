"""Everything that a fit is told, in one frozen object: made once, and passed down in place of the estimator.

And B and k: from what a user says of them to the attacker that plays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from floral_learn.base.estimator import Estimator
from floral_learn.base.validation import check_flip_distribution, count_points
from floral_learn.game.attackers import Attacker, NoAttack, RandomizedTopK
from floral_learn.game.choose_gram import GRAMS
from floral_learn.game.pairs import Pairs


class Engine(Estimator):
    """How and where a game is computed; it changes time and memory, and the model only as far as `rank` and `dtype` do.

    An engine is a parameter of :class:`FloralClassifier`, and its own parameters are reached through it:
    ``clf.set_params(engine__rank=200)``, in a grid ``{"engine__rank": [64, 256]}``.

    Parameters
    ----------
    gram : {"auto", "dense", "chunked", "low_rank"}, default="auto"
        How products with the kernel matrix are computed; what was chosen stands in ``gram_`` of the classifier.
    rank : "auto" or int, default="auto"
        Rank of the low-rank kernel; "auto" stops where products are exact to half a percent or where more rank no
        longer changes how rows are told apart on a probe set. Labels have no say in it.
    max_memory : str or float, default="4GB"
        Cap for the kernel matrix or its factor. ``history_["flips"]`` is left empty where it would take more than a
        twentieth of it.
    device : str or None, default=None
        None computes with numpy, and a tensor on a GPU there; "cpu", "cuda" and so on with torch.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Type of the kernel matrix; "auto" is float64 up to 1,000 rows and float32 above. Duals are always float64.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn import FloralClassifier
    >>> from floral_learn.floral.settings import Engine
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> clf = FloralClassifier(engine=Engine(gram="low_rank", rank=32), random_state=0).fit(X, y)
    >>> clf.gram_.split(",")[0]
    'low rank 32 of 300 rows'
    >>> FloralClassifier().set_params(engine__rank=16).engine
    Engine(rank=16)
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012 (scikit-learn's own convention)
        "gram": [StrOptions(set(GRAMS))],
        "rank": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_memory": [str, Interval(Real, 0.0, None, closed="neither")],
        "device": [str, None],
        "dtype": [StrOptions({"auto", "float32", "float64"})],
    }

    def __init__(
        self,
        *,
        gram: str = "auto",
        rank: str | int = "auto",
        max_memory: str | float = "4GB",
        device: str | None = None,
        dtype: str = "auto",
    ) -> None:
        self.gram = gram
        self.rank = rank
        self.max_memory = max_memory
        self.device = device
        self.dtype = dtype


@dataclass(frozen=True)
class Settings:
    """The parameters of a classifier that plays the game, those of its engine included.

    The first block is what every such classifier has; the second has the values of :class:`FloralClassifier`, which
    :class:`PaperFloralClassifier` turns; the third is the engine.
    """

    name: str  # of the classifier, for messages
    kernel: str | Callable[..., Any]
    gamma: str | float
    degree: int
    coef0: float
    C: float
    class_weight: Any
    budget: Any
    flips: Any
    n_rounds: int
    tol: float | None
    learning_rate: str | float
    verbose: int
    random_state: Any

    multi_class: str = "pairs"
    per_class: bool = True  # candidates of a class are at most the budget's share of its own rows
    warm_up: int = 1
    decay: tuple[float, int] | None = None
    average: bool = True
    projection: str = "exact"
    flip_distribution: Any = None
    always_rounds: bool = False  # rounds of projected gradient steps also where nobody attacks

    gram: str = "auto"
    rank: str | int = "auto"
    max_memory: str | float = "4GB"
    device: str | None = None
    dtype: str = "auto"

    @property
    def needs_matrix(self) -> bool:
        """Whether the kernel needs all rows (or a matrix of kernel values) as a numpy array."""
        return self.kernel == "precomputed" or callable(self.kernel)


@dataclass(frozen=True)
class Budget:
    """The attacker, and what ``budget_`` and ``flips_`` show."""

    attacker: Attacker
    points: int
    flips: int


def resolve_budget(settings: Settings, labels: np.ndarray, classes: np.ndarray, pairs: Pairs | None = None) -> Budget:
    """The attacker for a budget (B) and flips (k; None is half of B) on rows with class numbers `labels`.

    With `per_class` the candidates of a class are at most that share of its own rows, so that a rare class is never
    taken whole, and of two classes the larger one has no more of them than the smaller, so that a rare class is not
    flooded either; without, they are the B largest duals of all rows, as in the paper. The game of a pair of classes
    gets 2 / M of the share of its own rows, so that as many labels are flipped per round, over all pairs, as in a game
    of two classes.
    """
    n, width = len(labels), 1 if len(classes) == 2 else len(classes)
    budget, flips, per_class = settings.budget, settings.flips, settings.per_class
    distribution = check_flip_distribution(settings.flip_distribution, len(classes))
    if isinstance(budget, dict):
        columns = _per_column(budget, n, classes)
        per_class, points = False, int(columns.sum())
    else:
        points = count_points(budget, n, "budget")
        columns = np.full(width, points)
    most = int(columns.max())
    k = most // 2 if flips is None else count_points(flips, n, "flips")
    if k > most:
        raise ValueError(f"flips={flips!r} is {k} points, more than the budget of {most} to choose from")
    if most < 2 or k == 0:
        return Budget(NoAttack(), 0, 0)
    if pairs is not None:
        # A row plays in M - 1 of M (M - 1) / 2 pairs: 2 / M of the share in each makes about B candidates in all.
        share = most / n * 2 / len(classes)
        return Budget(_pair_attacker(share, k / most, labels, pairs, per_class), points, k)
    if not per_class:
        return Budget(RandomizedTopK(columns, k, distribution), points, k)
    counts = np.bincount(labels, minlength=len(classes))
    caps = class_caps(most / n, np.minimum(counts, counts[::-1]) if width == 1 else counts)
    k = min(k, int(caps.sum()) if flips is not None else int(caps.sum()) // 2)
    if k == 0:
        return Budget(NoAttack(), 0, 0)
    return Budget(RandomizedTopK(0, k, distribution, class_budget=caps), int(caps.sum()), k)


def class_caps(share: float, counts: np.ndarray) -> np.ndarray:
    """Candidates of each class: `share` of its own rows, rounded down."""
    return np.floor(share * counts + 1e-9).astype(int)


def _pair_attacker(share: float, flipped: float, labels: np.ndarray, pairs: Pairs, per_class: bool) -> Attacker:
    counts = np.bincount(labels, minlength=int(pairs.classes.max()) + 1)
    caps = class_caps(share, np.repeat(counts[pairs.classes].min(axis=1, keepdims=True), 2, axis=1))
    total = caps.sum(axis=1) if per_class else np.floor(share * counts[pairs.classes].sum(axis=1) + 1e-9).astype(int)
    k = np.floor(flipped * total + 1e-9).astype(int)
    return RandomizedTopK(total[:, None], k, class_budget=caps if per_class else None)


def _per_column(budget: dict[Any, Any], n: int, classes: np.ndarray) -> np.ndarray:
    """B_m, the candidates that the attacker of each class names (Algorithm 3), (M,)."""
    if len(classes) == 2:
        raise ValueError("budget= as a dict needs three or more classes: with two there is one attacker")
    known = classes.tolist()
    if set(budget) != set(known):
        raise ValueError(f"budget= must have exactly the classes {sorted(map(str, known))} as keys")
    return np.array([count_points(budget[c], n, f"budget[{c!r}]") for c in known])
