"""How attacks carry over: labels poisoned against one model, accuracy measured on others."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from floral_learn.core.validation import generator

from .base import LabelAttack
from .surrogates import fresh


@dataclass(frozen=True)
class TransferTable:
    """Test accuracies of victims that were trained on labels poisoned against other models.

    Attributes
    ----------
    clean : dict
        Victim -> accuracy.
    poisoned : dict
        Surrogate -> victim -> accuracy.

    Examples
    --------
    >>> from floral_learn.attacks import TransferTable
    >>> table = TransferTable(clean={"svc": 0.75}, poisoned={"logistic": {"svc": 0.5}})
    >>> table.drops()
    {'logistic': {'svc': 0.25}}
    """

    clean: Mapping[str, float]
    poisoned: Mapping[str, Mapping[str, float]]

    def drops(self) -> dict[str, dict[str, float]]:
        """Return the accuracy that each victim loses to each surrogate's labels."""
        return {
            surrogate: {victim: self.clean[victim] - accuracy for victim, accuracy in row.items()}
            for surrogate, row in self.poisoned.items()
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return tidy rows: surrogate, victim, clean, poisoned, drop."""
        return [
            {
                "surrogate": surrogate,
                "victim": victim,
                "clean": self.clean[victim],
                "poisoned": accuracy,
                "drop": self.clean[victim] - accuracy,
            }
            for surrogate, row in self.poisoned.items()
            for victim, accuracy in row.items()
        ]


def transfer_table(
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    *,
    attacks: Mapping[str, LabelAttack],
    victims: Mapping[str, Any],
    random_state: Any = None,
) -> TransferTable:
    """Poison (X, y) with every attack (named after its surrogate) and train every victim on the result.

    Parameters
    ----------
    X, y : array-like
        Training rows and clean labels.
    X_test, y_test : array-like
        Clean rows on which accuracies are measured.
    attacks : dict
        Row name -> an attack that has its surrogate set.
    victims : dict
        Column name -> an unfitted classifier.
    random_state : int, Generator, RandomState or None
        For victims that left theirs open.

    Returns
    -------
    TransferTable
        Accuracies on clean and on poisoned labels.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.svm import SVC
    >>> from floral_learn import load_moon, transfer_table
    >>> from floral_learn.attacks import Farthest
    >>> moon = load_moon(n_train=100, n_val=1, n_test=200)
    >>> table = transfer_table(
    ...     moon.X_train, moon.y_train, moon.X_test, moon.y_test,
    ...     attacks={"logistic": Farthest(budget=0.2)}, victims={"svc": SVC(), "logistic": LogisticRegression()},
    ... )
    >>> [row["victim"] for row in table.rows() if row["drop"] > 0.05]
    ['svc', 'logistic']
    """
    rng = generator(random_state)
    models = {name: fresh(victim, rng) for name, victim in victims.items()}

    def accuracies(labels: np.ndarray) -> dict[str, float]:
        return {name: float(model.fit(X, labels).score(X_test, y_test)) for name, model in models.items()}

    labels = np.asarray(y)
    return TransferTable(
        clean=accuracies(labels),
        poisoned={name: accuracies(attack.poison(X, labels).y) for name, attack in attacks.items()},
    )
