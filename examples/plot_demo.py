"""
A few answers against a poisoned region
=======================================

An attacker flips a fifth of the training labels, far from a linear boundary. From the labels alone no rule can know
which region is wrong; a person who looks at a few rows can say. ``make demo`` runs this file.
"""

# %%
# The rows of the table: models on the given labels, the same SVC after a person fixed or answered some, and the SVC on
# the true labels.
import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from floral_learn import FloralClassifier, LabelReview, load_moon, poison

SHARE = 0.2


def problem(data, split):
    """Training rows, given labels, true labels, test rows, their labels."""
    if data == "moon":
        moon = load_moon(random_state=split)
        X, true, X_test, y_test = moon.X_train, moon.y_train, moon.X_test, moon.y_test
    else:
        rows, labels = {"breast cancer": load_breast_cancer, "digits": load_digits}[data](return_X_y=True)
        size = min(600, len(rows) // 2)
        X, X_test, true, y_test = train_test_split(rows, labels, train_size=size, random_state=split, stratify=labels)
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    return X, poison(X, true, attack="farthest", budget=SHARE, random_state=0).y, true, X_test, y_test


def models(X, given, true):
    """Name -> fitted model, and the rows that a person looked at."""
    fitted = {
        "SVC on the given labels": (SVC().fit(X, given), []),
        "FLORAL, default": (FloralClassifier(random_state=0).fit(X, given), []),
        "FLORAL, given the true share": (FloralClassifier(budget=SHARE, random_state=0).fit(X, given), []),
    }
    held_out = cross_val_predict(LogisticRegression(max_iter=1000), X, given, cv=5, method="predict_proba")
    doubtful = np.argsort(held_out[np.arange(len(given)), np.searchsorted(np.unique(given), given)])[:50]
    fixed = given.copy()
    fixed[doubtful] = true[doubtful]
    fitted["50 most doubtful labels fixed by a person"] = SVC().fit(X, fixed), doubtful
    review, asked = LabelReview(X, given, random_state=0), []
    for answers in (10, 50):
        while len(asked) < answers:
            row = review.ask(1)
            review.answer(row, true[row])  # here a person would look at the row
            asked.extend(row)
        fitted[f"{answers} answers to what LabelReview asks"] = review.train(SVC()), list(asked)
    fitted["SVC on the true labels"] = SVC().fit(X, true), []
    return fitted


# %%
# Test accuracy, the mean of the splits. These data sets are small and their classes well separated.
def table(datasets=("moon", "breast cancer", "digits"), splits=(1, 2, 3)):
    """Name -> mean test accuracy on each data set."""
    scores = {}
    for data in datasets:
        for split in splits:
            X, given, true, X_test, y_test = problem(data, split)
            for name, (model, _) in models(X, given, true).items():
                scores.setdefault(name, {}).setdefault(data, []).append(model.score(X_test, y_test))
    return {name: {data: np.mean(found) for data, found in by.items()} for name, by in scores.items()}


# %%
# Moon: crosses are flipped labels, rings the ten rows that were asked about.
X, given, true, X_test, y_test = problem("moon", 1)
low, high = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
grid = np.stack(np.meshgrid(*(np.linspace(a, b, 250) for a, b in zip(low, high))), axis=-1)
colours, flipped = np.array(["#0072B2", "#E69F00"])[(given == given.max()).astype(int)], given != true
figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.6), sharex=True, sharey=True, layout="constrained")
made = models(X, given, true)
for ax, name in zip(axes, ("SVC on the given labels", "10 answers to what LabelReview asks")):
    model, asked = made[name]
    side = (model.predict(grid.reshape(-1, 2)) == given.max()).reshape(grid.shape[:2])
    ax.contourf(*grid.T, side.T, levels=[-0.5, 0.5, 1.5], colors=["#0072B2", "#E69F00"], alpha=0.16)
    ax.contour(*grid.T, side.T, levels=[0.5], colors="black", linewidths=1.8)
    ax.scatter(*X[~flipped].T, c=colours[~flipped], s=11, linewidths=0, label="given label")
    ax.scatter(*X[flipped].T, c=colours[flipped], s=34, marker="X", edgecolors="black", label="flipped label")
    ax.scatter(*X[asked].T, s=130, facecolors="none", edgecolors="#D7263D", linewidths=1.8, label="asked about")
    ax.set(title=f"{name}: test accuracy {model.score(X_test, y_test):.3f}", xticks=[], yticks=[])
figure.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
figure.suptitle(f"Moon, {100 * SHARE:.0f} % of the training labels flipped")
if __name__ == "__main__" and sys.argv[1:]:  # make demo
    figure.savefig(sys.argv[1], dpi=130)
    for name, by_data in table().items():
        print(f"{name:45}", *(f"{data} {score:.3f}" for data, score in by_data.items()), sep="  ")
plt.show()
