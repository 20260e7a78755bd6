"""LabelReview from outside: asking, answering, undoing, saving, fitting, and what bad input gets."""

import numpy as np
import pytest
from refusals import refuses
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_classification, make_moons
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from floral_learn import FloralClassifier, LabelReview, find_label_issues, poison


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(200, noise=0.2, random_state=0)
    return X, y, poison(X, y, attack="farthest", budget=0.2).y


def answered(X, y, given, n, **options):
    review = LabelReview(X, given, random_state=0, **options)
    for _ in range(n):
        rows = review.ask(1)
        review.answer(rows, y[rows])
    return review


def test_answers_bring_most_wrong_labels_back(moons):
    X, y, given = moons
    review = answered(X, y, given, 30)
    assert (review.labels != y).mean() < 0.5 * (given != y).mean()
    assert SVC().fit(X, review.labels).score(X, y) > SVC().fit(X, given).score(X, y) + 0.05


def test_asking_again_without_an_answer_gives_the_same_rows(moons):
    X, _, given = moons
    review = LabelReview(X, given, random_state=3)
    np.testing.assert_array_equal(review.ask(6), review.ask(6))
    assert len(set(review.ask(6).tolist())) == 6


def test_asking_for_more_than_is_left_gives_what_is_left(moons):
    X, y, given = moons
    review = LabelReview(X[:20], given[:20], random_state=0)
    rows = review.ask(50)
    assert sorted(rows.tolist()) == list(range(20))
    review.answer(rows, y[rows])
    assert len(review.ask(3)) == 0
    assert review.should_stop
    assert review.guarantee().low == review.guarantee().high == (y[:20] != given[:20]).mean()


def test_undo_takes_back_one_call(moons):
    X, y, given = moons
    review = answered(X, y, given, 6)
    before = review.wrong_probability.copy()
    rows = review.ask(3)
    review.answer(rows, y[rows])
    assert sorted(review.undo()) == sorted(rows.tolist())
    np.testing.assert_allclose(review.wrong_probability, before)
    assert len(review.history) == 6


def test_a_later_answer_of_the_same_reviewer_replaces_the_former(moons):
    X, _, given = moons
    review = LabelReview(X, given, random_state=0)
    review.answer([5], [1 - given[5]])
    assert review.labels[5] != given[5]
    review.answer([5], [given[5]])
    assert review.labels[5] == given[5]
    assert len(review.history) == 2


def test_not_sure_says_nothing_and_is_not_asked_again(moons):
    X, _, given = moons
    review = LabelReview(X, given, random_state=0)
    before = review.wrong_probability.copy()
    rows = review.ask(4)
    review.answer(rows, [None, np.nan, None, None])
    np.testing.assert_allclose(review.wrong_probability, before, atol=1e-9)
    assert not set(rows.tolist()) & set(review.ask(4).tolist())
    assert [entry["label"] for entry in review.history] == [None] * 4


def test_a_lying_reviewer_is_found_out(moons):
    X, y, given = moons
    review = LabelReview(X, given, random_state=1)
    for _ in range(15):
        rows = review.ask(1)
        review.answer(rows, y[rows], reviewer="honest")
        review.answer(rows, 1 - y[rows], reviewer="liar")
    errors = review.reviewers
    assert errors["honest"] < 0.2 < errors["liar"]
    rows = [entry["row"] for entry in review.history]
    assert (review.labels[rows] == y[rows]).mean() > 0.9


def test_a_liar_who_answers_every_other_row_is_found_out(moons):
    X, y, given = moons
    review = LabelReview(X, given, random_state=1)
    for turn in range(40):
        rows = review.ask(1)
        review.answer(rows, y[rows] if turn % 2 else 1 - y[rows], reviewer="honest" if turn % 2 else "liar")
    errors = review.reviewers
    assert errors["honest"] < 0.1 < 0.4 < errors["liar"]
    assert (review.labels != y).mean() < 0.5 * (given != y).mean()


