"""Gradient attack: flip the rows whose loss is most sensitive to their input."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from sklearn.utils import check_array

from .base import Problem, RankingAttack
from .gradient_closed_form import SMOOTH_KERNELS, linear_softmax, svc_decision
from .gradient_torch import is_module, module_gradients
from .surrogates import fresh


@dataclass
class Gradient(RankingAttack):
    """Flip the rows with the largest ``|d loss(f(x_i), y_i) / d x_i|``, the input-gradient norm of a network.

    With the log loss and two classes this is ``sigmoid(-y f) |grad f|``; the new class is the least likely
    one. The attack of the FLORAL paper on language models, where x is the embedding.

    Cost: one fit (unless the surrogate is fitted already) and one backward pass over the rows; closed form
    for SVMs, O(n * n_sv * d), and logistic regression, O(n * d * M).

    Parameters
    ----------
    surrogate : object, optional
        One of

        - ``None``: ``SVC()`` for two classes, else ``LogisticRegression()``;
        - an ``SVC`` (rbf, linear, poly or sigmoid kernel, two classes) or a ``LogisticRegression``: fitted here
          on the given labels, gradients in closed form, no torch;
        - a trained ``torch.nn.Module`` that maps (n, ...) floats to (n,), (n, 1) or (n, M) logits, or a fitted
          estimator that holds one as ``module_``; rows may then have any shape, such as (tokens, width);
        - any object with ``input_gradient_norms(X, codes) -> norms (n,), scores (n, M)``, for models whose input
          is no array of floats, such as a transformer on texts; ``codes`` number the sorted classes.
    loss : {"log", "hinge"}, default="log"
        The hinge loss is zero for rows outside the margin (two classes, no torch).
    batch_size : int, default=256
        Rows of a backward pass (torch).

    Notes
    -----
    The other parameters are those of :class:`LabelAttack`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from floral_learn.attacks import Gradient
    >>> X, y = load_iris(return_X_y=True)
    >>> len(Gradient(budget=0.1).poison(X / X.max(), y).indices)
    15
    """

    surrogate: Any = None
    loss: str = "log"
    batch_size: int = 256

    name: ClassVar[str] = "gradient"
    accept_sparse: ClassVar[bool] = False

    def _features(self, X: Any) -> Any:
        if hasattr(self.surrogate, "input_gradient_norms"):
            return X
        if self._module() is not None:
            return check_array(X, allow_nd=True, input_name="X")
        return check_array(X, input_name="X")

    def _module(self) -> Any:
        """Return the torch module behind the surrogate, or None."""
        inner = getattr(self.surrogate, "module_", self.surrogate)
        return inner if is_module(inner) else None

    def _rank(self, problem: Problem) -> tuple[np.ndarray, np.ndarray | None]:
        if self.loss not in ("log", "hinge"):
            raise ValueError(f"loss={self.loss!r} must be 'log' or 'hinge'")
        n_classes = len(problem.classes)
        if hasattr(self.surrogate, "input_gradient_norms"):
            norms, scores = self.surrogate.input_gradient_norms(problem.X, problem.y)
            return np.asarray(norms, dtype=float), -np.asarray(scores, dtype=float)
        module = self._module()
        if module is not None:
            if self.loss != "log":
                raise ValueError("loss='hinge' has no torch version: use loss='log'")
            norms, logits = module_gradients(module, problem.X, problem.y, n_classes, self.batch_size)
            return norms, -logits
        surrogate = self.surrogate
        if surrogate is None:
            surrogate = SVC() if n_classes == 2 else LogisticRegression()
        if isinstance(surrogate, LogisticRegression):
            return self._logistic(fresh(surrogate, problem.rng).fit(problem.X, problem.y), problem)
        if isinstance(surrogate, SVC) and surrogate.kernel in SMOOTH_KERNELS and n_classes == 2:
            return self._svc(fresh(surrogate, problem.rng).fit(problem.X, problem.y), problem), None
        raise ValueError(
            f"surrogate={surrogate!r} has no input gradient here: use an SVC (two classes, rbf, linear, poly or "
            "sigmoid kernel), a LogisticRegression, a torch module or an estimator with a module_"
        )

    def _svc(self, model: SVC, problem: Problem) -> np.ndarray:
        values, gradients = svc_decision(model, problem.X)
        return self._slope(problem.signs * values) * np.linalg.norm(gradients, axis=1)

    def _logistic(self, model: LogisticRegression, problem: Problem) -> tuple[np.ndarray, np.ndarray | None]:
        if len(problem.classes) == 2:
            slope = self._slope(problem.signs * model.decision_function(problem.X))
            return slope * np.linalg.norm(model.coef_[0]), None
        if self.loss == "hinge":
            raise ValueError("loss='hinge' is for two classes: use loss='log'")
        gradients = linear_softmax(model, problem.X, problem.y)
        return np.linalg.norm(gradients, axis=1), -model.decision_function(problem.X)

    def _slope(self, margin: np.ndarray) -> np.ndarray:
        """Return |d loss / d f| at the margins y f."""
        if self.loss == "hinge":
            return (margin < 1).astype(float)
        return np.exp(-np.logaddexp(0.0, margin))
