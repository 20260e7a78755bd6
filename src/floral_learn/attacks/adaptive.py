"""An attack on FLORAL itself: search for the flips that hurt the averaged game most, by playing it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from floral_learn.floral.classifier import FloralClassifier, GameClassifier
from floral_learn.floral.fitting import Settings, make_problem, play_problem, resolve_budget
from floral_learn.game.arrays import NUMPY
from floral_learn.game.attackers import NoAttack, RandomizedTopK

from .base import Choice, LabelAttack, Problem, check_whole, flipped
from .constraints import flipped_first

# Flipped share of a region. All of it is a waste where two thirds suffice to turn it over.
DENSITIES = (1.0, 0.8, 0.65, 0.5)
ELITE = 4  # flip sets that are kept from step to step
CHECKS = 3  # times that the last comparison is repeated with new draws
COLUMNS = 32  # games played at once: beyond that, wider products no longer save time
SHARPNESS = 8.0  # of the smoothed error; margins of FLORAL are of the order of 1


@dataclass
class Adaptive(LabelAttack):
    """argmax over flips of ``E_seed[held-out error of the game that the victim plays]``, searched by playing it.

    The attacker knows FLORAL and its parameters (B, k, T, C, kernel), not its seed. Flip sets are scored by playing
    the victim's own game with several seeds of its flips, and judging the averaged model on rows that it has not
    seen. Candidates are regions: rows that other attacks (`starts`) put first, of both classes or of one, and balls
    around random rows, flipped in whole or in part, since a region turns over before all of it is flipped. The
    better third stays, twice, each time with new seeds; then flip sets are mixed and moved for `n_steps` steps. In
    the end the best ones and the starts themselves play against new seeds once more and the worst for the victim
    wins, so that the result is never weaker than a start by that measure.

    Cost: about 900 games of the victim by default, 32 at a time.

    Parameters
    ----------
    victim : FloralClassifier, optional
        What is attacked, with its parameters; by default ``FloralClassifier()``.
    X_val, y_val : (m, d) and (m,) arrays, optional
        Held-out rows with right labels. Rows that should be misread, with their labels, make it a targeted attack. By
        default parts of the training rows are left out of the games in turn.
    starts : sequence of names or attacks, default=("farthest", "alfa", "alfa-tilt")
        Where the search begins. Those by name get the victim's kernel.
    n_regions : int, default=12
        Balls around random rows among the first candidates; as many more around rows of `X_val`.
    n_steps : int, default=8
        Steps after that, of eight new flip sets each.
    n_draws : int, default=4
        Games per flip set and comparison, each with a seed of its own.

    Notes
    -----
    The other parameters are those of :class:`LabelAttack`. Two classes. ``result.details`` has the smoothed held-out
    error (``loss``) and the error of the last comparison, those of each start, and how many games were played.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn import FloralClassifier
    >>> from floral_learn.attacks import Adaptive
    >>> X, y = make_moons(80, noise=0.2, random_state=0)
    >>> attack = Adaptive(FloralClassifier(budget=0.1), budget=0.2, n_regions=4, n_steps=2, random_state=0)
    >>> result = attack.poison(X, y)
    >>> len(result.indices), result.details["loss"] >= max(result.details["start_losses"].values())
    (16, True)
    """

    victim: Any = None
    _: KW_ONLY
    X_val: Any = None
    y_val: Any = None
    starts: Sequence[Any] = ("farthest", "alfa", "alfa-tilt")
    n_regions: int = 12
    n_steps: int = 8
    n_draws: int = 4

    name: ClassVar[str] = "adaptive"
    multiclass: ClassVar[bool] = False
    accept_sparse: ClassVar[bool] = False

    def _choose(self, problem: Problem) -> Choice:
        check_whole(self, n_regions=0, n_steps=0, n_draws=2)
        victim = FloralClassifier() if self.victim is None else self.victim
        held_out = problem.held_out(self.X_val, self.y_val)
        games = PlayedGames(victim, problem.X, problem.y, held_out, int(self.n_draws), problem.rng)
        search = _Search(problem, games, 4 + self.n_steps)
        starts = search.starts(self.starts)
        search.tick()
        found = list(search.regions(starts, self.n_regions, held_out))
        for _ in range(2):
            found = search.best(found, max(ELITE, len(found) // 3))
            search.tick()
        for _ in range(self.n_steps):
            found = search.best([*found, *search.children(found)], ELITE)
            search.tick()
        finalists = [*(indices for indices, _ in starts.values()), *found[:ELITE]]
        losses, errors = search.judge(finalists, CHECKS)
        search.tick()
        winner = int(losses.argmax())
        details = {
            "loss": float(losses[winner]),
            "error": float(errors[winner]),
            "start_losses": dict(zip(starts, losses.tolist(), strict=False)),
            "start_errors": dict(zip(starts, errors.tolist(), strict=False)),
            "n_games": games.played,
        }
        indices, worth = finalists[winner], search.worth()
        indices = indices[np.argsort(-worth[indices], kind="stable")]
        return problem.switch(indices, flipped_first(worth, indices), details)


class _Search:
    """Flip sets of one problem: where they come from, and what they did to the victim so far."""

    def __init__(self, problem: Problem, games: PlayedGames, steps: int) -> None:
        self.problem, self.games, self.steps, self.done = problem, games, steps, 0
        # sums over the flip sets played that flip a row: losses and how many
        self.harm = np.zeros(len(problem.y))
        self.tries = np.zeros(len(problem.y))

    def tick(self) -> None:
        self.done += 1
        self.problem.progress(self.done, self.steps)

    def judge(self, sets: Sequence[np.ndarray], repeats: int = 1) -> np.ndarray:
        """Smoothed error and error of the victim under each flip set, (2, sets)."""
        codes = self.problem.y
        found = self.games.judge(flipped(codes, 1 - codes, sets), repeats)
        for rows, loss in zip(sets, found[0], strict=True):
            self.harm[rows] += loss
            self.tries[rows] += 1
        return found

    def best(self, sets: Sequence[np.ndarray], count: int) -> list[np.ndarray]:
        """The `count` flip sets that do most harm, the worst first; equal ones once."""
        sets = list({frozenset(rows.tolist()): rows for rows in sets}.values())
        order = np.argsort(-self.judge(sets)[0], kind="stable")
        return [sets[j] for j in order[:count]]

    def worth(self) -> np.ndarray:
        """Mean loss of the flip sets with each row, (n,)."""
        return self.harm / np.maximum(self.tries, 1)

    def starts(self, starts: Any) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Flipped rows and ranking of each attack to start from, under the constraints of this one."""
        from floral_learn.attacks import named_attacks  # which names this attack, too

        limits, victim = self.problem.constraints, self.games.settings
        several = [starts] if isinstance(starts, str) else starts
        by_name = {start for start in several if isinstance(start, str)}
        named, found = named_attacks(starts), {}
        if not named or any(isinstance(attack, Adaptive) for attack in named.values()):
            raise ValueError(f"starts={starts!r} must hold at least one attack, and not 'adaptive' itself")
        for name, attack in named.items():
            known = {"kernel", "gamma", "degree", "coef0"} & {field.name for field in fields(attack)}
            kernel = {part: getattr(victim, part) for part in known}
            own = replace(
                attack,
                budget=self.problem.flips,
                mask=limits.allowed,
                class_limits=dict(enumerate(limits.limits.tolist())),
                flip_distribution=None,
                random_state=self.problem.rng,
                **(kernel if name in by_name and isinstance(victim.kernel, str) else {}),
            )
            result = own.poison(self.problem.X, self.problem.y)
            found[name] = result.indices, result.scores
        return found

    def regions(
        self, starts: dict[str, tuple[np.ndarray, np.ndarray]], balls: int, aims: tuple[np.ndarray, np.ndarray] | None
    ) -> Iterator[np.ndarray]:
        """Flip sets to begin with: the starts, and regions of every density; around rows to be misread, if any."""
        codes, allowed = self.problem.y, np.flatnonzero(self.problem.constraints.allowed)
        for indices, scores in starts.values():
            yield indices
            # ranks, so that adding n puts all rows of one class first
            places = np.argsort(np.argsort(scores, kind="stable"))
            for ahead in (np.zeros(len(codes)), codes == 0, codes == 1):
                yield from self.thinned(places + len(codes) * ahead)
        for row in self.problem.rng.choice(allowed, balls):
            yield from self.thinned(self.near(self.problem.X[row], codes[row]))
        if aims is not None:
            for aim in self.problem.rng.permutation(len(aims[1]))[:balls]:
                yield from self.thinned(self.near(aims[0][aim], aims[1][aim]))

    def near(self, point: np.ndarray, code: int) -> np.ndarray:
        """Ranking by nearness to a point of class `code`, rows of that class first, (n,)."""
        distance = np.square(self.problem.X - point).sum(axis=1)
        return (self.problem.y == code) * (1 + distance.max()) - distance

    def thinned(self, ranking: np.ndarray) -> Iterator[np.ndarray]:
        """Flip sets from the first rows of a ranking, from all of them to every other one."""
        flips, limits = self.problem.flips, self.problem.constraints
        for density in DENSITIES:
            yield self.some(limits.best(ranking, int(flips / density)))

    def some(self, pool: np.ndarray) -> np.ndarray:
        """As many rows of a pool as may be flipped, at random."""
        key = np.full(len(self.problem.y), -1.0)
        key[pool] = self.problem.rng.random(len(pool))
        return self.problem.constraints.best(key, self.problem.flips)

    def children(self, parents: list[np.ndarray]) -> Iterator[np.ndarray]:
        """Mixtures of two flip sets, and flip sets of which a part has moved to the neighbourhood of the rest."""
        rng, flips, limits = self.problem.rng, self.problem.flips, self.problem.constraints
        for parent in parents[:ELITE]:
            other = parents[rng.integers(len(parents))]
            yield self.some(np.union1d(parent, other))
            stay = rng.permutation(parent)[: flips - max(1, flips // 4)]
            centre = stay[0] if len(stay) else parent[0]
            ranking = self.near(self.problem.X[centre], self.problem.y[centre])
            ranking[np.setdiff1d(parent, stay)] = ranking.min() - 1
            ranking[stay] = ranking.max() + 1
            yield limits.best(ranking, flips)


class PlayedGames:
    """The victim's game on rows `X` (n, d) of two classes, for any labels.

    Held-out rows are those of `held_out` or, without any, the training rows: each draw leaves out one part of them and
    is judged there. The kernel matrix and the step do not depend on labels and are made once; labellings and draws are
    columns of one game.
    """

    def __init__(
        self,
        victim: Any,
        X: np.ndarray,
        codes: np.ndarray,
        held_out: tuple[np.ndarray, np.ndarray] | None,
        draws: int,
        rng: np.random.Generator,
    ) -> None:
        self.settings = _settings(victim)
        self.codes, self.draws, self.rng = codes, draws, rng
        seeds = rng.integers(2**62, size=2)  # as in the victim's fit: of the game and of the landmarks
        data = victim._read(self.settings, X, codes)
        self.problem = make_problem(self.settings, data, None, None, seeds)
        self.gram, self.backend = self.problem.gram, self.problem.gram.backend
        self.truth = 2.0 * (codes if held_out is None else held_out[1]) - 1
        self.cross: np.ndarray | None = None  # kernel values between held-out and training rows, (m, n)
        if held_out is not None:
            kernel = self.problem.kernel
            unseen = kernel.prepare(held_out[0], NUMPY, "float64")
            self.cross = kernel(unseen, kernel.prepare(X, NUMPY, "float64"), NUMPY)
        self.played = 0

    def judge(self, labellings: np.ndarray, repeats: int = 1) -> np.ndarray:
        """Smoothed error and error on held-out rows, (2, labellings), of each column of labels (n, labellings).

        Both are means over `repeats` times `draws` games with new seeds (and new parts left out), the same for all
        labellings, so that differences between these have little noise.
        """
        totals = np.zeros((2, labellings.shape[1]))
        at_once = max(1, COLUMNS // self.draws)
        for _ in range(repeats):
            seeds, parts = self.rng.integers(2**62, size=self.draws), self._parts()
            for start in range(0, labellings.shape[1], at_once):
                some = slice(start, start + at_once)
                totals[:, some] += self._play(labellings[:, some], seeds, parts)
        return totals / repeats

    def _parts(self) -> np.ndarray:
        """Which draw leaves out each row, (n,): equal shares of each class."""
        parts = np.empty(len(self.codes), dtype=np.intp)
        for code in range(2):
            mine = np.flatnonzero(self.codes == code)
            parts[self.rng.permutation(mine)] = np.arange(len(mine)) % self.draws
        return parts

    def _play(self, labels: np.ndarray, seeds: np.ndarray, parts: np.ndarray) -> np.ndarray:
        # one column of the game for each labelling and seed
        columns, games = np.repeat(labels, len(seeds), axis=1), labels.shape[1]
        out = np.zeros(columns.shape, dtype=bool)
        if self.cross is None:
            out = np.tile(parts[:, None] == np.arange(len(seeds)), games)
        attackers = [self._attacker(labels[:, j]) for j in range(games) for _ in seeds]
        game = replace(
            self.problem.game,
            labels=columns,
            cap=np.where(out, 0.0, self.settings.C),
            seeds=np.tile(seeds, games),
            steps=self.problem.game.steps[:, :1],
            attacker=_side_by_side(attackers),
            keep_flips=False,
        )
        result = play_problem(replace(self.problem, game=game))
        self.played += columns.shape[1]
        # what the victim predicts with: the averaged model, or the last one
        averaged = self.settings.average and not self.problem.solved
        weights, bias = (result.mean_weights, result.mean_bias) if averaged else (result.weights, result.bias)
        # Where one class is left there is nothing to learn: the model is that class.
        most = np.where(out, 0, columns).max(axis=0)
        one_class = most == np.where(out, 1, columns).min(axis=0)
        weights, bias = np.where(one_class, 0.0, weights), np.where(one_class, 2.0 * most - 1, bias)
        if self.cross is None:
            scores = self.backend.numpy(self.gram.matmat(self.backend.columns(weights))) + bias
            scores = np.where(out, scores, 0.0).reshape(len(labels), games, -1).sum(axis=2)
        else:
            scores = self.cross @ weights + bias
        margins = self.truth[:, None] * scores
        found = np.stack([expit(-SHARPNESS * margins).mean(axis=0), (margins <= 0).mean(axis=0)])
        return found.reshape(2, games, -1).mean(axis=2)

    def _attacker(self, labels: np.ndarray) -> Any:
        return resolve_budget(self.settings, labels, np.arange(2)).attacker


def _settings(victim: Any) -> Settings:
    if not isinstance(victim, GameClassifier):
        raise ValueError(
            f"victim={victim!r} must be a FloralClassifier; for other classifiers use attack 'lfa' with surrogate=..."
        )
    settings = victim._settings()
    if settings.kernel == "precomputed" or settings.class_weight is not None:
        raise ValueError("victim must have a kernel that is computed from rows, and class_weight=None")
    return settings


def _side_by_side(attackers: list[Any]) -> Any:
    """One attacker that plays each game's own; they differ in how many points they take."""
    if all(isinstance(attacker, NoAttack) for attacker in attackers):
        return attackers[0]
    flips = np.array([attacker.flips for attacker in attackers])
    if any(getattr(attacker, "class_budget", None) is not None for attacker in attackers):
        budgets = [np.zeros(2, int) if isinstance(a, NoAttack) else np.asarray(a.class_budget) for a in attackers]
        return RandomizedTopK(0, flips, class_budget=np.array(budgets))
    points = [0 if isinstance(a, NoAttack) else int(np.max(a.budget)) for a in attackers]
    return RandomizedTopK(np.array(points)[:, None], flips)
