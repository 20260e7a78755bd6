"""
Who gave the wrong labels?
==========================

With a column that says who labelled each row, the audit ranks people and sources, cautiously for those with few rows.
"""

# %%
# Ten annotators label iris-like flowers. One mixes up two species, one is hurried, the others are careful.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler

from floral_learn import find_label_issues

X, truth = load_iris(return_X_y=True, as_frame=False)
rng = np.random.default_rng(0)
rows = rng.integers(0, len(X), 600)  # measured again, with a little noise
X = StandardScaler().fit_transform(X[rows] + rng.normal(scale=0.1, size=(600, 4)))
truth = truth[rows]
who = rng.choice([f"annotator {i}" for i in range(10)], 600, p=np.r_[0.01, np.full(9, 0.11)])
y = truth.copy()
mixes, hurried = who == "annotator 3", (who == "annotator 7") & (rng.random(600) < 0.3)
y[mixes & (truth == 1)] = 2
y[hurried] = (truth[hurried] + rng.integers(1, 3, hurried.sum())) % 3

found = find_label_issues(X, y, groups=who, random_state=0)
ranking = found.group_ranking()
print(ranking.round(3))

# %%
truly = [float((y != truth)[who == name].mean()) for name in ranking["group"]]
figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained", width_ratios=(1.6, 1))
place = np.arange(len(ranking))
axes[0].barh(place, 100 * ranking["score"], color="C0", height=0.6, label="flagged (shrunk)")
axes[0].plot(100 * np.array(truly), place, "kx", label="truly wrong")
axes[0].set(yticks=place, xlabel="wrong labels (%)")
axes[0].set_yticklabels([f"{name} ({rows} rows)" for name, rows in zip(ranking["group"], ranking["rows"])])
axes[0].invert_yaxis()
axes[0].legend()
counts = found.confusion()
axes[1].imshow(counts, cmap="Blues")
for (i, j), count in np.ndenumerate(counts):
    axes[1].text(j, i, str(count), ha="center", va="center")
axes[1].set(xlabel="suggested class", ylabel="given class", title="flagged labels", xticks=range(3), yticks=range(3))
plt.show()
