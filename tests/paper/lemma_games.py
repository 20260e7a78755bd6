"""Check the lemmas' bounds in every round of many random games: how often they fail, and by how much.

Rows are plain dicts, one per game, so that a suite can store them and a table can show them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from floral_learn.game import DenseGram, Game, GameState, solve
from floral_learn.game.attackers import Attacker, Flips, View
from floral_learn.paper import constants, find_equilibrium
from floral_learn.paper.theory import (
    kappa_prime_y,
    kappa_prime_y_worst,
    kappa_y_printed,
    kappa_y_proven,
    kappa_z,
    multiplier,
    projected,
)

# Each bound's name and what it says; "printed" ones are the paper's, "proven" ones hold (see constants.py).
BOUNDS = {
    "lemma 1 printed": "||lam_t - lh|| <= ||z_t - zh|| + (C/|I_z| + |mu|) ||y_t - yh||",
    "lemma 1 proven": "||lam_t - lh|| <= (2 - 2/n) ||z_t - zh|| + (|mu| + |mu^|)/2 ||y_t - yh||",
    "lemma 2 printed": "||z_t - zh|| <= kappa_lambda ||lam_{t-1} - lh|| + kappa'_y ||y_t - yh||",
    "lemma 2 worst case": "the same with the largest kappa'_y over all labels",
    "round proven": "||lam_t - lh|| <= kappa_z (kappa_lambda ||lam_{t-1} - lh|| + kappa'_y d) + kappa_y d",
    "euclidean": "y_t = yh: ||lam_t - lh||_2 <= ||I - eta Q||_2 ||lam_{t-1} - lh||_2",
}


def check_game(
    K: np.ndarray,
    given: np.ndarray,
    *,
    C: float,
    k: int,
    eta: float,
    rounds: int,
    budget: int | None = None,
    start: np.ndarray | None = None,
    rng: np.random.Generator,
) -> dict[str, Any] | None:
    """Play one game and hold each round against every bound; None where the game has no equilibrium to compare with.

    K (n, n), labels `given` (n,) of -1 and +1, k flips and a step eta per round. With `budget` B > k it is the
    randomised attacker of Algorithm 1, else the top-k attacker of the analysis; `start` is lam_0, zeros by default. The
    row has ``checked``, ``violated`` and ``worst`` (left side over right side) for each name in `BOUNDS`.

    Examples
    --------
    >>> import numpy as np
    >>> from lemma_games import check_game
    >>> y, rng = np.array([1.0, 1, -1, -1]), np.random.default_rng(0)
    >>> row = check_game(np.eye(4), y, C=1.0, k=0, eta=0.5, rounds=5, rng=rng)
    >>> row["lemma 1 proven: checked"], row["lemma 1 proven: violated"]
    (5, 0)
    """
    n = len(K)
    rest = find_equilibrium(K, given, C, k)
    if not rest.exists:
        return None
    hat, hat_signs = rest.dual, rest.signs
    z_hat = hat - eta * (hat_signs * (K @ (hat_signs * hat)) - 1)
    known = constants(K, eta)
    tally = {name: [0, 0, 0.0] for name in BOUNDS}
    # libsvm's solution is exact to about 1e-9 C; what that can move must not count as a violation.
    slack = 1e-6 * max(C, 1.0) + 10 * rest.residual

    def hold(name: str, left: float, right: float) -> None:
        entry = tally[name]
        entry[0] += 1
        entry[1] += bool(left > right + slack)
        if left > slack:
            entry[2] = max(entry[2], left / max(right, 1e-300))

    labels, attacker = (given > 0).astype(int), _Flipper(k, budget, rng)
    game = Game(DenseGram(K), labels, np.full(n, C), np.full(rounds, eta), attacker, warm_up=0)
    after = np.zeros(n) if start is None else start

    def check(state: GameState) -> None:
        nonlocal after
        before, after = after, state.dual[:, 0]
        signs = state.signs[:, 0]
        z = before - eta * (signs * (K @ (signs * before)) - 1)
        d = float(np.abs(signs - hat_signs).max())
        far, far_z, far_before = (float(np.abs(a).max()) for a in (after - hat, z - z_hat, before - hat))
        prime = kappa_prime_y(K, hat, (signs + hat_signs) / 2, eta)
        worst = kappa_prime_y_worst(K, hat, eta)
        proven = kappa_y_proven(z, signs, hat_signs, C)
        hold("lemma 1 printed", far, far_z + kappa_y_printed(C, after, multiplier(z, signs, C)) * d)
        hold("lemma 1 proven", far, kappa_z(n) * far_z + proven * d)
        hold("lemma 2 printed", far_z, known.kappa_infinity * far_before + prime * d)
        hold("lemma 2 worst case", far_z, known.kappa_infinity * far_before + worst * d)
        hold("round proven", far, kappa_z(n) * (known.kappa_infinity * far_before + prime * d) + proven * d)
        if d == 0:
            hold(
                "euclidean",
                float(np.linalg.norm(after - hat)),
                known.kappa_spectral * float(np.linalg.norm(before - hat)),
            )

    solve(game, check, start)
    row: dict[str, Any] = {
        "kappa infinity": known.kappa_infinity,
        "kappa spectral": known.kappa_spectral,
        "gap": rest.gap,
        "last distance": float(np.abs(after - hat).max()),
    }
    for name, (checked, violated, ratio) in tally.items():
        row[f"{name}: checked"], row[f"{name}: violated"], row[f"{name}: worst"] = checked, violated, ratio
    return row


def stability(n_games: int = 300, rounds: int = 60, random_state: int = 0) -> list[dict[str, Any]]:
    """Check random games and return one row each; games without an equilibrium have ``found = False``.

    Games differ in size (10 to 60 rows), noise, kernel width, C, step size, k, attacker (top-k, or randomised with
    B = 2k) and starting point (zero, or near the equilibrium).
    """
    rng = np.random.default_rng(random_state)
    rows = []
    for number in range(n_games):
        n = int(rng.integers(10, 61))
        X = rng.normal(size=(n, int(rng.integers(1, 6))))
        given = np.where(X[:, 0] + rng.normal(scale=rng.uniform(0, 1), size=n) > 0, 1.0, -1.0)
        if abs(given.sum()) == n:
            given[0] *= -1
        gamma = float(10 ** rng.uniform(-1.5, 1.5))
        K = np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(-1))
        C = float(10 ** rng.uniform(-1, 1.5))
        k = int(rng.integers(0, max(1, n // 5) + 1))
        randomised = bool(rng.random() < 0.5 and k > 0)
        eta = float(rng.uniform(0.05, 1.9) / np.linalg.eigvalsh(K)[-1])
        start = projected(rng.uniform(0, C, size=n), given, C) if rng.random() < 0.5 else None
        settings = {"n": n, "gamma": gamma, "C": C, "k": k, "eta": eta, "randomised": randomised}
        found = check_game(
            K, given, C=C, k=k, eta=eta, rounds=rounds, budget=2 * k if randomised else None, start=start, rng=rng
        )
        rows.append({"game": number, **settings, "found": found is not None, **(found or {})})
    return rows


def summarise(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row a bound: rounds checked, rounds and games violated, the worst ratio of left to right side.

    Examples
    --------
    >>> from lemma_games import stability, summarise
    >>> [row["violated"] for row in summarise(stability(n_games=10, rounds=10)) if row["bound"] == "lemma 1 proven"]
    [0]
    """
    found = [row for row in rows if row["found"]]
    out = []
    for name, text in BOUNDS.items():
        checked = sum(row[f"{name}: checked"] for row in found)
        violated = sum(row[f"{name}: violated"] for row in found)
        games = sum(row[f"{name}: violated"] > 0 for row in found)
        worst = max((row[f"{name}: worst"] for row in found), default=0.0)
        out.append(
            {"bound": name, "says": text, "rounds": checked, "violated": violated, "games": games, "worst": worst}
        )
    return out


@dataclass(frozen=True)
class _Flipper(Attacker):
    """Top-k, or k at random of the `budget` largest duals, ties by row: what the paper's analysis is about."""

    k: int
    budget: int | None
    rng: np.random.Generator

    def __call__(self, view: View, number: int, prepared: Any) -> Flips:
        """The flips of a round."""
        dual = view.dual[:, 0]
        candidates = np.argsort(-dual, kind="stable")[: self.k if self.budget is None else self.budget]
        candidates = candidates[dual[candidates] > 0]
        if self.budget is not None:
            candidates = self.rng.permutation(candidates)[: self.k]
        points = candidates[:, None]
        return Flips(points, 1 - view.labels[points[:, 0]])
