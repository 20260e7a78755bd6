"""
Certificates
============

FLORAL promises nothing about a single prediction. Three other classifiers do: for each prediction they state how many
labels an attacker would have to change, at least, to change it. The price is accuracy.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVC

from floral_learn import (
    CertifiedKernelClassifier,
    PartitionAggregationClassifier,
    RandomizedSmoothingClassifier,
    load_moon,
)

moon = load_moon()
models = {
    "kernel ridge, exact, ridge 10": CertifiedKernelClassifier(gamma=1.0, ridge=10.0),
    "kernel ridge, exact, wide": CertifiedKernelClassifier(gamma=0.05, ridge=10.0),
    "randomised smoothing, q = 0.1": RandomizedSmoothingClassifier(0.1, kernel="rbf", gamma=1.0, ridge=1.0),
    "partitions, 100 SVMs": PartitionAggregationClassifier(SVC(C=10, gamma=1.0), n_partitions=100),
    "partitions, 50 SVMs": PartitionAggregationClassifier(SVC(C=10, gamma=1.0), n_partitions=50),
}

# %%
# Left, certified accuracy at r: the share of test rows that are predicted right and stay so whichever r labels change.
# Right, where the promise is strong: far from the boundary, and where there are many rows.
flips = np.arange(0, 61)
figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
for name, model in models.items():
    shares = model.fit(moon.X_train, moon.y_train).certified_accuracy(moon.X_test, moon.y_test, flips)
    axes[0].step(flips, shares, where="post", label=name)
axes[0].axhline(
    SVC(C=10, gamma=1.0).fit(moon.X_train, moon.y_train).score(moon.X_test, moon.y_test), color="0.6", ls=":"
)
axes[0].text(60, 0.97, "SVC, no promise", ha="right", fontsize=8, color="0.4")
axes[0].set(xlabel="labels that an attacker may change (of 500)", ylabel="certified accuracy", ylim=(0, 1.02))
axes[0].legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2)

model = models["kernel ridge, exact, ridge 10"]
grid = np.stack(np.meshgrid(np.linspace(-2.4, 2.4, 60), np.linspace(-2.8, 2.8, 60)), axis=-1)
radius = model.certified_flips(grid.reshape(-1, 2)).reshape(grid.shape[:2])
shown = axes[1].pcolormesh(grid[..., 0], grid[..., 1], np.maximum(radius, 0), cmap="Greens", shading="nearest")
axes[1].scatter(*moon.X_train.T, c=np.where(moon.y_train > 0, "#E69F00", "#0072B2"), s=5, lw=0)
axes[1].set(xticks=[], yticks=[], title="certified flips (kernel ridge, ridge 10)")
figure.colorbar(shown, ax=axes[1])
plt.show()
