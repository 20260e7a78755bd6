"""What only the machine needs to know about a fit: how products with the kernel matrix are made, and where."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from floral_learn.game.choose_gram import GRAMS


class Engine(BaseEstimator):
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
