"""What holds for every attack in ATTACKS, without naming any: a new attack is tested by adding it there."""

import dataclasses

import numpy as np
import pytest
from refusals import refuses
from sklearn.datasets import make_blobs, make_moons
from sklearn.svm import SVC

from floral_learn import FloralClassifier
from floral_learn.attacks import ATTACKS, poison

N = 60
FAST = {
    "alfa": {"n_init": 2},
    "alfa-tilt": {"n_restarts": 4},
    "lfa": {"n_check": 3, "n_first": 10},
    "adaptive": {
        "victim": FloralClassifier(n_rounds=8, tol=None),
        "starts": ["farthest"],
        "n_regions": 1,
        "n_steps": 1,
        "n_draws": 2,
    },
}
every_attack = pytest.mark.parametrize("name", ATTACKS)


@pytest.fixture(scope="module")
def two_classes():
    X, y = make_moons(N, noise=0.25, random_state=0)
    return X, np.where(y == 1, 1, -1)


@pytest.fixture(scope="module")
def three_classes():
    return make_blobs(N, centers=3, cluster_std=2.0, random_state=0)


def attack(name, X, y, budget=0.2, random_state=0, **params):
    return poison(X, y, attack=name, budget=budget, random_state=random_state, **FAST.get(name, {}), **params)


@every_attack
@pytest.mark.parametrize(("budget", "flips"), [(0, 0), (1, 1), (7, 7), (0.1, 6), (0.29, 17), (0.0, 0), (0.5, 30)])
def test_the_budget_is_met_exactly(name, two_classes, budget, flips):
    X, y = two_classes
    result = attack(name, X, y, budget=budget)
    assert result.stopped_early is None
    assert result.budget == flips
    assert len(result.indices) == len(set(result.indices.tolist())) == flips
    np.testing.assert_array_equal(np.sort(result.indices), np.flatnonzero(result.y != y))
    np.testing.assert_array_equal(np.flatnonzero(result.mask), np.sort(result.indices))


@every_attack
def test_inputs_are_never_modified(name, two_classes):
    X, y = (array.copy() for array in two_classes)
    X.flags.writeable = y.flags.writeable = False
    result = attack(name, X, y)
    np.testing.assert_array_equal(X, two_classes[0])
    np.testing.assert_array_equal(y, two_classes[1])
    assert not np.shares_memory(result.y, y)


@every_attack
def test_a_seed_repeats_and_scores_rank_all_rows(name, two_classes):
    X, y = two_classes
    first, again = attack(name, X, y, random_state=3), attack(name, X, y, random_state=3)
    np.testing.assert_array_equal(first.y, again.y)
    np.testing.assert_array_equal(first.indices, again.indices)
    np.testing.assert_array_equal(first.scores, again.scores)
    assert first.scores.shape == (N,)
    assert np.isfinite(first.scores).all()
    if name != "randomized-top-k":  # draws its flips from the best rows instead of taking the best
        left = np.setdiff1d(np.arange(N), first.indices)
        assert first.scores[first.indices].min() >= first.scores[left].max()


@every_attack
@pytest.mark.parametrize(
    "labels",
    [
        lambda y: np.where(y == 1, "spam", "ham"),
        lambda y: np.where(y == 1, "spam", "ham").astype(object),
        lambda y: y == 1,
        lambda y: y.astype(np.int8) + 40,
        lambda y: y.astype(float),
        lambda y: y.tolist(),
    ],
    ids=["str", "object", "bool", "int8", "float", "list"],
)
def test_any_labels_give_the_same_flips_and_keep_their_type(name, two_classes, labels):
    X, y = two_classes
    given = labels(y)
    if np.asarray(given).dtype.kind in "UO":  # 'ham' < 'spam' and -1 < 1: the same order of classes
        assert sorted(set(np.asarray(given).tolist())) == ["ham", "spam"]
    result, expected = attack(name, X, given), attack(name, X, y)
    np.testing.assert_array_equal(result.indices, expected.indices)
    assert result.y.dtype == np.asarray(given).dtype
    assert set(result.y.tolist()) <= set(np.asarray(given).tolist())


@every_attack
@pytest.mark.parametrize("as_rows", [False, True])
def test_only_rows_of_the_mask_are_flipped(name, two_classes, as_rows):
    X, y = two_classes
    mask = np.zeros(N, bool)
    mask[5:25] = True
    result = attack(name, X, y, budget=8, mask=np.flatnonzero(mask) if as_rows else mask)
    assert len(result.indices) == 8
    assert mask[result.indices].all()


@every_attack
def test_class_limits_are_kept_and_the_budget_still_met(name, two_classes):
    X, y = two_classes
    result = attack(name, X, y, budget=20, class_limits={1: 3, -1: 0.9})
    assert len(result.indices) == 20
    assert (y[result.indices] == 1).sum() <= 3


@every_attack
def test_impossible_wishes_are_refused_before_any_work(name, two_classes):
    X, y = two_classes
    refuses(r"asks for 12 flips of 60 rows, but .* leave at most 5", attack, name, X, y, mask=np.arange(5))
    refuses("leave at most 4", attack, name, X, y, class_limits={1: 2, -1: 2})
    refuses("must be between 0 and the number of rows, 60", attack, name, X, y, budget=61)
    for wrong in (1.5, -0.1, True, "half", None, float("nan")):
        refuses("budget=", attack, name, X, y, budget=wrong)
    refuses("class_limits names 7", attack, name, X, y, class_limits={7: 1})
    refuses("mask must be 60 booleans or row numbers", attack, name, X, y, mask=[True, False])
    refuses("has no parameter colour", attack, name, X, y, colour="red", error=TypeError)


