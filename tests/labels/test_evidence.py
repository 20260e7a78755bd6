"""The evidence about labels: through `judge_labels`, its flags and the noise model behind them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import expit, log_softmax
from sklearn.datasets import load_wine, make_blobs, make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.preprocessing import StandardScaler, scale

from floral_learn.labels import calibrate, fit_noise, flag_labels, judge_labels
from floral_learn.labels.flagging import largest_expected_f1


def two(p):
    return np.column_stack([1 - p, p])


def flipped_moons(share=0.1, n=400):
    X, y = make_moons(n, noise=0.15, random_state=0)
    wrong = np.random.default_rng(0).random(n) < share
    return X, np.where(wrong, 1 - y, y), wrong


def test_no_label_is_judged_by_a_model_that_saw_it():
    # Labels that are pure chance: whoever has seen them repeats them, whoever has not is right half of the time.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.integers(0, 2, 300)
    for model in (None, RandomForestClassifier(20, random_state=0)):
        found = judge_labels(X, y, model=model, random_state=0)
        assert abs((found.probability.argmax(axis=1) == y).mean() - 0.5) < 0.15
        assert not found.flags().informative
        assert not found.flags().flagged.any()


def test_another_label_of_a_row_does_not_change_what_is_said_of_that_row():
    # By the definition of held-out: only calibration, one number per class, may see a row's own label.
    X, y, _ = flipped_moons()
    other = y.copy()
    other[7] = 1 - y[7]
    one, two_ = (judge_labels(X, labels, random_state=0).probability for labels in (y, other))
    np.testing.assert_allclose(one[7], two_[7], atol=0.03)


@pytest.mark.parametrize("model", [None, LogisticRegression(), RandomForestClassifier(30, random_state=0)])
def test_wrong_labels_come_first_whoever_judges(model):
    X, y, wrong = flipped_moons()
    found = judge_labels(X, y, model=model, random_state=0)
    assert found.probability.shape == (400, 2)
    np.testing.assert_allclose(found.probability.sum(axis=1), 1)
    assert average_precision_score(wrong, found.log_odds) > 0.75
    own = found.probability[np.arange(400), found.codes]
    np.testing.assert_allclose(found.log_odds, np.log((1 - own) / own), atol=1e-6)


def test_rows_may_be_sparse_have_holes_or_be_a_frame_of_words():
    X, y, wrong = flipped_moons()
    holes = X.copy()
    holes[::9, 0] = np.nan
    words = pd.DataFrame({"left": X[:, 0], "up": np.where(X[:, 1] > 0.25, "yes", "no")})
    for rows in (sparse.csr_matrix(X - X.min()), holes, words):
        assert average_precision_score(wrong, judge_labels(rows, y, random_state=0).log_odds) > 0.5


def test_columns_in_other_units_change_next_to_nothing():
    X, y = load_wine(return_X_y=True)
    wrong = np.random.default_rng(1).random(len(y)) < 0.1
    given = np.where(wrong, (y + 1) % 3, y)
    plain, scaled = (judge_labels(rows, given, random_state=0).log_odds for rows in (X, scale(X)))
    assert average_precision_score(wrong, plain) > average_precision_score(wrong, scaled) - 0.03


def test_probabilities_alone_are_enough_and_stay_in_their_precision():
    _, y, wrong = flipped_moons()
    truth = np.where(wrong, 1 - y, y)
    p = np.where(np.arange(2) == truth[:, None], 0.9, 0.1).astype(np.float32)
    found = judge_labels(None, y, pred_probs=p)
    assert found.neighbours is None
    assert found.probability.dtype == np.float32
    np.testing.assert_array_equal(found.flags().flagged, wrong)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pred_probs": np.ones((400, 3)) / 3}, r"pred_probs has shape \(400, 3\); it must be \(400, 2\)"),
        ({"pred_probs": np.full((400, 2), 0.9)}, "must sum to 1 in every row; row 0 sums to 1.8"),
        ({"pred_probs": np.tile([1.5, -0.5], (400, 1))}, "not negative; row 0 .*: are they log-odds?"),
        ({"pred_probs": np.full((400, 2), np.nan)}, "must be finite"),
        ({"pred_probs": np.full((400, 3), 1 / 3)}, "drop the columns of classes that never occur in y"),
        (
            {"pred_probs": pd.DataFrame({"0": np.ones(400), "1": np.zeros(400), "2": np.zeros(400)})},
            "a column '2', and",
        ),
        ({"pred_probs": pd.DataFrame({1: np.ones(400), 0: np.zeros(400)})}, "in the order 1, 0; it must be 0, 1"),
        ({"pred_probs": np.eye(2)[1 - flipped_moons()[1]]}, "rows labelled '0' are highest in the column of '1'"),
        ({"pred_probs": np.full((400, 2), 0.5), "model": LogisticRegression()}, "model= or pred_probs=, not both"),
        ({"model": StandardScaler()}, "needs predict_proba or decision_function"),
        ({"groups": ["ann"]}, r"groups= must hold one name per row \(400\)"),
        ({"X": None}, "X is missing"),
        ({"X": np.ones((10, 2))}, "X has 10 rows and y has 400"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    X, y, _ = flipped_moons()
    with pytest.raises(ValueError, match=message):
        judge_labels(**({"X": X, "y": y} | arguments))


def test_a_model_that_refuses_the_rows_is_named_with_the_column():
    X, y, _ = flipped_moons()
    frame = pd.DataFrame({"left": X[:, 0], "up": np.where(X[:, 1] > 0.25, "yes", "no")})
    with pytest.raises(ValueError, match=r"LogisticRegression cannot be trained on X .*: 'up' \(text"):
        judge_labels(frame, y, model=LogisticRegression())
    with pytest.raises(TypeError, match=r"model=LogisticRegression is a class; give an instance"):
        judge_labels(X, y, model=LogisticRegression)


def test_what_a_sources_other_labels_say_is_never_infinite():
    y = np.tile([0, 1], 200)
    p = np.where(np.arange(2) == y[:, None], 1 - 1e-9, 1e-9)
    who = np.repeat(["all wrong", "all right"], [40, 360])
    shift = judge_labels(None, np.where(who == "all wrong", 1 - y, y), pred_probs=p, groups=who).authors.shift
    assert np.isfinite(shift).all()
    assert shift[0] > 2.5 > 0 > shift[-1]


@pytest.mark.parametrize("share", [0.05, 0.15, 0.3])
def test_random_errors_in_separate_classes_are_flagged_and_counted(share):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1000)
    wrong = rng.random(1000) < share
    scores = (2 * y - 1) * rng.gamma(8, 0.2, 1000)
    labels = np.where(wrong, 1 - y, y)
    found = flag_labels(calibrate(np.column_stack([-scores, scores]), labels), labels)
    assert found.informative
    assert abs(found.wrong_share - wrong.mean()) < 0.02
    assert 0.9 < found.flagged.sum() / wrong.sum() < 1.1
    assert wrong[found.flagged].mean() > 0.95
    assert found.score[found.flagged].min() > found.score[~found.flagged].max()


# At half a deviation four labels in ten are contradicted. No label stands out then, and the set of largest expected F1
# is wide: its bound is that of a guess.
@pytest.mark.parametrize(("distance", "most"), [(0.5, 0.3), (1.0, 0.12), (1.5, 0.1), (2.0, 0.1)])
@pytest.mark.parametrize("n", [1000, 20_000])
def test_few_right_labels_of_overlapping_gaussians_are_flagged(distance, most, n):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, n)
    log_odds = distance * (rng.normal(size=n) + distance * (y - 0.5))
    found = flag_labels(two(expit(log_odds)), y)
    assert found.flagged.mean() < most
    assert found.flagged.mean() < found.contradicted.mean()


def test_predictions_that_know_nothing_flag_nothing():
    rng = np.random.default_rng(2)
    labels = (rng.random(500) < 0.02).astype(int)
    scores = calibrate(rng.normal(size=(500, 2)), labels)
    found = flag_labels(scores, labels)
    assert not found.informative
    assert found.gain < 0.02
    assert not found.flagged.any()
    assert (found.score[labels == 1] > found.score[labels == 0].max()).all()  # a rare label is still the least expected


def test_trusted_labels_are_never_flagged():
    _, y, wrong = flipped_moons()
    p = np.where(np.arange(2) == np.where(wrong, 1 - y, y)[:, None], 0.9, 0.1)
    found = flag_labels(p, y, trusted=wrong)
    assert not found.flagged[wrong].any()
    assert not found.contradicted.any()
    assert (found.score[wrong] == 0).all()


def test_a_class_that_no_judge_ever_names_does_not_hide_its_rows():
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 600)
    labels = np.where(rng.random(600) < 0.1, 2, truth)  # what nothing is, and a tenth is labelled as
    p = np.full((600, 3), 0.1)
    p[np.arange(600), truth] = 0.8
    found = flag_labels(p, labels)
    assert set(np.flatnonzero(labels == 2)) <= set(np.flatnonzero(found.flagged))
    assert found.score[labels == 2].min() > found.score[labels != 2].max()
    np.testing.assert_array_equal(found.suggested[labels == 2], truth[labels == 2])


@settings(max_examples=30, deadline=None)
@drawn(st.lists(st.sampled_from([0.01, 0.1, 0.3, 0.5, 0.9, 1.0]), min_size=1, max_size=12))
def test_what_is_flagged_has_the_largest_expected_f1_of_all_cuts(rows):
    chance = np.array(rows)
    chosen = largest_expected_f1(chance)

    def expected(cut):
        return 2 * chance[cut].sum() / (cut.sum() + chance.sum())

    cuts = [chance >= value for value in np.unique(chance)]
    assert any((chosen == cut).all() for cut in [*cuts, np.zeros(len(chance), bool)])
    nothing = np.prod(1 - chance)  # then an empty list has the F1 of 1
    assert (expected(chosen) if chosen.any() else nothing) >= max(nothing, *map(expected, cuts)) - 1e-12


def test_the_gain_is_that_of_log_loss_and_chance_is_told_from_knowledge():
    labels = np.repeat([0, 1], 50)
    known = flag_labels(np.where(np.arange(2) == labels[:, None], 0.9, 0.1), labels)
    np.testing.assert_allclose(known.gain, 1 - np.log(0.9) / np.log(0.5))
    assert known.informative
    rng = np.random.default_rng(0)
    guesses = [flag_labels(calibrate(rng.normal(size=(100, 2)), labels), labels) for _ in range(200)]
    assert sum(found.informative for found in guesses) <= 2


def test_calibrated_scores_are_probabilities_and_useless_ones_become_the_class_shares():
    rng = np.random.default_rng(0)
    log_odds = rng.normal(0, 2, 20_000)
    labels = (rng.random(20_000) < expit(log_odds)).astype(int)
    found = calibrate(np.column_stack([-7 * log_odds, 7 * log_odds]), labels)
    np.testing.assert_allclose(found[:, 1], expit(log_odds), atol=0.03)
    useless = calibrate(rng.normal(size=(20_000, 2)), labels)
    np.testing.assert_allclose(useless[:, 1], labels.mean(), atol=0.02)


def likelihood(noise, log_p, codes):
    q = np.exp(noise.truth(log_p))
    return np.log((q * noise.confusion.T[codes]).sum(axis=1)).sum()


@settings(max_examples=15, deadline=None)
@drawn(st.integers(0, 10_000), st.integers(2, 4), st.floats(0.0, 0.3))
def test_the_noise_model_is_at_least_as_likely_as_no_noise_and_its_rows_are_distributions(seed, m, share):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, m, 400)
    log_p = log_softmax(2.0 * np.eye(m)[y] + rng.normal(size=(400, m)), axis=1)
    codes = np.where(rng.random(400) < share, rng.integers(0, m, 400), y)
    noise = fit_noise(log_p, codes)
    np.testing.assert_allclose(noise.confusion.sum(axis=1), 1)
    assert likelihood(noise, log_p, codes) >= log_p[np.arange(400), codes].sum() - 1.0


def test_the_direction_of_errors_is_found():
    X, y = make_blobs(600, centers=[[-4, 0], [0, 4], [4, 0]], random_state=1)
    codes = y.copy()
    lost = np.flatnonzero(y == 2)[:60]
    codes[lost] = 0  # of class 2, three labels in ten say 0
    found = judge_labels(X, codes, random_state=0)
    np.testing.assert_allclose(found.noise.confusion[2], [0.3, 0, 0.7], atol=0.06)
    assert set(lost) <= set(np.flatnonzero(found.flags().flagged))
    assert (found.flags().suggested[lost] == 2).all()


def test_many_classes_are_judged_without_a_matrix_of_rows_and_rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 200, 4000)
    p = np.full((4000, 200), 0.001, dtype=np.float32)
    p[np.arange(4000), y] = 1 - 0.199
    codes = np.where(rng.random(4000) < 0.05, rng.integers(0, 200, 4000), y)
    found = judge_labels(None, codes, pred_probs=p).flags()
    assert (codes != y)[found.flagged].mean() > 0.95
    assert found.flagged[codes != y].mean() > 0.9
