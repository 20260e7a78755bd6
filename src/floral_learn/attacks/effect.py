"""What flips did to a victim: the same classifier, trained once on the labels before and once on those after."""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from floral_learn.base.validation import generator

from .surrogates import fresh


@dataclass(frozen=True, repr=False)
class VictimEffect:
    """Accuracy and recalls of a victim on test rows, before and after an attack.

    Attributes
    ----------
    victim : str
        Its class.
    before, after : float
        Test accuracy with the labels before and after the attack.
    changed : int
        Test rows whose prediction changed.
    n_test : int
        Test rows.
    recalls : dict
        Label -> (before, after), the share of its test rows that are recognised.

    Examples
    --------
    >>> from floral_learn import load_moon, poison
    >>> from sklearn.svm import SVC
    >>> moon = load_moon(n_train=200, n_val=1, n_test=500)
    >>> result = poison(moon.X_train, moon.y_train, budget=0.2, random_state=0)
    >>> effect = result.effect_on(SVC(gamma=1.0), moon.X_train, moon.X_test, moon.y_test)
    >>> effect.drop > 0.05, effect.n_test
    (True, 500)
    """

    victim: str
    before: float
    after: float
    changed: int
    n_test: int
    recalls: Mapping[Any, tuple[float, float]]

    @property
    def drop(self) -> float:
        """Accuracy lost to the attack."""
        return self.before - self.after

    def __repr__(self) -> str:
        lines = [
            f"{self.victim}: test accuracy {self.before:.3f} -> {self.after:.3f}; "
            f"{self.changed:,} of {self.n_test:,} predictions changed"
        ]
        return "\n".join([*lines, *(f"  {label}: {b:.3f} -> {a:.3f}" for label, (b, a) in self.recalls.items())])

    def _repr_html_(self) -> str:
        rows = {"accuracy": (self.before, self.after), **{f"recall of {k}": v for k, v in self.recalls.items()}}
        body = "".join(f"<tr><th>{escape(n)}</th><td>{b:.3f}</td><td>{a:.3f}</td></tr>" for n, (b, a) in rows.items())
        head = f"<tr><th>{escape(self.victim)}</th><th>before</th><th>after</th></tr>"
        return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"


def victim_effect(
    victim: Any, X: Any, before: np.ndarray, after: np.ndarray, X_test: Any, y_test: Any, random_state: Any
) -> VictimEffect:
    """Train a copy of ``victim`` on each labelling of X and compare the two on test rows with clean labels."""
    model, truth = fresh(victim, generator(random_state)), np.asarray(y_test)
    told, fooled = (np.asarray(model.fit(X, labels).predict(X_test)) for labels in (before, after))
    if truth.shape != told.shape:
        raise ValueError(f"y_test has shape {truth.shape}, X_test {told.shape[0]} rows")
    hits = told == truth, fooled == truth
    recalls = {
        label: (float(hits[0][truth == label].mean()), float(hits[1][truth == label].mean()))
        for label in np.unique(truth).tolist()
    }
    changed = int((told != fooled).sum())
    scores = float(hits[0].mean()), float(hits[1].mean())
    return VictimEffect(type(victim).__name__, *scores, changed, len(truth), recalls)
