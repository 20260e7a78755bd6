"""What every label attack shares: checked input, an exact budget, and a result that says what changed."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from html import escape
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import _num_samples

from floral_learn.base import Shown
from floral_learn.base.alignment import align
from floral_learn.base.validation import check_flip_distribution, count_points, encode_labels, generator

from .constraints import Constraints, allowed_rows, limits_per_class
from .surrogates import fresh

Progress = Callable[[int, int], None]


@dataclass(frozen=True, repr=False)
class VictimEffect(Shown):
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

    def _facts(self) -> dict[str, str]:
        moves = {"test accuracy": (self.before, self.after)}
        moves |= {f"recall of {label}": recall for label, recall in self.recalls.items()}
        changed = f"{self.changed:,} of {self.n_test:,}"
        facts = {name: f"{before:.3f} -> {after:.3f}" for name, (before, after) in moves.items()}
        return {"victim": self.victim, **facts, "predictions changed": changed}


@dataclass(frozen=True, repr=False)
class PoisonResult:
    """Poisoned labels and how they came about.

    Attributes
    ----------
    y : ndarray of shape (n,)
        Labels after the attack, of the given dtype; a new array.
    indices : ndarray of shape (m,)
        Rows whose label changed, the attack's first choice first.
    scores : ndarray of shape (n,)
        The attack's ranking of all rows, larger means more worth flipping.
    budget : int
        How many flips were asked for; ``m == budget`` unless ``stopped_early``.
    stopped_early : str or None
        The reason why fewer labels than ``budget`` were flipped.
    details : dict
        What the attack found on its way (objective, angle, number of fits, ...).
    before : ndarray of shape (n,) or None
        Labels before the attack.

    Examples
    --------
    >>> from floral_learn import poison
    >>> result = poison(None, ["spam", "ham"] * 50, attack="random", budget=5, random_state=0)
    >>> result.budget, int(result.mask.sum()), result.stopped_early is None
    (5, 5, True)
    """

    y: np.ndarray
    indices: np.ndarray
    scores: np.ndarray
    budget: int
    stopped_early: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    before: np.ndarray | None = None

    def __repr__(self) -> str:
        flips = f"{len(self.indices):,} of {len(self.y):,} labels changed"
        return f"PoisonResult({flips}{f'; {self.stopped_early}' if self.stopped_early else ''})"

    def _repr_html_(self) -> str:
        if self.before is None or not len(self.indices):
            return f"<p>{escape(repr(self))}</p>"
        moves = zip(self.before[self.indices].tolist(), self.y[self.indices].tolist(), strict=True)
        body = ""
        for (old, new), count in Counter(moves).most_common():
            body += f"<tr><td>{escape(str(old))}</td><td>{escape(str(new))}</td><td>{count:,}</td></tr>"
        head = "<tr><th>label</th><th>changed to</th><th>rows</th></tr>"
        caption = f"<caption>{escape(repr(self))}</caption>"
        return f"<table>{caption}<thead>{head}</thead><tbody>{body}</tbody></table>"

    @property
    def mask(self) -> np.ndarray:
        """(n,) booleans, true where the label changed."""
        mask = np.zeros(len(self.y), dtype=bool)
        mask[self.indices] = True
        return mask

    def effect_on(self, victim: Any, X: Any, X_test: Any, y_test: Any, *, random_state: Any = None) -> VictimEffect:
        """Return what the flips do to ``victim``: trained on X with the labels before and after, scored on test rows.

        ``victim`` is an unfitted classifier; it is cloned.
        """
        if self.before is None:
            raise ValueError("this result does not hold the labels before the attack; make it with poison()")
        model = fresh(victim, generator(random_state))
        truth = np.asarray(align(X_test, y_test, ("X_test", "y_test")))
        before = np.asarray(model.fit(X, self.before).predict(X_test))
        after = np.asarray(model.fit(X, self.y).predict(X_test))
        if truth.shape != before.shape:
            raise ValueError(f"y_test has shape {truth.shape}, X_test {before.shape[0]} rows")
        hits = before == truth, after == truth
        recalls = {
            label: (float(hits[0][truth == label].mean()), float(hits[1][truth == label].mean()))
            for label in np.unique(truth).tolist()
        }
        scores = float(hits[0].mean()), float(hits[1].mean())
        return VictimEffect(type(victim).__name__, *scores, int((before != after).sum()), len(truth), recalls)


@dataclass(frozen=True)
class Choice:
    """An attack's answer: rows, their new codes and the ranking behind them."""

    indices: np.ndarray
    codes: np.ndarray
    scores: np.ndarray
    stopped_early: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Problem:
    """One attack's input after validation: labels are codes 0..M-1 into ``classes``."""

    X: Any
    y: np.ndarray
    classes: np.ndarray
    flips: int
    constraints: Constraints
    rng: np.random.Generator
    progress: Progress

    @property
    def signs(self) -> np.ndarray:
        """(n,) labels as -1.0 / +1.0 (two classes)."""
        return 2.0 * self.y - 1.0

    def held_out(self, X_val: Any, y_val: Any) -> tuple[Any, np.ndarray] | None:
        """Rows (m, d) with right labels by which an attacker measures flips, and their codes (m,); None without."""
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val must be given together")
        if X_val is None:
            return None
        y_val = align(X_val, y_val, ("X_val", "y_val"))
        X_val = check_array(X_val, accept_sparse="csr", input_name="X_val")
        labels, width = np.asarray(y_val), self.X.shape[1]
        if X_val.shape[1] != width or labels.shape != (X_val.shape[0],):
            raise ValueError(f"X_val {X_val.shape} and y_val {labels.shape} do not fit X with {width} columns")
        known = np.isin(labels, self.classes)
        if not known.all():
            raise ValueError(f"y_val has labels that y has not: {np.unique(labels[~known]).tolist()}")
        return X_val, np.searchsorted(self.classes, labels)

    def switch(self, indices: np.ndarray, scores: np.ndarray, details: Mapping[str, Any]) -> Choice:
        """The answer of an attack on two classes: the rows at `indices` get the other one."""
        return Choice(indices, 1 - self.y[indices], scores, None, details)


