"""
The budget path
===============

``budget`` decides how many labels the attacker inside the training may choose from, and nobody tells you the right
number. ``budget="auto"`` chooses one from the untrusted labels alone: it asks SVMs that did not see a row, and the rows
nearby, how well its label is supported. The path shows what it saw.
"""

# %%
# Breast cancer, three sets of training labels. The orange part are the labels that the rest contradicts.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from floral_learn import BudgetPathDisplay, FloralClassifier, load_moon, poison

X, y = load_breast_cancer(return_X_y=True)
X, X_test, y, y_test = train_test_split(StandardScaler().fit_transform(X), y, test_size=0.4, random_state=0)
figure, axes = plt.subplots(1, 3, figsize=(12, 4.4), sharey=True, layout="constrained")
for ax, (attack, level) in zip(axes, (("random", 0.0), ("random", 0.2), ("farthest", 0.2))):
    given = poison(X, y, attack=attack, budget=level, random_state=0).y
    clf = FloralClassifier(budget="auto", random_state=0).fit(X, given)
    display = BudgetPathDisplay.from_estimator(clf).plot(ax)
    name = f"{level:.0%} {attack} flips" if level else "labels as they are"
    scores = clf.score(X_test, y_test), SVC().fit(X, given).score(X_test, y_test)
    ax.set_title(f"{name}\ntest accuracy: FLORAL {scores[0]:.3f}, SVC() {scores[1]:.3f}", fontsize=10, loc="left")
    print(f"{name}: {clf.selection_.reason}")
plt.show()

# %%
# Random flips stand out, and most are found. Of the farthest ones, which support each other, few do: the rule sees less
# than there is, and errs to the side of doing nothing.
#
# With a fixed budget the choice is yours. On Moon, whose farthest flips nothing contradicts, two curves can be seen
# without clean labels, and one cannot.
moon = load_moon()
budgets = np.array([0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4])
figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
for level, colour in ((0.0, "C0"), (0.1, "C1"), (0.2, "C3")):
    given = poison(moon.X_train, moon.y_train, attack="farthest", budget=level, random_state=0).y
    path = [FloralClassifier(gamma=1.0, budget=b, random_state=0).fit(moon.X_train, given) for b in budgets]
    predictions = np.array([model.predict(moon.X_train) for model in path])
    disagreement = 100 * (predictions != given).mean(axis=1)
    axes[0].plot(100 * budgets, disagreement, "o-", ms=4, color=colour, label=f"{level:.0%} flipped")
    changed = 100 * (predictions[1:] != predictions[:-1]).mean(axis=1)
    axes[1].plot(100 * budgets[1:], changed, "o-", ms=4, color=colour)
    axes[2].plot(100 * budgets, [m.score(moon.X_test, moon.y_test) for m in path], "o-", ms=4, color=colour)
axes[0].set(title="visible: disagreement with given labels", ylabel="training rows (%)")
axes[1].set(title="visible: changed since the last budget", ylabel="training rows (%)")
axes[2].set(title="hidden: accuracy on clean test labels")
for ax in axes:
    ax.set_xlabel("budget (%)")
    ax.grid(alpha=0.3)
    ax.title.set_fontsize(10)
axes[0].legend()
plt.show()

# %%
# The best budget here is one and a half times the share of flipped labels, and clean labels want none. The visible
# curves do not name it; they show where the model begins to give up labels, and those are the rows to look at.
