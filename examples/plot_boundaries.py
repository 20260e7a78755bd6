"""
Boundaries under attack
=======================

An attacker flips the labels that a linear model is surest of. The more they flip, the further an SVC bends around
them. FLORAL, given the share of wrong labels, holds out longer; at 20 % it gives way too.
"""

# %%
# Moon has 500 training and 1,000 test rows. Test labels are clean; only training labels are attacked.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVC

from floral_learn import FloralClassifier, SanitizedClassifier, load_moon, poison
from floral_learn.paper import KNNRelabel

moon = load_moon()
levels = (0.0, 0.1, 0.2)


def models(level):
    """What is compared. The level is what LS-SVM and FLORAL are told, as in the paper."""
    told = max(level, 0.05)
    return {
        "SVC": SVC(C=10, gamma=1.0),
        "LS-SVM (k-NN relabels)": SanitizedClassifier(KNNRelabel(threshold=1 - told), SVC(gamma=1.0)),
        "FLORAL": FloralClassifier(gamma=1.0, budget=2 * level, random_state=0),
    }


# %%
# One row per method, one column per level. Crosses are flipped labels.
grid = np.stack(np.meshgrid(np.linspace(-2.4, 2.4, 150), np.linspace(-2.8, 2.8, 150)), axis=-1)
colours = np.array(["#0072B2", "#E69F00"])
figure, axes = plt.subplots(3, 3, figsize=(9.5, 8.6), sharex=True, sharey=True, layout="constrained")
for column, level in enumerate(levels):
    y = poison(moon.X_train, moon.y_train, attack="farthest", budget=level, random_state=0).y
    flipped = y != moon.y_train
    for row, (name, model) in enumerate(models(level).items()):
        ax = axes[row, column]
        model.fit(moon.X_train, y)
        values = model.decision_function(grid.reshape(-1, 2)).reshape(grid.shape[:2])
        ax.contourf(grid[..., 0], grid[..., 1], values > 0, levels=[-0.5, 0.5, 1.5], colors=colours, alpha=0.15)
        ax.contour(grid[..., 0], grid[..., 1], values, levels=[0], colors="black", linewidths=1.5)
        ax.scatter(*moon.X_train[~flipped].T, c=colours[(y[~flipped] > 0).astype(int)], s=6, linewidths=0)
        ax.scatter(
            *moon.X_train[flipped].T, c=colours[(y[flipped] > 0).astype(int)], s=26, marker="X", ec="black", lw=0.5
        )
        ax.set(xticks=[], yticks=[], title=f"{name}: {model.score(moon.X_test, moon.y_test):.3f}")
        ax.title.set_fontsize(10)
for ax, level in zip(axes[-1], levels):
    ax.set_xlabel(f"{level:.0%} of the labels flipped")
plt.show()