@dataclass
class LabelAttack(ABC):
    """Flip labels of a training set, at most (and, where nothing prevents it, exactly) ``budget`` many.

    Parameters
    ----------
    budget : float or int, default=0.1
        Flips: a float in [0, 1] is a fraction of all rows (rounded down), an int a count.
    mask : array of n booleans or of row numbers, optional
        The only rows that may be flipped, for example those of one annotator.
    class_limits : dict, optional
        Label -> most flips of rows with that label (count, or float fraction of those rows).
    flip_distribution : (M, M) array, optional
        Row m: probabilities of the new label for a row of class m, classes sorted. A row with
        all weight on its own class is never flipped. ``None``: the attack chooses.
    random_state : int, Generator, RandomState or None
        Source of every random choice.
    progress : callable(done, total), optional
        Called by long attacks after each unit of work.

    Examples
    --------
    One method makes a new attack; see "Add an attack" in the documentation.

    >>> import numpy as np
    >>> from floral_learn.attacks.base import RankingAttack
    >>> class First(RankingAttack):
    ...     name = "first"
    ...     def _rank(self, problem):
    ...         return -np.arange(len(problem.y)), None
    >>> First(budget=2).poison([[0.0]] * 4, ["a", "a", "b", "b"]).y.tolist()
    ['b', 'b', 'b', 'b']
    """

    _: KW_ONLY
    budget: float | int = 0.1
    mask: Any = None
    class_limits: Mapping[Any, float | int] | None = None
    flip_distribution: Any = None
    random_state: Any = None
    progress: Progress | None = field(default=None, repr=False, compare=False)

    name: ClassVar[str]
    multiclass: ClassVar[bool] = True
    needs_features: ClassVar[bool] = True
    accept_sparse: ClassVar[bool] = True

    def poison(self, X: Any, y: Any) -> PoisonResult:
        """Return poisoned labels for rows ``X`` (n, d) with labels ``y`` (n,); the inputs stay as they are.

        Where both carry an index, ``y`` and a mask are matched with ``X`` by it; the result is in the order of ``X``.
        """
        first, whose = (y, "y") if X is None else (X, "X")
        labels = np.asarray(align(first, y))
        problem = self._problem(X, labels, align(first, self.mask, (whose, "mask")))
        if problem.flips == 0:
            return PoisonResult(labels.copy(), np.empty(0, np.intp), np.zeros(len(labels)), 0, before=labels.copy())
        choice = self._choose(problem)
        poisoned = labels.copy()
        poisoned[choice.indices] = problem.classes[choice.codes]
        return PoisonResult(
            y=poisoned,
            indices=np.asarray(choice.indices, dtype=np.intp),
            scores=choice.scores,
            budget=problem.flips,
            stopped_early=choice.stopped_early,
            details=choice.details,
            before=labels.copy(),
        )

    @abstractmethod
    def _choose(self, problem: Problem) -> Choice:
        """Pick ``problem.flips`` rows and their new classes."""

    def _features(self, X: Any) -> Any:
        """Check the features; attacks that read none of them take anything with n rows."""
        if not self.needs_features:
            return X
        return check_array(X, accept_sparse="csr" if self.accept_sparse else False, input_name="X")

    def _problem(self, X: Any, labels: np.ndarray, mask: Any) -> Problem:
        classes, codes = encode_labels(labels, f"attack {self.name!r}")
        n = len(codes)
        if (X is not None or self.needs_features) and _num_samples(X) != n:
            raise ValueError(f"X has {_num_samples(X)} rows, y has {n} labels")
        if len(classes) > 2 and not self.multiclass:
            raise ValueError(
                f"attack {self.name!r} is defined for two classes, y has {len(classes)}; poison two classes at "
                "a time (mask=...) after selecting their rows, or use 'lfa', 'farthest' or 'gradient'"
            )
        flips = count_points(self.budget, n, "budget")
        matrix = check_flip_distribution(self.flip_distribution, len(classes))
        allowed = allowed_rows(mask, n)
        if matrix is not None:
            allowed &= (np.diag(matrix) < 1)[codes]
        limits = limits_per_class(self.class_limits, classes, codes)
        rng = generator(self.random_state)
        constraints = Constraints(codes, allowed, limits, matrix)
        if flips > (most := constraints.most()):
            raise ValueError(
                f"budget={self.budget!r} asks for {flips} flips of {n} rows, but mask, class_limits and "
                f"flip_distribution leave at most {most}"
            )
        return Problem(
            X=self._features(X) if flips else X,
            y=codes,
            classes=classes,
            flips=flips,
            constraints=constraints,
            rng=rng,
            progress=self.progress or (lambda done, total: None),
        )


