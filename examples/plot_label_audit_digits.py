"""
Label audit on digits
=====================

Some labels of scikit-learn's handwritten digits are replaced on purpose. The audit ranks all labels by how likely
they are to be wrong, without ever seeing a true one, and suggests another.
"""

# %%
# Eight per cent of the labels are wrong: half at random, half chosen near a boundary, where mistakes are plausible.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from floral_learn import find_label_issues, poison

X, truth = load_digits(return_X_y=True)
X, truth = X[:900] / 16, truth[:900]
y = poison(X, truth, attack="random", budget=0.04, random_state=0).y
y = poison(X, y, attack="near-boundary", budget=0.04, random_state=0).y
wrong = y != truth

found = find_label_issues(X, y, random_state=0)
print(found)

# %%
# The 24 most suspicious rows. A green frame is a label that we had replaced; a red one is a false alarm.
figure, axes = plt.subplots(3, 8, figsize=(10, 4.6), layout="constrained")
for ax, row in zip(axes.flat, found.ranking):
    ax.imshow(X[row].reshape(8, 8), cmap="gray_r")
    suggested = found.classes[found.suggested[row]]
    ax.set_title(f"given {y[row]}, rather {suggested}", fontsize=8)
    ax.set(xticks=[], yticks=[])
    for side in ax.spines.values():
        side.set(color="#2e7d32" if wrong[row] else "#c62828", linewidth=3)
plt.show()

# %%
# How many of the first rows of the list are really wrong, and where do the flags end?
hits = np.cumsum(wrong[found.ranking])
ranks = np.arange(1, len(y) + 1)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
axes[0].plot(ranks, hits, label="audit")
axes[0].plot(ranks, np.minimum(ranks, wrong.sum()), ":", color="0.4", label="perfect")
axes[0].plot(ranks, ranks * wrong.mean(), "--", color="0.7", label="random order")
axes[0].axvline(found.flagged.sum(), color="0.5", linewidth=1, label="flagged")
axes[0].set(xlim=(0, 200), ylim=(0, wrong.sum() + 3), xlabel="rows looked at", ylabel="wrong labels found")
axes[0].legend()
bins = np.linspace(0, 1, 26)
axes[1].hist(found.score[~wrong], bins, color="0.8", label="right")
axes[1].hist(found.score[wrong], bins, color="C3", alpha=0.7, label="wrong")
axes[1].axvline(0.5, color="0.5", linewidth=1)
axes[1].set(xlabel="score", ylabel="labels", yscale="log")
axes[1].legend()
plt.show()

# %%
# The suspicion is a score, not a probability: flags begin at 0.5. Half of the flips were chosen where they look
# plausible; those that the rest of the data supports stay hidden.
print(f"{found.flagged.sum()} flagged, {wrong[found.flagged].sum()} of them wrong, {wrong.sum()} wrong in all")
