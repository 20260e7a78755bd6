"""
The same game on a cluster
==========================

Rows may lie on the workers of a dask cluster: each holds its rows and its part of the low-rank kernel, and the game,
played here, asks them for products. In float32 the flips are those of one machine but for rounding.

Here the "cluster" is two threads of this process. On a real one connect with ``Client("tcp://scheduler:8786")``.
"""

# %%
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from dask.distributed import Client

from floral_learn import FloralClassifier, poison

rng = np.random.default_rng(0)
X = rng.normal(size=(3_000, 2))
truth = (np.sin(2 * X[:, 0]) > X[:, 1]).astype(int)
bad = poison(X, truth, attack="farthest", budget=0.05, random_state=0)
settings = {"gram": 64, "gamma": 1.0, "budget": 0.1, "n_rounds": 60, "random_state": 0}

with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as client:
    many = FloralClassifier(**settings).fit(da.from_array(X, chunks=(1_000, 2)), da.from_array(bad.y, chunks=1_000))
    print(many.gram_)
one = FloralClassifier(**settings).fit(X, bad.y)

# %%
# Flips and decision values, side by side.
shared = [len(np.intersect1d(a, b)) / len(a) for a, b in zip(many.history_["flips"][1:], one.history_["flips"][1:])]
print(f"flips that both games have: {np.mean(shared):.1%}")
difference = np.abs(many.decision_function(X) - one.decision_function(X)).max()
print(f"largest difference of a decision value: {difference:.1e}")

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
axes[0].plot(one.history_["objective"], lw=4, color="0.8", label="one machine")
axes[0].plot(many.history_["objective"], lw=1.2, color="C3", label="two workers")
axes[0].set(xlabel="round", ylabel="dual objective")
axes[0].legend()
parts = np.repeat([0, 1, 2], 1_000)
axes[1].scatter(*X.T, c=parts, cmap="Pastel1", s=4)
top = np.argsort(many.flip_rate_)[-100:]
axes[1].scatter(*X[top].T, c=many.flip_rate_[top], cmap="Reds", s=22, ec="black", lw=0.4)
axes[1].set(xticks=[], yticks=[], title="colour: chunk of rows; rings: rows flipped most often")
plt.show()