class RankingAttack(LabelAttack):
    """An attack that scores every row once and flips the best ones."""

    random_ties: ClassVar[bool] = False

    @abstractmethod
    def _rank(self, problem: Problem) -> tuple[np.ndarray, np.ndarray | None]:
        """Return scores (n,), larger first, and preferences (n, M) for the new class (``None``: any)."""

    def _choose(self, problem: Problem) -> Choice:
        scores, preference = self._rank(problem)
        ties = problem.rng.permutation(len(scores)) if self.random_ties else None
        indices = problem.constraints.best(scores, problem.flips, ties)
        codes = problem.constraints.new_codes(indices, problem.rng, preference)
        return Choice(indices, codes, scores)


@dataclass
class SVMAttack(LabelAttack):
    """An attack on an SVM of two classes, with the parameters of ``sklearn.svm.SVC`` or of a `surrogate`."""

    _: KW_ONLY
    C: float = 1.0
    kernel: str = "rbf"
    gamma: float | str = "scale"
    degree: int = 3
    coef0: float = 0.0
    surrogate: Any = None

    multiclass: ClassVar[bool] = False
    accept_sparse: ClassVar[bool] = False

    @property
    def svm(self) -> Any:
        """What holds the SVM's parameters: the attack itself or its surrogate."""
        return self if self.surrogate is None else self.surrogate


@dataclass(frozen=True)
class Try:
    """A set of rows to flip, its ranking of all rows (n,), and what it is worth to the attacker."""

    worth: float
    indices: np.ndarray
    scores: np.ndarray
    details: dict[str, Any] = field(default_factory=dict)


def best_of(problem: Problem, tries: Iterable[Try], total: int) -> tuple[Try, np.ndarray]:
    """Return the first of the tries that are worth most, and what each was worth, (total,)."""
    found: list[Try] = []
    for one in tries:
        found.append(one)
        problem.progress(len(found), total)
    worth = np.array([one.worth for one in found])
    return found[int(worth.argmax())], worth


def check_whole(attack: LabelAttack, **least: int) -> None:
    """Refuse parameters that are not whole numbers from the given least ones on."""
    for name, lowest in least.items():
        value = getattr(attack, name)
        if not isinstance(value, Integral) or isinstance(value, bool) or value < lowest:
            raise ValueError(f"{name}={value!r} must be a whole number of at least {lowest}")


def flipped(labels: np.ndarray, other: np.ndarray, sets: Iterable[np.ndarray]) -> np.ndarray:
    """Return labels (n, sets): of each set of rows the label in `other`, of all further rows that in `labels`."""
    changed = [np.where(np.isin(np.arange(len(labels)), rows), other, labels) for rows in sets]
    return np.stack(changed, axis=1)
