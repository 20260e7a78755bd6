"""The paper's game to the letter: Algorithms 1 (two classes), 2 (the projection) and 3 (several classes)."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from floral_learn.floral.classifier import SHARED_CONSTRAINTS, GameClassifier
from floral_learn.floral.fitting import Settings
from floral_learn.game.dual import PROJECTIONS


class PaperFloralClassifier(GameClassifier):
    """FLORAL as published (ICLR 2025, Algorithms 1 to 3): for reproducing the paper, not for your own data.

    What it does otherwise than :class:`FloralClassifier`, line by line of the listings:

    - Algorithm 1, line 3: the B largest duals of **all** rows are the candidates, with no cap per class; k of them, at
      random, have their given labels flipped. The first `warm_up` rounds are not attacked.
    - Line 5: absolute step sizes with step decay, `n_rounds` rounds of them and no rule for ending sooner.
    - Line 6, Algorithm 2: the projection's multiplier by a fixed-point iteration. The listing has a slip (it sums the
      clipped duals where the derivation in its appendix has the unclipped ones) and can go round in a circle: it is
      corrected and damped here, and replaced by the exact root where it does not converge.
    - The model is the **last iterate**, with the last round's random flips in it; the bias, which the paper does not
      define, is that of the KKT conditions.
    - Algorithm 3: several classes are one column each of a single game. Each class's attacker names B_m points, k of
      the union are drawn, and their classes are redrawn from `flip_distribution`.

    Where it departs from the listings: duals are compared with 16 bits, so that numpy, torch and float32 choose the
    same points, and ties are broken at random; and only rows with a dual above zero are candidates, of which there can
    be fewer than B. Flips that were drawn give the duals of the listings to 1e-12 (``tests/paper/test_replay.py``).

    Parameters
    ----------
    kernel, gamma, C, flips, gram, device, random_state
        As in :class:`FloralClassifier`.
    budget : float, int or dict, default=0.05
        B; with three or more classes also a dict class -> B_m, for the attacker of each class.
    n_rounds : int, default=500
        T, the rounds to be played.
    learning_rate : "auto" or float, default=3e-4
        eta; the paper has 1e-4 to 7e-4 for 500 rows.
    decay : (float, int) or None, default=None
        ``(factor, every)`` multiplies the step by `factor` after each `every` rounds.
    warm_up : int, default=1
        First rounds without an attack.
    average : bool, default=False
        Predict with the mean of the models of the last half of the rounds in place of the last one.
    projection : {"fixed_point", "exact"}, default="fixed_point"
        How the step is projected: Algorithm 2, or Newton's iteration for the same root, which never fails.
    flip_distribution : array-like of shape (n_classes, n_classes) or None, default=None
        Row c holds the probabilities of the classes that a flipped label of class c becomes; by default uniform over
        the others.

    Attributes
    ----------
    classes_, dual_coef_, intercept_, support_, support_vectors_, n_support_, n_iter_, residual_, budget_, flips_, \
gamma_, learning_rate_, gram_, flip_rate_, history_, model_, record_, n_features_in_, feature_names_in_
        As in :class:`FloralClassifier`. ``budget_`` of a dict is the sum of all B_m.

    Examples
    --------
    The setting of the paper's first figure, with its C, step and budget:

    >>> from floral_learn import load_moon
    >>> from floral_learn.paper import PaperFloralClassifier
    >>> moon = load_moon()
    >>> clf = PaperFloralClassifier(C=10.0, gamma=1.0, budget=50, flips=25, random_state=0)
    >>> clf.fit(moon.X_train, moon.y_train).n_iter_
    500
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012 (scikit-learn's own convention)
        **SHARED_CONSTRAINTS,
        "budget": [Real, dict],
        "decay": [tuple, list, None],
        "warm_up": [Interval(Integral, 0, None, closed="left")],
        "average": ["boolean"],
        "projection": [StrOptions(set(PROJECTIONS))],
        "flip_distribution": ["array-like", None],
    }

    def __init__(
        self,
        *,
        kernel: str | Callable[..., Any] = "rbf",
        gamma: str | float = "scale",
        C: float = 1.0,
        budget: float | dict[Any, float] = 0.05,
        flips: float | None = None,
        n_rounds: int = 500,
        learning_rate: str | float = 3e-4,
        decay: tuple[float, int] | None = None,
        warm_up: int = 1,
        average: bool = False,
        projection: str = "fixed_point",
        flip_distribution: Any = None,
        gram: str | int = "auto",
        device: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.C = C
        self.budget = budget
        self.flips = flips
        self.n_rounds = n_rounds
        self.learning_rate = learning_rate
        self.decay = decay
        self.warm_up = warm_up
        self.average = average
        self.projection = projection
        self.flip_distribution = flip_distribution
        self.gram = gram
        self.device = device
        self.random_state = random_state

    def _settings(self) -> Settings:
        return Settings(
            name=type(self).__name__,
            **self.get_params(deep=False),
            multi_class="one-vs-rest",
            per_class=False,
            always_rounds=True,
            tol=None,
        )
