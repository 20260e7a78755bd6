"""How attacks carry over: labels poisoned against one model, accuracy measured on others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from floral_bench.displays import FIGURE
from floral_learn.attacks import named_attacks
from floral_learn.attacks.surrogates import fresh
from floral_learn.base.extras import drawing_axis
from floral_learn.base.validation import generator


def transfer_table(
    X: Any, y: Any, X_test: Any, y_test: Any, *, attacks: Any, victims: Mapping[str, Any], budget: float | int = 0.1,
    random_state: Any = None,
) -> pd.DataFrame:  # fmt: skip
    """Poison (X, y) with every attack (named after its surrogate), train every victim on the result, score it on test.

    ``attacks`` are as for `named_attacks`; those by name get the budget. The frame has a row for clean labels and one
    for each attack, and a column for each victim.

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
    >>> (table.loc["(clean)"] - table.loc["farthest"] > 0.05).all().item()
    True
    """
    rng = generator(random_state)
    models = {name: fresh(victim, rng) for name, victim in victims.items()}
    made = named_attacks(attacks, budget=budget, random_state=rng)
    labels = np.asarray(y)
    rows = {"(clean)": labels} | {name: attack.poison(X, labels).y for name, attack in made.items()}
    scores = [[model.fit(X, told).score(X_test, y_test) for model in models.values()] for told in rows.values()]
    return pd.DataFrame(scores, index=list(rows), columns=list(models))


@dataclass
class TransferDisplay:
    """The accuracy that each victim (columns) of a `transfer_table` loses to labels poisoned against each surrogate."""

    table: pd.DataFrame

    def plot(self, ax: Any = None) -> TransferDisplay:
        """Draw on ``ax`` (a new figure by default); the darker, the more accuracy is lost."""
        ax = drawing_axis(ax, FIGURE)
        clean, poisoned = self.table.iloc[0], self.table.iloc[1:]
        values = clean.to_numpy() - poisoned.to_numpy()
        most = max(float(values.max(initial=0.0)), 0.01)
        ax.imshow(values, cmap="OrRd", vmin=0, vmax=most, aspect="auto")
        for (row, column), value in np.ndenumerate(values):
            # white on the dark end of the scale, where black cannot be read
            ax.text(column, row, f"{value:.3f}", ha="center", va="center", color="w" if value > 0.7 * most else "k")
        ax.set_xticks(range(len(clean)), [f"{name}\n({value:.3f} clean)" for name, value in clean.items()])
        ax.set_yticks(range(len(poisoned)), list(poisoned.index))
        ax.set(xlabel="victim", ylabel="attack", title="accuracy lost to poisoned labels")
        self.ax_, self.figure_ = ax, ax.figure
        return self