def test_trusted_rows_keep_their_label_and_are_not_asked(moons):
    X, _, given = moons
    trusted = np.arange(len(given)) < 50
    review = LabelReview(X, given, trusted=trusted, random_state=0)
    assert (review.wrong_probability[:50] == 0).all()
    assert review.ask(20).min() >= 50


def test_a_group_caught_lying_makes_its_other_labels_suspect():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)  # rows say nothing here: only groups can
    groups = np.array(["a", "b", "c", "d"])[rng.integers(0, 4, len(y))]
    given = np.where(groups == "c", 1 - y, y)
    rows = np.r_[np.flatnonzero(groups == "c")[:6], np.flatnonzero(groups == "b")[:6]]
    review = LabelReview(X, given, groups=groups, random_state=0)
    review.answer(rows, y[rows])
    liar = np.setdiff1d(np.flatnonzero(groups == "c"), rows)
    honest = np.setdiff1d(np.flatnonzero(groups == "b"), rows)
    assert review.wrong_probability[liar].mean() > 0.6
    assert review.wrong_probability[honest].mean() < 0.3


def test_a_group_whose_labels_do_not_fit_the_rest_is_suspect_before_any_answer():
    rng = np.random.default_rng(0)
    X, y = make_blobs(300, centers=2, cluster_std=2.5, random_state=0)
    groups = rng.integers(0, 6, len(y))
    given = np.where((groups == 2) & (rng.random(len(y)) < 0.7), 1 - y, y)
    plain, told = LabelReview(X, given, random_state=0), LabelReview(X, given, groups=groups, random_state=0)
    assert (told.labels == given).all()
    assert told.wrong_probability[groups == 2].mean() > 1.2 * plain.wrong_probability[groups == 2].mean()


@pytest.mark.parametrize("attack", ["farthest", "random"])
def test_groups_that_mean_nothing_change_nothing(moons, attack):
    X, y, _ = moons
    given = poison(X, y, attack=attack, budget=0.2, random_state=0).y
    names = np.random.default_rng(5).choice(list("abcde"), len(y))
    plain, named = answered(X, y, given, 25), answered(X, y, given, 25, groups=names)
    assert named.history == plain.history
    np.testing.assert_array_equal(named.labels, plain.labels)
    np.testing.assert_array_equal(named.wrong_probability, plain.wrong_probability)


def test_a_careless_author_is_found_and_labels_of_the_others_are_left_alone():
    X, y = make_blobs(400, centers=3, cluster_std=2.5, random_state=1)
    rng = np.random.default_rng(0)
    who = rng.choice(list("abcde"), len(y))
    given = np.where((who == "e") & (rng.random(len(y)) < 0.6), (y + rng.integers(1, 3, len(y))) % 3, y)
    plain, grouped = answered(X, y, given, 20), answered(X, y, given, 20, groups=who)
    assert (grouped.labels != y).sum() < 0.8 * (plain.labels != y).sum()
    assert grouped.wrong_probability[who == "e"].mean() > 5 * grouped.wrong_probability[who != "e"].mean()


def test_a_flipped_cluster_of_several_classes_is_read_as_its_class():
    X, codes = make_blobs(300, centers=4, cluster_std=0.8, random_state=1)
    y = np.array(["ash", "birch", "cedar", "doum"])[codes]
    given = y.copy()
    wrong = np.flatnonzero(codes == 2)[:50]
    given[wrong] = "ash"
    review = answered(X, y, given, 25)
    assert (review.labels != y).mean() < 0.3 * (given != y).mean()
    assert review.label_probability.shape == (300, 4)
    np.testing.assert_allclose(review.label_probability.sum(axis=1), 1)