@every_attack
def test_bad_data_are_refused(name, two_classes):
    X, y = two_classes
    refuses("X has 59 rows, y has 60 labels", attack, name, X[1:], y)
    refuses("at least 2 classes", attack, name, X, np.ones(N))
    refuses("one-dimensional", attack, name, X, y[:, None])
    refuses("is for classes", attack, name, X, np.linspace(0.1, 1, N))
    refuses("NaN", attack, name, X, np.where(np.arange(N) == 3, np.nan, y))
    mixed = y.astype(object)
    mixed[0] = "one"
    refuses("mixes label types", attack, name, X, mixed)
    mixed[0] = None
    refuses("1 missing labels", attack, name, X, mixed)
    if ATTACKS[name].needs_features:
        refuses("NaN", attack, name, np.where(np.arange(N)[:, None] == 3, np.nan, X), y)


@every_attack
def test_more_than_two_classes_are_attacked_or_refused_as_declared(name, three_classes):
    X, y = three_classes
    if not ATTACKS[name].multiclass:
        refuses(f"{name!r} is defined for two classes, y has 3", attack, name, X, y)
        return
    result = attack(name, X, y)
    assert len(result.indices) == 12
    assert set(result.y.tolist()) <= {0, 1, 2}


@pytest.mark.parametrize("name", [name for name, cls in ATTACKS.items() if cls.multiclass])
def test_a_flip_distribution_decides_the_new_class(name, three_classes):
    X, y = three_classes
    cycle = [[0, 1, 0], [0, 0, 1], [0, 0, 1.0]]  # 0 -> 1 -> 2, and 2 is never flipped
    result = attack(name, X, y, flip_distribution=cycle)
    assert len(result.indices) == 12
    np.testing.assert_array_equal(result.y[result.indices], y[result.indices] + 1)
    for wrong in (np.eye(2), np.full((3, 3), 0.5), [[0, 2, -1], [0, 0, 1], [1, 0, 0]]):
        refuses("flip_distribution", attack, name, X, y, flip_distribution=wrong)


@every_attack
def test_a_two_class_flip_distribution_can_protect_a_class(name, two_classes):
    X, y = two_classes
    result = attack(name, X, y, flip_distribution=[[0, 1], [0, 1.0]])
    assert (y[result.indices] == -1).all()


@every_attack
def test_pandas_input_is_taken(name, two_classes):
    pd = pytest.importorskip("pandas")
    X, y = two_classes
    names = range(100, 160)
    frame, series = pd.DataFrame(X, names, columns=["a", "b"]), pd.Series(np.where(y == 1, "x", "w"), index=names)
    result = attack(name, frame, series)
    np.testing.assert_array_equal(result.indices, attack(name, X, y).indices)


@every_attack
def test_parameters_are_kept_as_given_and_shown(name):
    cls = ATTACKS[name]
    assert cls.name == name
    assert dataclasses.is_dataclass(cls)
    assert repr(cls(budget=3)).startswith(f"{cls.__name__}(budget=3")
    assert cls(budget=3) == cls(budget=3) != cls(budget=4)


@every_attack
def test_an_attack_object_does_what_the_function_does(name, two_classes):
    X, y = two_classes
    by_class = ATTACKS[name](budget=0.2, random_state=0, **FAST.get(name, {})).poison(X, y)
    np.testing.assert_array_equal(by_class.y, attack(name, X, y).y)


@every_attack
def test_flipping_every_row_is_possible_unless_the_attack_says_why_not(name, two_classes):
    X, y = two_classes
    result = attack(name, X, y, budget=1.0)
    if result.stopped_early is None:
        np.testing.assert_array_equal(result.y, -y)
    else:
        assert len(result.indices) < N


def test_unknown_attacks_are_named_with_the_choices():
    with pytest.raises(ValueError, match=r"attack='alpha' is unknown; choose one of random, .*gradient"):
        poison([[0], [1]], [0, 1], attack="alpha")


def test_long_attacks_report_progress(two_classes):
    X, y = two_classes
    for name in ("alfa", "alfa-tilt", "lfa", "adaptive"):
        seen = []
        attack(name, X, y, progress=lambda done, total, seen=seen: seen.append((done, total)))
        assert seen
        assert seen[-1][0] == seen[-1][1]
        assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_result_shows_as_a_table_of_what_changed_and_escapes_labels():
    y = np.array(["<b>", "ham"] * 10)
    shown = poison(None, y, attack="random", budget=6, random_state=0)._repr_html_()
    assert "6 of 20 labels changed" in shown
    assert "<td>&lt;b&gt;</td><td>ham</td>" in shown
    assert "<b>" not in shown
    assert "0 of 20" in poison(None, y, attack="random", budget=0)._repr_html_()


def test_every_kind_of_random_state_is_taken(two_classes):
    X, y = two_classes
    for state in (None, 3, np.random.default_rng(3), np.random.RandomState(3), np.random.SeedSequence(3)):
        assert len(poison(X, y, attack="random", budget=5, random_state=state).indices) == 5
    a = poison(X, y, attack="random", budget=5, random_state=np.random.RandomState(3)).indices
    b = poison(X, y, attack="random", budget=5, random_state=np.random.RandomState(3)).indices
    np.testing.assert_array_equal(a, b)


@every_attack
def test_an_svm_inside_an_attack_is_svc_at_its_defaults(name, two_classes):
    X, y = two_classes
    names = {field.name: field.default for field in dataclasses.fields(ATTACKS[name])}
    assert names.get("C", 1.0) == 1.0
    if name in ("top-k", "randomized-top-k", "lfa", "gradient"):
        np.testing.assert_array_equal(attack(name, X, y).y, attack(name, X, y, surrogate=SVC()).y)
