"""The problem that a game is: rows, labels, caps, steps and an attacker. Frozen, and knows nothing of how it is played.

R games that share a Gram operator (seeds, budgets, steps, label sets, pairs of classes) are R blocks of columns. A game
of two classes is one column; a one-vs-rest game of M classes (Algorithm 3) is M columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from floral_learn.game.arrays import Array
from floral_learn.game.attackers import Attacker, Flips, NoAttack
from floral_learn.game.gram import Gram


@dataclass(frozen=True)
class Game:
    """Everything that does not change while the game is played.

    Parameters
    ----------
    gram : Gram
        K for the n rows.
    labels : int ndarray of shape (n,) or (n, R)
        Class numbers 0 .. n_classes - 1, one column per game.
    cap : float ndarray of shape (n,), (n, 1) or (n, columns)
        Upper bound of each dual: C times the sample weight. A row with a cap of 0 takes no part.
    steps : float ndarray of shape (rounds,) or (rounds, R)
        eta of each round (see `step_schedule`).
    attacker : Attacker
        Who flips labels between steps.
    n_classes : int
        Two classes make one column per game; more make one column per class (one against all).
    seeds : int ndarray of shape (R,)
        One random stream per game.
    warm_up : int
        First rounds without flips.
    projection : str
        ``"exact"`` or ``"fixed_point"``.
    eligible : bool ndarray of shape (n,) or (n, R), optional
        Which labels may be flipped; all by default.
    weight : float ndarray of shape (n,) or (n, R), optional
        Sample weights, above 0: a row of weight 2 plays as two equal rows (`cap` must hold C * weight).
    tol : float, optional
        End the game once the averaged decision values on the rows have settled: their mean squared change per round,
        from one look to the next (after 48, 64, 96, 128, ... rounds), is at most `tol` on the mean over columns. None
        plays all rounds.
    row_ids : int ndarray of shape (n, R), optional
        What the random streams call each row, where games have rows of their own; 0 .. n - 1 by default.
    keep_flips : bool
        Whether the history holds the flipped rows of every round.

    Examples
    --------
    Three games on the same rows, each with its own random stream, are three columns of the same products:

    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn.game.attackers import RandomizedTopK
    >>> from floral_learn.game.game import Game, solve, step_schedule
    >>> from floral_learn.game.gram import DenseGram
    >>> from floral_learn.game.kernels import Kernel
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> gram = DenseGram.from_rows(X, Kernel("rbf", gamma=1.0))
    >>> steps = step_schedule(1 / gram.lambda_max(centred=True), rounds=50)
    >>> game = Game(gram, y, np.full(100, 10.0), steps, RandomizedTopK(budget=10, flips=5), seeds=np.arange(3))
    >>> solve(game).dual.shape
    (100, 3)
    """

    gram: Gram
    labels: np.ndarray
    cap: np.ndarray
    steps: np.ndarray
    attacker: Attacker = field(default_factory=NoAttack)
    n_classes: int = 2
    seeds: np.ndarray | int = 0
    warm_up: int = 1
    projection: str = "exact"
    eligible: np.ndarray | None = None
    weight: np.ndarray | None = None
    tol: float | None = None
    row_ids: np.ndarray | None = None
    keep_flips: bool = True
    eta: Array = field(init=False, repr=False)  # steps for each column, where the game is played
    given: Array = field(init=False, repr=False)  # the labels of two classes as -1 / +1

    def __post_init__(self) -> None:
        backend = self.gram.backend
        fix = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731 (the dataclass is frozen)
        labels = np.asarray(self.labels)
        labels = labels[:, None] if labels.ndim == 1 else labels
        seeds = np.atleast_1d(np.asarray(self.seeds, dtype=np.int64))
        games = max(labels.shape[1], len(seeds), np.shape(self.steps)[1] if np.ndim(self.steps) == 2 else 1)
        labels = np.broadcast_to(labels, (len(labels), games))
        fix("seeds", backend.array(np.ascontiguousarray(np.broadcast_to(seeds, (games,)))))
        fix("labels", backend.columns(labels, backend.int64))
        fix("given", 2 * backend.columns(labels, backend.float64) - 1)
        fix("cap", backend.columns(self.cap, backend.float64))
        steps = np.asarray(self.steps, dtype=float)
        steps = np.broadcast_to(steps[:, None] if steps.ndim == 1 else steps, (len(steps), games))
        fix("steps", steps)
        fix("eta", backend.array(np.repeat(steps, self.width, axis=1)))
        if self.eligible is not None:
            eligible = np.asarray(self.eligible, dtype=bool)
            eligible = eligible[:, None] if eligible.ndim == 1 else eligible
            fix("eligible", backend.columns(np.broadcast_to(eligible, labels.shape)))
        if self.weight is not None:
            fix("weight", backend.columns(self.weight, backend.float64))

    @property
    def games(self) -> int:
        """R, how many games are played at once."""
        return self.labels.shape[1]

    @property
    def width(self) -> int:
        """M, columns of one game."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def rounds(self) -> int:
        """T, the most rounds to be played."""
        return len(self.steps)

    def attacker_of(self, number: int) -> Attacker:
        """Who flips in round `number`: nobody while the game warms up."""
        return self.attacker if number > self.warm_up else NoAttack()

    def signs(self, flips: Flips | None = None) -> Array:
        """-1 / +1 labels of every column, (n, R * M), with `flips` applied to the given labels."""
        backend, labels = self.gram.backend, self.labels
        if self.width == 1:
            if flips is None or not len(flips.points):
                return self.given
            return backend.assign(self.given, flips.points, 2 * backend.cast(flips.labels, backend.float64) - 1)
        if flips is not None and len(flips.points):
            labels = backend.assign(labels, flips.points, flips.labels)
        labels = backend.cast(labels, backend.float64)
        classes = backend.arange(self.n_classes)
        # (R, M, n) in memory is (n, R * M) column by column.
        hits = labels.T[:, None, :] == classes[None, :, None]
        return 2 * backend.cast(hits.reshape(-1, hits.shape[-1]), backend.float64).T - 1


def step_schedule(eta: float | np.ndarray, rounds: int, decay: tuple[float, int] | None = None) -> np.ndarray:
    """eta_t for t = 1 .. rounds; ``decay=(factor, every)`` multiplies by `factor` after each `every` rounds.

    Parameters
    ----------
    eta : float or ndarray of shape (R,)
        The first step, of each game.
    rounds : int
        T.
    decay : (float, int), optional
        Factor and how often.

    Returns
    -------
    ndarray of shape (rounds,) or (rounds, R)
        For `Game`.

    Examples
    --------
    >>> from floral_learn.game.game import step_schedule
    >>> step_schedule(1.0, rounds=4, decay=(0.5, 2)).tolist()
    [1.0, 1.0, 0.5, 0.5]
    """
    shape = np.ones(rounds) if decay is None else decay[0] ** (np.arange(rounds) // decay[1])
    return np.multiply.outer(shape, np.asarray(eta, dtype=float))
