"""The in-loop attackers: who is chosen, how often, and what they become."""

import numpy as np
import pytest

from floral_learn.game import NUMPY, LargestLoss, NoAttack, RandomizedTopK
from floral_learn.game.arrays import draw
from floral_learn.game.attackers import View

N = 40


def view(dual, backend=NUMPY, labels=None, n_classes=2, games=1, eligible=None, scores=None, seed=5):
    dual = backend.columns(np.asarray(dual, float))
    labels = np.zeros((len(dual), games), dtype=np.int64) if labels is None else labels
    made = View(
        backend.columns(labels),
        n_classes,
        dual.shape[1],
        np.full(games, seed),
        400,
        backend,
        None if eligible is None else backend.columns(eligible),
    )
    made.dual, made.scores = dual, None if scores is None else backend.columns(scores)
    return made


def flip(attacker, seen, number):
    return attacker(seen, number, attacker.prepare(seen))


def chosen(flips, backend=NUMPY, game=0):
    points = backend.numpy(flips.points)[:, game]
    return sorted(points[points >= 0])


def test_top_k_are_the_largest_duals(backend):
    dual = np.random.default_rng(0).permutation(np.arange(1.0, N + 1))
    flips = flip(RandomizedTopK(7, 7), view(dual, backend), 1)
    assert chosen(flips, backend) == sorted(np.argsort(-dual)[:7])
    assert (backend.numpy(flips.labels) == 1).all()


def test_randomized_top_k_draws_k_of_the_b_largest_uniformly(backend):
    dual = np.random.default_rng(0).permutation(np.arange(1.0, N + 1))
    top = np.argsort(-dual)[:10]
    counts = np.zeros(N)
    rounds = 400
    for counter in range(1, rounds + 1):
        points = chosen(flip(RandomizedTopK(10, 4), view(dual, backend), counter), backend)
        assert len(points) == len(set(points)) == 4
        counts[points] += 1
    assert set(np.flatnonzero(counts)) == set(top)
    expected = rounds * 0.4
    assert (np.abs(counts[top] - expected) < 5 * np.sqrt(rounds * 0.4 * 0.6)).all()


def test_only_positive_duals_count():
    dual = np.zeros(N)
    dual[:3] = 1.0
    assert chosen(flip(RandomizedTopK(10, 5), view(dual), 1)) == [0, 1, 2]
    assert chosen(flip(RandomizedTopK(10, 5), view(np.zeros(N)), 1)) == []


def test_ties_break_by_one_order_on_every_backend(backend):
    flips = flip(RandomizedTopK(5, 5), view(np.ones(N), backend), 1)
    again = flip(
        RandomizedTopK(5, 5), view(np.ones(N), NUMPY), 9
    )  # another round: the order among ties is drawn once a fit
    assert chosen(flips, backend) == chosen(again)
    other = flip(RandomizedTopK(5, 5), view(np.ones(N), NUMPY, seed=6), 1)
    assert chosen(other) != chosen(again)


def test_duals_that_differ_by_rounding_are_ties():
    for rounding in (1e-14, 1e-6):  # of float64 and of float32
        noisy = 1 + np.random.default_rng(0).normal(size=N) * rounding
        assert chosen(flip(RandomizedTopK(5, 5), view(noisy), 1)) == chosen(
            flip(RandomizedTopK(5, 5), view(np.ones(N)), 1)
        )
    apart = 1 + np.arange(N) * 1e-3
    assert chosen(flip(RandomizedTopK(5, 5), view(apart), 1)) == list(range(N - 5, N))


def test_rows_that_are_not_eligible_are_never_flipped(backend):
    eligible = np.arange(N)[:, None] % 2 == 0
    for counter in range(1, 20):
        points = chosen(
            flip(RandomizedTopK(20, 10), view(np.arange(1.0, N + 1), backend, eligible=eligible), counter), backend
        )
        assert points
        assert all(p % 2 == 0 for p in points)


def test_a_batch_draws_what_each_game_draws_alone():
    rng = np.random.default_rng(0)
    dual = rng.uniform(size=(N, 3))
    batch = view(dual, games=3)
    flips = flip(RandomizedTopK(np.array([[10], [20], [6]]), np.array([4, 7, 3])), batch, 2)
    for game, (budget, k) in enumerate([(10, 4), (20, 7), (6, 3)]):
        alone = flip(RandomizedTopK(budget, k), view(dual[:, game]), 2)
        assert chosen(flips, game=game) == chosen(alone)


