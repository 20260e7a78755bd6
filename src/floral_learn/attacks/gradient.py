"""Gradient attack: flip the rows whose loss is most sensitive to their input.

Gradients of kernel SVMs and logistic models are written out; those of a torch module are taken by torch, which is
imported only where a module is given.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC
from sklearn.utils import check_array

from .base import Problem, RankingAttack
from .surrogates import class_scores, fresh


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
        - an ``SVC`` (rbf or linear kernel, two classes) or a ``LogisticRegression``: fitted here
          on the given labels, gradients in closed form, no torch;
        - a trained ``torch.nn.Module`` that maps (n, ...) floats to (n,), (n, 1) or (n, M) logits, or a fitted
          estimator that holds one as ``module_``; rows may then have any shape, such as (tokens, width);
        - any object with ``input_gradient_norms(X, codes) -> norms (n,), scores (n, M)``, for models whose input
          is no array of floats, such as a transformer on texts; ``codes`` number the sorted classes.
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
    _: KW_ONLY
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
        n_classes = len(problem.classes)
        if hasattr(self.surrogate, "input_gradient_norms"):
            norms, scores = self.surrogate.input_gradient_norms(problem.X, problem.y)
            return np.asarray(norms, dtype=float), -np.asarray(scores, dtype=float)
        module = self._module()
        if module is not None:
            norms, logits = module_gradients(module, problem.X, problem.y, n_classes, self.batch_size)
            return norms, -logits
        surrogate = self.surrogate
        if surrogate is None:
            surrogate = SVC() if n_classes == 2 else LogisticRegression()
        if isinstance(surrogate, LogisticRegression):
            return self._logistic(fresh(surrogate, problem.rng).fit(problem.X, problem.y), problem)
        if isinstance(surrogate, SVC) and surrogate.kernel in ("rbf", "linear") and n_classes == 2:
            return self._svc(fresh(surrogate, problem.rng).fit(problem.X, problem.y), problem), None
        raise ValueError(
            f"surrogate={surrogate!r} has no input gradient here: use an SVC (two classes, rbf or linear "
            "kernel), a LogisticRegression, a torch module or an estimator with a module_"
        )

    def _svc(self, model: SVC, problem: Problem) -> np.ndarray:
        values, gradients = svc_decision(model, problem.X)
        return _slope(problem.signs * values) * np.linalg.norm(gradients, axis=1)

    def _logistic(self, model: LogisticRegression, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
        # gradients of the cross entropy: W'(p - onehot(y)); of two classes, W is that of the second
        residual = model.predict_proba(problem.X)
        residual[np.arange(len(residual)), problem.y] -= 1.0
        gradients = residual[:, -len(model.coef_) :] @ model.coef_
        return np.linalg.norm(gradients, axis=1), -class_scores(model, problem.X, len(problem.classes))


def _slope(margin: np.ndarray) -> np.ndarray:
    """Return |d log loss / d f| at the margins y f: sigmoid(-y f)."""
    return np.exp(-np.logaddexp(0.0, margin))


def svc_decision(model: SVC, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return f (n,) and grad f (n, d) of a fitted binary SVC, f(x) = sum_j c_j k(x, x_j) + b.

    grad k = x_j for the linear kernel, -2 gamma k (x - x_j) for rbf.
    """
    support, weights, gamma = model.support_vectors_, model.dual_coef_[0], model._gamma
    values = model.decision_function(X)
    if model.kernel == "linear":
        return values, np.broadcast_to(weights @ support, X.shape)
    # sum_j c_j k_j (x - x_j) without an (n, n_sv, d) array
    pulls = rbf_kernel(X, support, gamma=gamma) * weights
    return values, -2 * gamma * (X * pulls.sum(axis=1, keepdims=True) - pulls @ support)


def is_module(candidate: Any) -> bool:
    """Whether ``candidate`` is a torch module, without importing torch for those who have none."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(candidate, torch.nn.Module)


def place_of(module: Any) -> tuple[Any, Any]:
    """Where a module's parameters lie and their type; the CPU and 32-bit floats where it has none."""
    import torch

    first = next((p for p in module.parameters() if p.is_floating_point()), None)
    return (torch.device("cpu"), torch.float32) if first is None else (first.device, first.dtype)


@contextmanager
def evaluating(module: Any) -> Iterator[None]:
    """Evaluation mode for the time of a block, then whatever every part was in before."""
    before = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in before:
            part.training = mode


def class_columns(output: Any) -> Any:
    """Logits (n, M); a single log-odds column f becomes (0, f)."""
    if output.ndim == 1 or (output.ndim == 2 and output.shape[1] == 1):
        odds = output.reshape(-1, 1)
        return odds * odds.new_tensor([0.0, 1.0])
    return output


def module_gradients(
    module: Any, X: np.ndarray, codes: np.ndarray, n_classes: int, batch_size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return |d loss_i / d x_i| (n,) and logits (n, M) of ``module`` at rows ``X`` (n, ...) with labels ``codes``.

    The loss is cross entropy; one logit means the log-odds of class 1. Parameters, their gradients and the
    training mode of the module are left as they were.
    """
    import torch

    if batch_size < 1:
        raise ValueError(f"batch_size={batch_size!r} must be at least 1")
    device, dtype = place_of(module)
    norms, logits = [], []
    with evaluating(module), torch.enable_grad():
        for start in range(0, len(X), batch_size):
            batch = slice(start, start + batch_size)
            rows = torch.tensor(X[batch], dtype=dtype, device=device).requires_grad_()
            labels = torch.as_tensor(codes[batch], device=device)
            scores = class_columns(module(rows))
            if (shape := tuple(scores.shape)) != (len(rows), n_classes):
                raise ValueError(f"the module gives logits of shape {shape}, expected {(len(rows), n_classes)}")
            # rows do not see each other in eval mode: the gradient of the sum is every row's own
            loss = torch.nn.functional.cross_entropy(scores, labels, reduction="sum")
            (gradient,) = torch.autograd.grad(loss, rows)
            norms.append(gradient.flatten(1).norm(dim=1).detach().double().cpu().numpy())
            logits.append(scores.detach().double().cpu().numpy())
    return np.concatenate(norms), np.concatenate(logits)
