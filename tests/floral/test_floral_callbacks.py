"""scikit-learn's callbacks on FloralClassifier, and the picture of its history."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons

from floral_learn import FloralClassifier
from floral_learn.floral import HistoryDisplay

X, Y = make_moons(120, noise=0.2, random_state=0)


class Recorder:
    def __init__(self, stop_at=None):
        self.events, self.stop_at = [], stop_at

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.parent is not None, context.task_id))

    def on_fit_task_end(self, estimator, context):
        self.events.append(("end", context.parent is not None, context.task_id))
        return context.parent is not None and context.task_id == self.stop_at


def test_hooks_are_called_once_a_round_and_torn_down():
    recorder = Recorder()
    FloralClassifier(n_rounds=7).set_callbacks(recorder).fit(X, Y)
    events = recorder.events
    assert events[0] == "setup"
    assert events[1] == ("begin", False, 0)
    assert [e[2] for e in events if e[:2] == ("end", True)] == list(range(7))
    assert events[-2:] == [("end", False, 0), "teardown"]


def test_a_callback_can_stop_the_fit():
    clf = FloralClassifier(n_rounds=50).set_callbacks(Recorder(stop_at=9)).fit(X, Y)
    assert clf.n_iter_ == 10
    assert len(clf.history_["bias"]) == 10
    assert clf.predict(X).shape == Y.shape


def test_teardown_runs_when_the_fit_fails():
    recorder = Recorder()
    recorder.on_fit_task_begin = lambda estimator, context: 1 / 0
    with pytest.raises(ZeroDivisionError):
        FloralClassifier(n_rounds=5).set_callbacks(recorder).fit(X, Y)
    assert recorder.events == ["setup", "teardown"]


def test_callbacks_do_not_change_the_fit():
    plain = FloralClassifier(budget=0.2, n_rounds=40, random_state=0).fit(X, Y)
    watched = FloralClassifier(budget=0.2, n_rounds=40, random_state=0).set_callbacks(Recorder()).fit(X, Y)
    np.testing.assert_array_equal(plain.decision_function(X), watched.decision_function(X))


def test_progress_bar_of_scikit_learn_works(capsys):
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn's callback API starts with 1.9")
    FloralClassifier(n_rounds=20).set_callbacks(callback.ProgressBar()).fit(X, Y)
    assert "100%" in capsys.readouterr().out


def test_the_estimator_of_a_round_is_ready_to_predict():
    pytest.importorskip("sklearn.callback", reason="scikit-learn's callback API starts with 1.9")

    class Scores(Recorder):
        def on_fit_task_end(self, estimator, context, *, fitted_estimator):
            if context.parent is not None:
                self.events.append((fitted_estimator.n_iter_, fitted_estimator.score(X, Y)))

    scores = Scores()
    clf = FloralClassifier(n_rounds=30, random_state=0).set_callbacks(scores).fit(X, Y)
    kept = [e for e in scores.events if isinstance(e, tuple) and isinstance(e[1], float)]
    assert [k for k, _ in kept] == list(range(1, 31))
    assert kept[-1][1] == clf.score(X, Y)


@pytest.mark.parametrize("quantity", ["objective", "residual", "bias", "mu", "step"])
def test_history_display(quantity):
    clf = FloralClassifier(n_rounds=30).fit(X, Y)
    display = HistoryDisplay.from_estimator(clf, quantity).plot()
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), clf.history_[quantity])
    assert display.ax_.get_xlabel() == "round"


def test_history_display_has_a_curve_for_each_class():
    P, labels = make_blobs(90, centers=3, random_state=0)
    display = HistoryDisplay.from_estimator(FloralClassifier(n_rounds=20).fit(P, labels)).plot()
    assert [line.get_label() for line in display.lines_] == ["0", "1", "2"]


def test_history_display_names_what_it_can_draw():
    with pytest.raises(ValueError, match="quantity='flips' must be one of"):
        HistoryDisplay.from_estimator(FloralClassifier(n_rounds=5).fit(X, Y), "flips")
