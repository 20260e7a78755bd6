"""Pointwise attack: the fewest flips that turn the prediction of a kernel ridge regression at given rows."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from floral_learn.certify.cheapest_flips import Attacker, turning_flips
from floral_learn.certify.kernel_ridge import CertifiedKernelClassifier

from .base import Choice, LabelAttack, Problem
from .constraints import flipped_first, off_diagonal, target_points


@dataclass
class Pointwise(LabelAttack):
    """Turn single predictions of a certified kernel ridge regression, with as few flips as that takes.

    The regression is linear in the labels, so the fewest flips that turn one row are found by a sort: one more than
    its certificate says (more only where that ends in a tie). Several rows are turned one after the other, those with
    the smallest certificate first; flips that were made for one count for the next.

    Cost: one factorisation, and one sort per row that is turned.

    Parameters
    ----------
    target : (m, d) array or array of row numbers, optional
        Rows to turn; the attack ends when all are. By default the rows of X, as many as the budget turns.
    surrogate : CertifiedKernelClassifier, optional
        The regression that is attacked; it is fitted here. By default one with default settings.

    Notes
    -----
    The other parameters are those of :class:`LabelAttack`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn import CertifiedKernelClassifier, poison
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> clf = CertifiedKernelClassifier().fit(X[1:], y[1:])
    >>> result = poison(X[1:], y[1:], attack="pointwise", budget=100, target=X[:1])
    >>> bool(len(result.indices) == clf.certified_flips(X[:1])[0] + 1)
    True
    """

    target: Any = None
    surrogate: Any = None

    name: ClassVar[str] = "pointwise"

    def _choose(self, problem: Problem) -> Choice:
        model = CertifiedKernelClassifier() if self.surrogate is None else self.surrogate
        if not isinstance(model, CertifiedKernelClassifier):
            raise ValueError(f"surrogate={model!r} must be a CertifiedKernelClassifier: its labels are sorted")
        matrix, n_classes = problem.constraints.flip_distribution, len(problem.classes)
        possible = ~np.eye(n_classes, dtype=bool) if matrix is None else off_diagonal(matrix) > 0
        settings = model.get_params() | {"possible_flips": None}
        model = CertifiedKernelClassifier(**settings).fit(problem.X, problem.y)
        points = problem.X if self.target is None else target_points(self.target, problem.X)
        start = model.predict(points)
        codes, left = problem.y.copy(), problem.constraints.limits.copy()
        order: list[int] = []
        free = problem.constraints.allowed.copy()
        for done, row in enumerate(np.argsort(model.certified_flips(points), kind="stable")):
            a, slack = model.label_weights(points[[row]])
            scores = np.bincount(codes, weights=a[0], minlength=n_classes)
            if scores.argmax() == start[row]:
                rows, new = self._fewest(
                    a[0], float(slack[0]), int(start[row]), codes, possible, free & (left[codes] > 0)
                )
                for one, code in zip(rows, new, strict=True):
                    if len(order) == problem.flips or left[problem.y[one]] == 0:
                        break
                    left[problem.y[one]] -= 1
                    free[one], codes[one] = False, code
                    order.append(int(one))
            problem.progress(done + 1, points.shape[0])
            if len(order) == problem.flips:
                break
        indices = np.array(order, dtype=np.intp)
        # Flips for one row may turn another back, so the turned ones are counted at the end.
        after = np.full(len(start), codes[0])
        if len(np.unique(codes)) > 1:
            after = model.fit(problem.X, codes).predict(points)
        turned, stopped = int((after != start).sum()), None
        if len(indices) < problem.flips and self.target is not None:
            stopped = f"{turned:,} of {points.shape[0]:,} targets are turned, and more flips turn no other"
        elif len(indices) < problem.flips:
            # All rows are turned: the rest of the budget goes to any rows, within the limits of their classes.
            rest = problem.constraints.best((codes != problem.y).astype(float), problem.flips)
            rest = rest[~np.isin(rest, indices)]
            codes[rest] = problem.constraints.new_codes(rest, problem.rng)
            indices = np.concatenate([indices, rest])
        details = {"turned": turned, "targets": int(points.shape[0])}
        scores = flipped_first(np.zeros(len(codes)), indices)
        return Choice(indices, codes[indices], scores, stopped, details)

    @staticmethod
    def _fewest(
        a: np.ndarray, slack: float, winner: int, codes: np.ndarray, possible: np.ndarray, free: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows and new classes that turn one prediction, over all rivals; none where no flips do."""
        attacker = Attacker(codes, possible, free)
        rivals = [code for code in range(len(possible)) if code != winner]
        found = [turning_flips(a, slack, winner, rival, attacker) for rival in rivals]
        known = [turn for turn in found if turn is not None]
        none = np.empty(0, np.intp), np.empty(0, np.intp)
        return min(known, key=lambda turn: len(turn[0]), default=none)