@pytest.mark.parametrize("share", [0.0, 0.05, 0.2])
def test_answers_that_are_wrong_or_missing_do_no_harm_to_clean_labels(share):
    X, y = make_moons(500, noise=0.25, random_state=3)
    rng = np.random.default_rng(0)
    train, test = slice(0, 250), slice(250, None)
    told = [None if share == 0.2 and rng.random() < share else 1 - t if rng.random() < share else t for t in y[train]]
    review = LabelReview(X[train], y[train], random_state=0)
    for _ in range(8):
        rows = review.ask(5)
        review.answer(rows, [told[row] for row in rows])
    plain, fitted = SVC().fit(X[train], y[train]), review.train(SVC())
    least = plain.score(X[test], y[test]) - (0.005 if share == 0.2 else 0.0)  # a test row; one answer in six is wrong
    assert fitted.score(X[test], y[test]) >= least
    if share == 0.0:  # nothing was found wrong, so nothing is done
        np.testing.assert_array_equal(fitted.dual_coef_, plain.dual_coef_)


def test_a_rare_class_survives_a_review_of_noisy_labels():
    X, y = make_classification(800, 10, n_informative=5, weights=[0.9], flip_y=0.0, class_sep=1.5, random_state=4)
    train, test = slice(0, 400), slice(400, None)
    given = poison(X[train], y[train], attack="random", budget=0.1, random_state=0).y
    review = answered(X[train], y[train], given, 20)
    rare = y[test] == 1
    plain = SVC().fit(X[train], given).predict(X[test])[rare].mean()
    assert review.train(SVC()).predict(X[test])[rare].mean() > plain - 0.1


def test_before_any_answer_labels_are_as_given_and_train_is_the_plain_fit(moons):
    X, _, given = moons
    review = LabelReview(X, given, random_state=0)
    assert (review.labels == given).all()
    np.testing.assert_array_equal(review.train(SVC()).dual_coef_, SVC().fit(X, given).dual_coef_)


def test_one_label_for_one_row_needs_no_list(moons):
    X, _, given = moons
    review = LabelReview(X, np.where(given == 1, "yes", "no"), random_state=0)
    review.answer([3], "yes")
    review.answer(4, None)
    assert [entry["label"] for entry in review.history] == ["yes", None]


def test_a_class_that_answers_take_away_is_gone_and_training_says_so(moons):
    X = moons[0]
    y = np.where(np.arange(len(X)) < 2, "b", "a")
    review = LabelReview(X, y, random_state=0)
    review.answer([0, 1], ["a", "a"])
    assert (review.labels == "a").all()
    refuses("training needs two classes, and every label is read as a", review.train, SVC())


def test_rows_are_compared_in_the_scale_in_which_labels_can_be_told():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    components = np.column_stack([y * 4 + rng.normal(size=400), 0.2 * rng.normal(size=(400, 15))])  # one of 16 speaks
    units = np.column_stack([rng.normal(size=400) * 1000, y + 0.3 * rng.normal(size=400)])  # the larger says nothing

    def spread(X):
        return np.ptp(LabelReview(X, y, random_state=0).beliefs.data.problem.rows.values.std(axis=0))

    assert spread(components) > 1
    assert spread(units) < 0.1  # standardised: equal but for what is cut off


def test_right_answers_on_clean_labels_leave_no_room_for_regions():
    X, y = make_moons(200, noise=0.2, random_state=0)
    review = answered(X, y, y, 20)
    assert (review.labels == y).mean() > 0.99
    assert review.wrong_share.low == 0.0
    assert float(review.wrong_share) < 0.07, "none of six drawn rows was wrong: half a row in seven by Jeffreys' prior"


@pytest.mark.parametrize("seed", range(3))
def test_the_share_reaches_zero_where_only_answers_are_wrong_and_not_where_labels_are(seed):
    X, y = make_moons(400, noise=0.2, random_state=seed)
    far = poison(X, y, attack="farthest", budget=0.2).y
    for given, errors in ((y, 0.1), (far, 0.0)):
        review, rng = LabelReview(X, given, random_state=seed), np.random.default_rng(seed)
        for count in range(1, 51):
            rows = review.ask(1)
            review.answer(rows, np.where(rng.random(1) < errors, 1 - y[rows], y[rows]))
            if count in (20, 50):
                share = review.wrong_share
                assert (share.low == 0.0) == (errors > 0)
                assert share.high >= np.mean(given != y)


