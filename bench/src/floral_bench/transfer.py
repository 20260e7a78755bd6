"""How attacks carry over: labels poisoned against one model, accuracy measured on others."""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from floral_bench.displays import TransferDisplay
from floral_learn.attacks.registry import named_attacks
from floral_learn.attacks.surrogates import fresh
from floral_learn.base.extras import install_line
from floral_learn.base.validation import generator


@dataclass(frozen=True, repr=False)
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
    >>> from floral_bench.transfer import TransferTable
    >>> table = TransferTable(clean={"svc": 0.75}, poisoned={"logistic": {"svc": 0.5}})
    >>> table.drops()
    {'logistic': {'svc': 0.25}}
    >>> table
              svc
    (clean)   0.750
    logistic  0.500
    """

    clean: Mapping[str, float]
    poisoned: Mapping[str, Mapping[str, float]]

    def __repr__(self) -> str:
        cells = [["", *self.clean], *([name, *(f"{value:.3f}" for value in row)] for name, row in self._grid())]
        widths = [max(map(len, column)) for column in zip(*cells)]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(str(victim))}</th>" for victim in self.clean)
        body = "".join(
            f"<tr><th>{escape(str(name))}</th>{''.join(f'<td>{value:.3f}</td>' for value in row)}</tr>"
            for name, row in self._grid()
        )
        return f"<table><thead><tr><th>labels</th>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _grid(self) -> list[tuple[str, list[float]]]:
        """Rows of accuracies, victims in columns: clean labels, then each attack."""
        rows = {"(clean)": self.clean, **self.poisoned}
        return [(name, [row[victim] for victim in self.clean]) for name, row in rows.items()]

    def to_frame(self) -> Any:
        """Return a DataFrame of accuracies: the rows are clean labels and each attack, the columns victims."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(f"to_frame() needs pandas: {install_line('cli')}") from error
        grid = self._grid()
        return pd.DataFrame([row for _, row in grid], index=[name for name, _ in grid], columns=list(self.clean))

    def plot(self, ax: Any = None) -> TransferDisplay:
        """Draw the accuracy lost, attacks in rows and victims in columns, on ``ax`` (a new figure by default)."""
        return TransferDisplay(self.drops(), self.clean).plot(ax)

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
    attacks: Any,
    victims: Mapping[str, Any],
    budget: float | int = 0.1,
    random_state: Any = None,
) -> TransferTable:
    """Poison (X, y) with every attack (named after its surrogate) and train every victim on the result.

    Parameters
    ----------
    X, y : array-like
        Training rows and clean labels.
    X_test, y_test : array-like
        Clean rows on which accuracies are measured.
    attacks : str, attack, list of them, or dict
        Names of ``ATTACKS``, or attacks that have their surrogate set; the keys of a dict name the rows.
    victims : dict
        Column name -> an unfitted classifier.
    budget : float or int, default=0.1
        Flips of the attacks that are given by name; an attack given as an object keeps its own.
    random_state : int, Generator, RandomState or None
        For victims that left theirs open and for attacks that are given by name.

    Returns
    -------
    TransferTable
        Accuracies on clean and on poisoned labels.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.svm import SVC
    >>> from floral_learn import load_moon
    >>> from floral_bench.transfer import transfer_table
    >>> moon = load_moon(n_train=100, n_val=1, n_test=200)
    >>> table = transfer_table(
    ...     moon.X_train, moon.y_train, moon.X_test, moon.y_test,
    ...     attacks=["farthest"], budget=0.2, victims={"svc": SVC(), "logistic": LogisticRegression()},
    ... )
    >>> [row["victim"] for row in table.rows() if row["drop"] > 0.05]
    ['svc', 'logistic']
    """
    rng = generator(random_state)
    if not isinstance(victims, Mapping) or not victims:
        raise ValueError(f"victims={victims!r} must be a dict, name -> unfitted classifier, with at least one")
    models = {name: fresh(victim, rng) for name, victim in victims.items()}

    made = named_attacks(attacks, budget=budget, random_state=rng)

    def accuracies(labels: np.ndarray) -> dict[str, float]:
        return {name: float(model.fit(X, labels).score(X_test, y_test)) for name, model in models.items()}

    labels = np.asarray(y)
    return TransferTable(
        clean=accuracies(labels),
        poisoned={name: accuracies(attack.poison(X, labels).y) for name, attack in made.items()},
    )
