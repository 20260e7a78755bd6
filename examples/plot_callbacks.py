"""
Callbacks and progress
======================

A fit can be watched, stopped and resumed. A callback is an object with four methods. The picture shows what there is
to watch, and why predictions use the mean model of the last half of the rounds.
"""

# %%
# scikit-learn's own callbacks (1.9 on) work the same way: ``clf.set_callbacks(ProgressBar())`` draws a bar.
import tempfile

import matplotlib.pyplot as plt
import numpy as np

from floral_learn import FloralClassifier, load_moon, poison
from floral_learn.floral import HistoryDisplay
from floral_learn.floral.checkpoint import Checkpoint, resume
from floral_learn.paper import PaperFloralClassifier

moon = load_moon()
y = poison(moon.X_train, moon.y_train, attack="farthest", budget=0.15, random_state=0).y


class Watch:
    """Count rounds, and end the fit after some."""

    def __init__(self, stop_after=None):
        self.rounds, self.stop_after = 0, stop_after

    def setup(self, estimator, context):
        """Called before the first round."""

    def teardown(self, estimator, context):
        """Called after the last one, also when the fit fails."""

    def on_fit_task_begin(self, estimator, context):
        """Called before each round, and before the whole."""

    def on_fit_task_end(self, estimator, context):
        """Called after each round; a true answer ends the fit."""
        self.rounds += context.parent is not None
        return self.stop_after is not None and self.rounds >= self.stop_after


watch = Watch(stop_after=120)
stopped = FloralClassifier(gamma=1.0, budget=0.3, random_state=0).set_callbacks(watch).fit(moon.X_train, y)
print("stopped after", stopped.n_iter_, "rounds")

# %%
# A checkpoint survives the process; ``resume`` plays the rest and gives the same bits.
folder = tempfile.mkdtemp()
whole = FloralClassifier(gamma=1.0, budget=0.3, random_state=0).set_callbacks(Checkpoint(folder, every=100))
whole.fit(moon.X_train, y)
again = resume(folder)
print("same bits:", (again.decision_function(moon.X_test) == whole.decision_function(moon.X_test)).all())

# %%
# The history of a fit, and what averaging does: the last iterate carries the random flips of its last round.
ends = np.arange(30, 301, 30)
last = {"learning_rate": "auto", "average": False}
single = [
    PaperFloralClassifier(gamma=1.0, budget=0.3, n_rounds=int(end), random_state=0, **last).fit(moon.X_train, y)
    for end in ends
]
mean = [FloralClassifier(gamma=1.0, budget=0.3, n_rounds=int(end), random_state=0).fit(moon.X_train, y) for end in ends]
figure, axes = plt.subplots(1, 2, figsize=(10.5, 4), layout="constrained")
HistoryDisplay.from_estimator(whole, "residual").plot(axes[0])
axes[0].set_title("KKT residual: it does not vanish, flips go on")
for models, name in ((single, "last iterate"), (mean, "mean of the last half")):
    axes[1].plot(ends, [model.score(moon.X_test, moon.y_test) for model in models], label=name)
axes[1].set(xlabel="rounds", ylabel="test accuracy")
axes[1].legend()
plt.show()