def test_the_share_starts_from_the_audit_and_is_the_mean_of_what_is_shown(moons):
    X, y, given = moons
    review = LabelReview(X, given, random_state=0)
    audited = find_label_issues(X, given, random_state=0).wrong_share
    assert review.wrong_share.estimate == pytest.approx(audited, abs=0.05)
    assert not review.wrong_share.known
    assert "from few answers" in str(review.wrong_share)
    for _ in range(4):
        rows = review.ask(5)
        review.answer(rows, y[rows])
        share = review.wrong_share
        assert share.low <= share.estimate == pytest.approx(review.wrong_probability.mean())
        assert share.estimate <= share.high
    assert review.wrong_share.known


def test_what_more_answers_bring_what_is_left_and_when_to_stop_agree(moons):
    X, y, given = moons
    for labels in (given, y):
        review, before = LabelReview(X, labels, random_state=0), None
        for turn in range(40):
            ten = review.ten_more
            assert ten.low <= ten.labels <= ten.high
            assert before is None or before.low <= ten.labels <= before.high, "no jump beyond its own interval"
            assert review.should_stop == (turn >= 20 and ten.labels < 1)
            before = ten
            rows = review.ask(1)
            review.answer(rows, y[rows])
        belief = review.label_probability[np.arange(len(y)), review.labels]
        assert review.still_wrong == pytest.approx((1 - belief).sum())


def test_a_review_begun_again_with_its_secret_asks_and_says_the_same(moons):
    X, y, given = moons
    first = LabelReview(X, given)
    again = LabelReview(X, given, secret=first.secret)
    for review in (first, again):
        review.answer(first.ask(5), y[first.ask(5)]) if review is first else review.answer(
            [entry["row"] for entry in first.history], [entry["label"] for entry in first.history]
        )
    assert first.questions(8) == again.questions(8)
    np.testing.assert_array_equal(first.wrong_probability, again.wrong_probability)
    assert first.ten_more == again.ten_more
    assert str(first.guarantee()) == str(again.guarantee())


def test_the_share_is_known_where_every_row_is(moons):
    X, y, given = moons
    review = LabelReview(X[:12], given[:12], random_state=0)
    review.answer(np.arange(12), y[:12])
    assert review.wrong_share.known


def test_many_columns_are_compared_by_their_principal_components():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = np.outer(2 * y - 1, rng.normal(size=120)) + 3 * rng.normal(size=(300, 120))
    review = LabelReview(X, y, random_state=0)
    assert review.beliefs.data.problem.rows.values.shape == (300, 16)
    first = review.beliefs.data.problem.rows.values[:, 0]
    assert abs(np.corrcoef(first, y)[0, 1]) > 0.8, "what the classes differ in is the largest component"


def test_scores_rank_what_a_held_out_model_thinks_of_each_label():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = np.eye(3)[y] * 3 + rng.normal(size=(300, 3))
    given = np.where(np.arange(300) < 30, (y + 1) % 3, y)
    scores = LabelReview(X, given, random_state=0).beliefs.data.problem.scores
    assert sorted(scores) == pytest.approx(4 * np.arange(300) / 300 - 2)
    assert scores[:30].mean() < -1.2 < scores[30:].mean(), "wrong labels among right ones have low scores"


def test_any_random_state_makes_questions_repeatable(moons):
    X, _, given = moons
    for made in (lambda: 3, lambda: np.random.default_rng(3), lambda: np.random.RandomState(3)):
        one, two = (LabelReview(X, given, random_state=made()) for _ in range(2))
        np.testing.assert_array_equal(one.ask(6), two.ask(6))
        assert not one.guarantee().valid
    assert LabelReview(X, given).guarantee().valid