def test_multi_class_draws_from_the_union_of_each_columns_top(backend):
    rng = np.random.default_rng(1)
    dual = rng.uniform(0.1, 1, size=(N, 3))
    labels = rng.integers(0, 3, size=(N, 1))
    union = set(np.concatenate([np.argsort(-dual[:, m])[:b] for m, b in enumerate([3, 5, 2])]))
    seen = set()
    for counter in range(1, 120):
        flips = flip(RandomizedTopK(np.array([[3, 5, 2]]), 4), view(dual, backend, labels, n_classes=3), counter)
        points = chosen(flips, backend)
        assert len(points) == len(set(points)) == 4
        seen |= set(points)
        old = labels[backend.numpy(flips.points)[:, 0], 0]
        assert (backend.numpy(flips.labels)[:, 0] != old).all()  # uniform over the OTHER classes
    assert seen == union


def test_flip_distribution_is_followed():
    labels = np.tile([0, 1, 2], N)[:N, None]
    q = np.array([[0, 1, 0], [0.25, 0, 0.75], [0.5, 0.5, 0]])
    counts = np.zeros((3, 3))
    for counter in range(1, 400):
        flips = flip(RandomizedTopK(N, N, q), view(np.ones((N, 3)), labels=labels, n_classes=3), counter)
        np.add.at(counts, (labels[flips.points[:, 0], 0], flips.labels[:, 0]), 1)
    np.testing.assert_allclose(counts / counts.sum(axis=1, keepdims=True), q, atol=0.03)


def test_largest_loss_takes_the_points_farthest_on_their_own_side(backend):
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(N, 1))
    labels = (rng.uniform(size=(N, 1)) < 0.5).astype(np.int64)
    flips = flip(LargestLoss(6), view(np.zeros(N), backend, labels, scores=scores), 1)
    margin = scores[:, 0] * (2 * labels[:, 0] - 1)
    assert chosen(flips, backend) == sorted(np.argsort(-margin)[:6])


def test_no_attack_flips_nothing(backend):
    assert len(flip(NoAttack(), view(np.ones(N), backend), 1).points) == 0
    assert len(flip(RandomizedTopK(0, 0), view(np.ones(N), backend), 1).points) == 0


def test_draws_are_the_same_everywhere_and_look_uniform(backend):
    rows = np.arange(20_000)
    here = np.asarray(draw(np.array([7]), 3, rows))
    there = backend.numpy(draw(backend.array(np.array([7])), 3, backend.array(rows)))
    assert (here == there).all()
    u = here / 2.0**63
    assert (u >= 0).all()
    assert (u < 1).all()
    assert u.mean() == pytest.approx(0.5, abs=0.01)
    histogram = np.histogram(u, bins=20, range=(0, 1))[0]
    assert ((histogram - 1000) ** 2 / 1000).sum() < 60  # chi-square, 19 degrees of freedom
    assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < 0.03
    assert abs(np.corrcoef(u, np.asarray(draw(np.array([8]), 3, rows)) / 2.0**63)[0, 1]) < 0.03


def test_the_largest_keys_of_each_column_by_its_own_count(backend):
    keys = np.random.default_rng(0).permutation(40)[:, None] * np.array([1, 1, 1, 1])
    keys[:35, 2] = -1
    counts = np.array([0, 7, 20, 20])
    keys = np.where(keys < 0, -1 - np.arange(40)[:, None], keys)
    found = backend.numpy(backend.largest(backend.columns(keys), counts, 4))
    assert found.shape == (20, 4)
    for j, count in enumerate(counts):
        named = set(found[:, j]) - {-1}
        allowed = np.flatnonzero(keys[:, j] >= 0)
        assert named == set(allowed[np.argsort(-keys[allowed, j])][:count])


def test_a_view_of_many_rounds_chooses_as_fresh_ones_do():
    """What a view keeps from round to round must not change the choice; nor must a warm-up that came before."""
    rng, kept = np.random.default_rng(1), None
    labels = rng.integers(0, 2, size=(N, 1))
    attacker = RandomizedTopK(0, 5, class_budget=np.array([6, 4]))
    for counter in range(1, 90):
        dual = rng.random(N) * (rng.random(N) < 0.7)
        fresh = view(dual, labels=labels)
        kept = view(dual, labels=labels) if kept is None else kept
        kept.dual = fresh.dual
        assert not len(flip(NoAttack(), kept, counter).points)
        assert (flip(attacker, kept, counter).points == flip(attacker, fresh, counter).points).all()
