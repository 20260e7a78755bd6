"""
The budget path
===============

``budget`` is the share of rows among which the attacker inside the training may choose. It decides everything, and
nobody tells you the right one. Fit a path of budgets and look at two curves that need no clean labels: how many
training labels the model disagrees with, and how much predictions change from one budget to the next.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from floral_learn import FloralClassifier, load_moon, poison

moon = load_moon()
budgets = np.array([0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4])

figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), sharey=False, layout="constrained")
for level, colour in ((0.0, "C0"), (0.1, "C1"), (0.2, "C3")):
    y = poison(moon.X_train, moon.y_train, attack="farthest", budget=level, random_state=0).y
    path = [FloralClassifier(gamma=1.0, budget=b, random_state=0).fit(moon.X_train, y) for b in budgets]
    predictions = np.array([model.predict(moon.X_train) for model in path])
    name = f"{level:.0%} flipped"
    axes[0].plot(100 * budgets, 100 * (predictions != y).mean(axis=1), "o-", ms=4, color=colour, label=name)
    changed = 100 * (predictions[1:] != predictions[:-1]).mean(axis=1)
    axes[1].plot(100 * budgets[1:], changed, "o-", ms=4, color=colour)
    accuracy = [model.score(moon.X_test, moon.y_test) for model in path]
    axes[2].plot(100 * budgets, accuracy, "o-", ms=4, color=colour)
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
# On the right is what a user cannot see: the best budget here is one and a half times the share of flipped labels, and
# clean labels want none. The left and middle curves are what there is to go by. They do not name the best budget; they
# show where the model begins to give up labels, and those are the rows to look at.
