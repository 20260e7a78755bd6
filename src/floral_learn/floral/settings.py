"""Everything that a fit is told, in one frozen object: made once, and passed down in place of the estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from floral_learn.base.estimator import Estimator
from floral_learn.game.choose_gram import GRAMS


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
    >>> from floral_learn import Engine, FloralClassifier
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