def test_training_is_the_fit_of_its_labels_with_and_without_weights(moons):
    X, y, given = moons
    review = answered(X, y, given, 10)
    labels, weights = (np.asarray(review.training[name]) for name in ("label", "weight"))
    np.testing.assert_array_equal(labels, review.labels)
    for weighted, fit in ((False, SVC().fit(X, labels)), (True, SVC().fit(X, labels, sample_weight=weights))):
        np.testing.assert_array_equal(review.train(SVC(), weighted=weighted).dual_coef_, fit.dual_coef_)


def test_a_saved_review_goes_on_where_it_stopped(moons, tmp_path):
    X, y, given = moons
    names = np.array(["no", "yes"])
    review = answered(X, names[y], names[given], 9)
    review.answer([review.ask(1)[0]], [None], reviewer="Ada")
    review.save(tmp_path / "review.skops")
    again = LabelReview.load(tmp_path / "review.skops")
    assert again.history == review.history
    np.testing.assert_array_equal(again.ask(5), review.ask(5))
    np.testing.assert_allclose(again.wrong_probability, review.wrong_probability)
    assert again.guarantee() == review.guarantee()


def test_a_file_that_is_no_review_is_refused(tmp_path):
    (tmp_path / "other").write_text("hello")
    refuses("not a floral-learn review file", LabelReview.load, tmp_path / "other")
    refuses("no review file", LabelReview.load, tmp_path / "nothing", error=FileNotFoundError)


@pytest.mark.parametrize(
    "model", [SVC(), FloralClassifier(C=1.0, n_rounds=20), make_pipeline(StandardScaler(), LogisticRegression())]
)
def test_training_any_classifier_is_better_than_without_a_review(moons, model):
    X, y, given = moons
    fitted = answered(X, y, given, 10).train(model)
    plain = clone(model).fit(X, given).score(X, y)
    assert fitted.score(X, y) > plain + 0.05
    assert not hasattr(model, "classes_")


def test_labels_stay_until_an_answer_contradicts_one(moons):
    X, y, given = moons
    review = LabelReview(X, given, random_state=0)
    for rows in (np.flatnonzero(given == y)[:15], np.flatnonzero(given != y)[:3]):
        np.testing.assert_array_equal(review.labels, given)
        review.answer(rows, y[rows])
    assert np.count_nonzero(review.labels != given) > 10


def test_a_class_weighs_as_much_as_it_is_expected_to_have_rows(moons):
    X, y, given = moons
    review = answered(X, y, given, 15)
    training, expected = review.training, review.label_probability.sum(axis=0)
    weight = np.bincount(np.asarray(training["label"]), np.asarray(training["weight"]))
    np.testing.assert_allclose(weight, expected)
    assert weight.sum() == pytest.approx(len(y))


def test_training_and_the_frame_have_a_line_for_each_row(moons):
    pd = pytest.importorskip("pandas")
    X, y, given = moons
    names = [f"r{k}" for k in range(len(y))]
    review = answered(pd.DataFrame(X, columns=["a", "b"], index=names), y, pd.Series(given, names), 15)
    training, frame = review.training, review.to_frame()
    assert training.index.tolist() == frame.index.tolist() == names
    assert list(training) == ["label", "weight", "wrong_probability", "state"]
    asked = [names[entry["row"]] for entry in review.history]
    assert (training.loc[asked, "state"] == "answered").all()
    rest = training.drop(asked)
    np.testing.assert_array_equal(rest["state"] == "corrected", rest["label"] != frame.loc[rest.index, "given"])
    np.testing.assert_array_equal(frame["label"], review.labels)
    np.testing.assert_allclose(frame[["p_0", "p_1"]], review.label_probability)
    assert "LabelReview" in review._repr_html_()


