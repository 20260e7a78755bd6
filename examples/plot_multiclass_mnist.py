"""
Ten classes
===========

FLORAL plays a game for each pair of classes, all of them columns of one batch, and classes are voted for as in SVC.
Compared here, all with C = 1: SVC, FLORAL with its default budget, and FLORAL given the share of flipped labels.

With MNIST in ``FLORAL_DATA``, 800 of its images are used; otherwise scikit-learn's small digits.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from floral_bench.datasets import load_mnist
from floral_learn import FloralClassifier, poison
from floral_learn.datasets.files import search_path

if any((folder / "mnist.npz").is_file() for folder in search_path()):
    data = load_mnist(digits=None, n_train=800, n_test=2_000, random_state=0)
    X, y, X_test, y_test, digits, side = data.X_train, data.y_train, data.X_test, data.y_test, "MNIST", 28
else:
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 16, y, test_size=0.4, random_state=0)
    digits, side = "digits", 8

# %%
# Flip labels of the rows that hold an SVM up (the paper's attacker, applied once), and train on the result.
levels = np.array([0.0, 0.1, 0.2, 0.3])
scores = {}
for level in levels:
    bad = poison(X, y, attack="randomized-top-k", budget=level, random_state=0)
    models = {
        "SVC": SVC(),
        "FLORAL": FloralClassifier(random_state=0),
        "FLORAL, given the share": FloralClassifier(budget=max(level, 0.02), random_state=0),
    }
    for name, model in models.items():
        scores.setdefault(name, []).append(model.fit(X, bad.y).score(X_test, y_test))
    print(f"{level:.0%} flipped:", ", ".join(f"{name} {values[-1]:.3f}" for name, values in scores.items()))

# %%
# Beside the curves: the rows whose labels the last model distrusts most.
issues = model.label_issues()
figure = plt.figure(figsize=(10, 4), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=(1.2, 1))
ax = left.subplots()
for method, values in scores.items():
    ax.plot(100 * levels, values, "o-", label=method)
ax.set(xlabel="flipped labels (%)", ylabel="test accuracy", title=f"{digits}, ten classes")
ax.grid(alpha=0.3)
ax.legend()
for image, (_, issue) in zip(right.subplots(3, 4).flat, issues.head(12).iterrows()):
    image.imshow(X[issue["row"]].reshape(side, side), cmap="gray_r")
    image.set_title(f"given {issue['given']}, rather {issue['suggested']}", fontsize=7)
    image.set(xticks=[], yticks=[])
plt.show()
