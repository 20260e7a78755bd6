"""The attack on FLORAL itself: it plays the victim's game, never ends below its starts, hurts a fresh victim."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from floral_learn import FloralClassifier
from floral_learn.attacks import Adaptive, Farthest, poison
from floral_learn.attacks.adaptive import PlayedGames
from floral_learn.paper import PaperFloralClassifier

VICTIM = FloralClassifier(budget=0.1, gamma=1.0, n_rounds=24, tol=None)
QUICK = {"victim": VICTIM, "n_regions": 3, "n_steps": 2, "n_draws": 2}


@pytest.fixture(scope="module")
def moons():
    return make_moons(120, noise=0.15, random_state=0)


def games_of(victim, X, y, held_out=None, draws=2):
    return PlayedGames(victim, X, y, held_out, draws, np.random.default_rng(0))


PLAYED = {"gamma": 1.0, "n_rounds": 60}
VICTIMS = {
    "default": FloralClassifier(budget=0.2, tol=None, **PLAYED),
    "paper": PaperFloralClassifier(budget=0.2, learning_rate="auto", average=True, projection="exact", **PLAYED),
    "off": FloralClassifier(budget=0.0, tol=None, **PLAYED),
    "linear": FloralClassifier(budget=0.2, tol=None, **PLAYED | {"kernel": "linear"}),
}


@pytest.mark.parametrize("victim", VICTIMS.values(), ids=list(VICTIMS))
def test_the_games_are_those_that_the_victim_plays(moons, victim):
    """With given rows to judge by, a labelling has the error of the classifier fitted on it, over many seeds."""
    X, y = moons
    unseen, truth = make_moons(300, noise=0.15, random_state=1)
    bad = Farthest(budget=0.2).poison(X, y).y
    _, errors = games_of(victim, X, y, (unseen, truth), draws=8).judge(np.stack([y, bad], axis=1))
    fits = [
        [1 - clone(victim).set_params(random_state=s).fit(X, labels).score(unseen, truth)
         for s in range(6)]
        for labels in (y, bad)
    ]  # fmt: skip
    np.testing.assert_allclose(errors, np.mean(fits, axis=1), atol=0.02)


def test_labellings_do_not_disturb_each_other(moons):
    X, y = moons
    bad = Farthest(budget=0.2).poison(X, y).y
    together = games_of(VICTIM, X, y).judge(np.stack([y, bad, y], axis=1))
    np.testing.assert_allclose(together[:, 0], together[:, 2], rtol=1e-9)
    np.testing.assert_allclose(games_of(VICTIM, X, y).judge(bad[:, None])[:, 0], together[:, 1], rtol=1e-9)


def test_one_class_left_is_that_class_everywhere(moons):
    X, y = moons
    np.testing.assert_allclose(games_of(VICTIM, X, y).judge(np.zeros_like(y)[:, None])[1], [y.mean()])


@pytest.mark.parametrize("seed", range(3))
def test_the_result_is_never_weaker_than_a_start_in_the_last_comparison(moons, seed):
    result = Adaptive(**QUICK, budget=0.2, random_state=seed).poison(*moons)
    assert set(result.details["start_losses"]) == {"farthest", "alfa", "alfa-tilt"}
    assert result.details["loss"] >= max(result.details["start_losses"].values())
    assert result.details["n_games"] > 100


def test_a_weak_start_is_left_behind_and_a_fresh_victim_is_hurt(moons):
    X, y = moons
    unseen, truth = make_moons(500, noise=0.15, random_state=1)
    starts = ["near-boundary"]
    found = Adaptive(**QUICK | {"n_regions": 8}, budget=0.2, starts=starts, random_state=0).poison(X, y)
    weak = poison(X, y, attack="random", budget=0.2, random_state=0)
    victim = FloralClassifier(budget=0.1, gamma=1.0, random_state=99)
    drop = found.effect_on(victim, X, unseen, truth).after, weak.effect_on(victim, X, unseen, truth).after
    assert drop[0] < drop[1] - 0.1


def test_given_rows_make_it_a_targeted_attack(moons):
    X, y = moons
    ends = np.flatnonzero(y == 1)
    aims = ends[np.argsort(-X[ends, 0])[:4]]  # the end of one moon
    assert (clone(VICTIM).fit(X, y).predict(X[aims]) == 1).all()
    found = Adaptive(**QUICK, budget=0.15, X_val=X[aims], y_val=y[aims], random_state=0).poison(X, y)
    assert found.details["error"] == 1.0
    assert (clone(VICTIM).fit(X, found.y).predict(X[aims]) == 0).all()


def test_a_target_class_loses_its_labels_only(moons):
    X, y = moons
    found = poison(
        X, np.where(y == 1, "spam", "ham"), attack="adaptive", budget=10, random_state=0, target="spam", **QUICK
    )
    assert (y[found.indices] == 1).all()
    assert len(found.indices) == 10


def test_the_given_victim_stays_unfitted(moons):
    victim = FloralClassifier(n_rounds=8, tol=None)
    Adaptive(victim, budget=5, n_regions=1, n_steps=0, starts="farthest", random_state=0).poison(*moons)
    assert not hasattr(victim, "model_")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"victim": SVC()}, r"victim=SVC\(\) must be a FloralClassifier"),
        ({"victim": FloralClassifier(kernel="precomputed")}, "kernel that is computed from rows"),
        ({"victim": FloralClassifier(class_weight="balanced")}, "class_weight=None"),
        ({"n_draws": 1}, "n_draws=1 must be a whole number of at least 2"),
        ({"n_steps": 2.5}, "n_steps=2.5 must be a whole number of at least 0"),
        ({"n_regions": -1}, "n_regions=-1"),
        ({"starts": ["nowhere"]}, "attack='nowhere' is unknown"),
        ({"starts": []}, r"starts=\[\] must hold at least one attack"),
        ({"starts": ["adaptive"]}, "and not 'adaptive' itself"),
        ({"X_val": [[0.0, 0.0]]}, "X_val and y_val must be given together"),
        ({"X_val": [[0.0]], "y_val": [0]}, "do not fit X with 2 columns"),
        ({"X_val": [[0.0, 0.0]], "y_val": [7]}, "labels that y has not"),
    ],
)
def test_wrong_settings_are_refused(moons, wrong, message):
    with pytest.raises(ValueError, match=message):
        Adaptive(**QUICK | wrong, budget=5).poison(*moons)