def test_texts_are_reviewed_as_they_are(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    words = np.array([["dull", "cold", "grim", "long"], ["fine", "warm", "kind", "wise"]])
    texts = [" ".join(["film", *rng.choice(words[c], 3)]) for c in y]
    given = np.where(np.arange(120) < 15, 1 - y, y)
    review = answered(texts, y, given, 12)
    assert (review.labels != y).sum() < 6
    model = review.train(make_pipeline(TfidfVectorizer(), LogisticRegression()))
    assert model.predict(["a fine kind film", "a grim cold film"]).tolist() == [1, 0]
    review.append(texts[:10], y[:10])
    review.save(tmp_path / "texts.skops")
    again = LabelReview.load(tmp_path / "texts.skops")
    assert len(again.labels) == 130
    assert again.ask(3).tolist() == review.ask(3).tolist()


def test_floral_gets_its_budget_from_the_answers_unless_set(moons):
    X, y, given = moons
    review = answered(X, y, given, 10)
    assert review.train(FloralClassifier(n_rounds=5)).budget == 0.05, "more labels than that may still be wrong"
    assert review.train(FloralClassifier(n_rounds=5, budget=0.33)).budget == 0.33
    review = LabelReview(X, y, random_state=0)
    rows = review.ask(50)
    review.answer(rows, y[rows])
    expected = review.wrong_probability.mean()  # no label was changed
    assert review.train(FloralClassifier(n_rounds=5)).budget == pytest.approx(expected)
    assert 0 < expected < 0.05


def test_appended_rows_join_the_review(moons):
    X, y, given = moons
    review = answered(X[:150], y[:150], given[:150], 8)
    before = [r for r in np.array(review.secret["order"]) if r < 150]
    review.append(X[150:], given[150:])
    assert sorted(np.array(review.secret["order"]).tolist()) == list(range(200))
    assert [r for r in np.array(review.secret["order"]) if r < 150] == before
    assert len(review.labels) == 200
    assert len(review.history) == 8


def test_a_review_grown_by_appending_reads_like_one_of_all_rows(moons):
    X, y, given = moons
    grown = LabelReview(X[:120], given[:120], random_state=4)
    whole = LabelReview(X, given, random_state=4)
    for review in (grown, whole):
        review.answer(np.arange(0, 120, 10), y[:120:10])
    grown.append(X[120:], given[120:])
    np.testing.assert_allclose(grown.wrong_probability, whole.wrong_probability)
    assert not set(grown.ask(8).tolist()) & set(range(0, 120, 10))


def test_an_append_that_is_refused_changes_nothing(moons):
    X, _, given = moons
    review = LabelReview(X[:100], given[:100], random_state=0)
    before = review.wrong_probability.copy()
    for new, options, match in (
        (X[100:110], {"trusted": np.ones(3, bool)}, "trusted must have one entry per row"),
        (X[100:110], {"sample_weight": -np.ones(10)}, "sample_weight must be finite"),
        (X[100:110], {"groups": ["a"] * 10}, "groups must be given for the new rows exactly if"),
        (sparse.csr_matrix(X[100:110]), {}, "X is sparse and the review's rows are not"),
    ):
        refuses(match, review.append, new, given[100:110], **options)
    np.testing.assert_allclose(review.wrong_probability, before)
    assert len(review.labels) == 100


def test_rows_of_weight_decide_what_is_asked(moons):
    X, y, given = moons
    left = X[:, 0] < np.median(X[:, 0])
    asked = {}
    for heavy in (True, False):
        weight = np.where(left == heavy, 1.0, 1e-6)
        review = LabelReview(X, given, sample_weight=weight, random_share=0.0, random_state=0)
        rows = []
        for _ in range(12):
            at = review.ask(1)
            review.answer(at, y[at])
            rows += at.tolist()
        asked[heavy] = left[rows].mean()
    assert asked[True] > asked[False] + 0.3


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda r: r.ask(0), "n=0 must be"),
        (lambda r: r.answer([0, 1], [1]), "rows has 2 entries and labels has 1"),
        (lambda r: r.answer([999], [1]), "rows holds 999"),
        (lambda r: r.answer([1, 1], [1, 1]), "the same row twice"),
        (lambda r: r.answer([1], [7]), "labels holds 7; an answer is one of 0, 1, or None"),
        (lambda r: r.answer([1], [1], reviewer=""), "reviewer=''"),
        (lambda r: r.undo(), "no answer to undo"),
        (lambda r: r.guarantee(confidence=1.0), "confidence=1.0 must lie"),
        (lambda r: r.guarantee(reviewer="nobody"), "reviewer='nobody' has given no answer"),
        (lambda r: r.answer([1, 2], 1), "labels=1 must hold one label per row, 2 in all"),
        (lambda r: r.answer([1, 2], "no"), "labels='no' must hold one label per row"),
        (lambda r: r.train(SVC), "estimator holds .* which is not a scikit-learn classifier"),
        (lambda r: r.train(None), "estimator holds None"),
        (lambda r: r.append(np.zeros((1, 5)), [0]), "X has 5 columns"),
        (lambda r: r.append(np.zeros((1, 2)), [9]), "does not know: 9"),
    ],
)
def test_bad_calls_say_what_is_allowed(moons, call, match):
    X, _, given = moons
    refuses(match, call, LabelReview(X, given, random_state=0))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"random_share": "a"}, "random_share='a' must be a number"),
        ({"random_state": -1}, "random_state=-1 must be an integer that is not negative"),
        ({"groups": [None] * 200}, "groups has 200 missing entries"),
        ({"classes": ["no", "yes"]}, "must be of one kind"),
        ({"trusted": [True]}, "trusted must have one entry per row"),
        ({"trusted": np.ones(200)}, "trusted must hold True and False"),
        ({"groups": ["a"]}, "groups must have one entry per row"),
        ({"sample_weight": -np.ones(200)}, "sample_weight must be finite"),
        ({"sample_weight": np.zeros(200)}, "sample_weight is 0 on every row"),
        ({"random_share": 2}, "random_share=2 must be"),
        ({"random_state": "x"}, "random_state='x' must be"),
    ],
)
def test_bad_input_is_refused_before_any_work(moons, options, match):
    X, _, given = moons
    refuses(match, LabelReview, X, given, **options)


