"""How attacks carry over: labels poisoned against one model, accuracy measured on others."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .base import LabelAttack
from .constraints import as_generator
from .surrogates import fresh


@dataclass(frozen=True)
class TransferTable:
    """Test accuracies: ``clean`` (victim -> accuracy) and ``poisoned`` (surrogate -> victim -> accuracy)."""

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

    ``attacks`` maps a row name to an attack that has its surrogate set, ``victims`` a column name to an
    unfitted classifier. Accuracies are on the clean ``X_test, y_test``.
    """
    rng = as_generator(random_state)
    models = {name: fresh(victim, rng) for name, victim in victims.items()}

    def accuracies(labels: np.ndarray) -> dict[str, float]:
        return {name: float(model.fit(X, labels).score(X_test, y_test)) for name, model in models.items()}

    labels = np.asarray(y)
    return TransferTable(
        clean=accuracies(labels),
        poisoned={name: accuracies(attack.poison(X, labels).y) for name, attack in attacks.items()},
    )
