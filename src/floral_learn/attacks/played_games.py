"""What a FLORAL victim makes of many labellings of the same rows: its own game, played for each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit

from floral_learn.floral.budgets import resolve_budget
from floral_learn.floral.classifier import GameClassifier
from floral_learn.floral.fitting import make_problem, play_problem
from floral_learn.floral.inputs import read_training
from floral_learn.game.arrays import NUMPY
from floral_learn.game.attackers import NoAttack, RandomizedTopK

COLUMNS = 32  # games played at once: beyond that, wider products no longer save time
SHARPNESS = 8.0  # of the smoothed error; margins of FLORAL are of the order of 1


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
        _check(victim)
        self.codes, self.draws, self.rng = codes, draws, rng
        seeds = rng.integers(2**62, size=2)  # as in the victim's fit: of the game and of the landmarks
        self.settings = victim._settings()
        self.problem = make_problem(self.settings, read_training(victim, self.settings, X, codes), None, None, seeds)
        self.gram, self.backend = self.problem.gram, self.problem.gram.backend
        self.truth = 2.0 * (codes if held_out is None else held_out[1]) - 1
        self.cross: np.ndarray | None = None  # kernel values between held-out and training rows, (m, n)
        if held_out is not None:
            kernel = self.problem.kernel
            unseen, seen = (kernel.prepare(rows, NUMPY, "float64") for rows in (held_out[0], X))
            self.cross = kernel(unseen, seen, NUMPY)
        self.played = 0

    def judge(self, labellings: Sequence[np.ndarray], repeats: int = 1) -> np.ndarray:
        """Smoothed error and error of each labelling (n,) on held-out rows with their right labels, (2, labellings).

        Both are means over `repeats` times `draws` games with new seeds (and new parts left out), the same for all
        labellings, so that differences between these have little noise.
        """
        totals = np.zeros((2, len(labellings)))
        at_once = max(1, COLUMNS // self.draws)
        for _ in range(repeats):
            seeds, parts = self.rng.integers(2**62, size=self.draws), self._parts()
            for start in range(0, len(labellings), at_once):
                some = np.stack(labellings[start : start + at_once], axis=1)
                totals[:, start : start + at_once] += self._play(some, seeds, parts)
        return totals / repeats

    def _parts(self) -> np.ndarray:
        """Which draw leaves out each row, (n,): equal shares of each class."""
        parts = np.empty(len(self.codes), dtype=np.intp)
        for code in range(2):
            mine = np.flatnonzero(self.codes == code)
            parts[self.rng.permutation(mine)] = np.arange(len(mine)) % self.draws
        return parts

    def _play(self, labels: np.ndarray, seeds: np.ndarray, parts: np.ndarray) -> np.ndarray:
        columns, games = np.repeat(labels, len(seeds), axis=1), labels.shape[1]
        out = np.zeros(columns.shape, dtype=bool)
        if self.cross is None:
            out = np.tile(parts[:, None] == np.arange(len(seeds)), games)
        game = replace(
            self.problem.game,
            labels=columns,
            cap=np.where(out, 0.0, self.settings.C),
            seeds=np.tile(seeds, games),
            steps=self.problem.game.steps[:, :1],
            attacker=_side_by_side([self._attacker(labels[:, j]) for j in range(games) for _ in seeds]),
            keep_flips=False,
        )
        result = play_problem(replace(self.problem, game=game))
        self.played += columns.shape[1]
        averaged = self.settings.average and not self.problem.solved
        weights, bias = (result.mean_weights, result.mean_bias) if averaged else (result.weights, result.bias)
        # Where one class is left there is nothing to learn: the model is that class.
        most, least = np.where(out, 0, columns).max(axis=0), np.where(out, 1, columns).min(axis=0)
        weights, bias = np.where(most == least, 0.0, weights), np.where(most == least, 2.0 * most - 1, bias)
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


def _check(victim: Any) -> None:
    if not isinstance(victim, GameClassifier):
        raise ValueError(
            f"victim={victim!r} must be a FloralClassifier; for other classifiers use attack 'lfa' with surrogate=..."
        )
    if victim.kernel == "precomputed" or victim.class_weight is not None:
        raise ValueError("victim must have a kernel that is computed from rows, and class_weight=None")


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