def test_a_column_name_in_place_of_labels_is_refused_in_one_line(moons):
    refuses("y must have one dimension", LabelReview, moons[0], "label")


@pytest.mark.parametrize("columns", [2, 30])
def test_arrays_may_have_holes(moons, tmp_path, columns):
    X, y, given = moons
    rows = np.column_stack([X, np.random.default_rng(0).normal(size=(len(X), columns - 2))])
    rows[3, 0] = rows[7, 1] = np.nan
    review = answered(rows, y, given, 8)
    assert review.train(HistGradientBoostingClassifier()).score(X=rows, y=y) > 0.7
    review.append(rows[:4], given[:4])
    review.save(tmp_path / "holes.skops")
    assert len(LabelReview.load(tmp_path / "holes.skops").labels) == 204


def test_it_says_when_to_stop_on_clean_labels_and_not_at_the_start():
    X, y = make_moons(200, noise=0.1, random_state=0)
    review = LabelReview(X, y, random_state=0)
    assert not review.should_stop
    for _ in range(6):
        rows = review.ask(10)
        review.answer(rows, y[rows])
    assert review.should_stop


def test_a_class_that_no_given_label_has_can_be_answered(moons):
    X, y, _ = moons
    given = np.zeros_like(y)
    refuses("at least 2 classes", LabelReview, X, given)
    review = LabelReview(X, given, classes=[0, 1], random_state=0)
    rows = np.arange(0, 200, 5)
    review.answer(rows, y[rows])
    assert (review.labels != y).mean() < 0.25
    refuses("classes does not list: 1", LabelReview, X, y, classes=[0, 2])


def test_a_model_that_cannot_take_the_frame_names_the_column_and_what_helps():
    pd = pytest.importorskip("pandas")
    X, y = make_moons(60, noise=0.2, random_state=0)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(city=np.where(y, "Bern", "Basel"))
    with pytest.raises(ValueError, match=r"SVC cannot be trained on X .*'city' .text or categories.*TableEncoder"):
        LabelReview(frame, y, random_state=0).train(SVC())
