"""One data set, split into train, validation and test, as every experiment sees it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from floral_learn.base import Shown


@dataclass(frozen=True, repr=False)
class Dataset(Shown):
    """Features and labels of the three parts; read-only, so that no attack can change them by accident.

    Parameters
    ----------
    name : str
        Name of the data set.
    X_train, y_train : ndarray of shape (n, d) and (n,)
        Training rows; their labels may be poisoned.
    X_val, y_val, X_test, y_test : ndarray
        The other parts; their labels are always clean.
    y_train_clean : ndarray of shape (n,)
        The true training labels.
    info : dict
        Where the rows came from (source, seed, checksum, ...).

    Examples
    --------
    >>> from floral_learn import load_moon, poison
    >>> moon = load_moon()
    >>> bad = moon.with_labels(poison(moon.X_train, moon.y_train, budget=0.1).y)
    >>> len(bad.poisoned), len(moon.poisoned), bad.classes.tolist()
    (50, 0, [-1, 1])
    """

    name: str
    X_train: np.ndarray
    y_train: np.ndarray
    X_val: np.ndarray
    y_val: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    y_train_clean: np.ndarray
    info: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for part in ("X_train", "y_train", "y_train_clean", "X_val", "y_val", "X_test", "y_test"):
            view = np.asarray(getattr(self, part)).view()
            view.flags.writeable = False
            object.__setattr__(self, part, view)
            X = "X_" + part.split("_")[1]
            if len(view) != len(getattr(self, X)):
                raise ValueError(f"{self.name}: {X} has {len(getattr(self, X))} rows, {part} has {len(view)}")

    def _facts(self) -> dict[str, str]:
        sizes = {"training": self.y_train, "validation": self.y_val, "test": self.y_test}
        return {
            "name": self.name,
            "rows": ", ".join(f"{len(y):,} {part}" for part, y in sizes.items()),
            "classes": ", ".join(map(str, self.classes)),
            "poisoned": f"{len(self.poisoned):,} training labels",
        }

    @property
    def classes(self) -> np.ndarray:
        """The labels that occur in the clean training part, sorted."""
        return np.unique(self.y_train_clean)

    @property
    def poisoned(self) -> np.ndarray:
        """Indices of training rows whose label is not the clean one."""
        return np.flatnonzero(self.y_train != self.y_train_clean)

    def with_labels(self, y_train: np.ndarray) -> "Dataset":
        """Return the same data set with other training labels (the clean ones are kept beside them)."""
        return replace(self, y_train=np.asarray(y_train))
