"""
Trusted labels and weights through a search
===========================================

scikit-learn hands metadata through pipelines, searches and cross-validation to whoever asks for it. Here some labels
were checked by hand (``trusted``), some rows count twice (``sample_weight``), and rows of one person must not stand on
both sides of a split (``groups``).
"""

import matplotlib.pyplot as plt
import numpy as np
import sklearn
from sklearn.datasets import make_moons
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from floral_learn import FloralClassifier, poison

X, y = make_moons(300, noise=0.2, random_state=0)
bad = poison(X, y, attack="random", budget=0.15, random_state=0)
rng = np.random.default_rng(0)
trusted = ~np.isin(np.arange(300), bad.indices) & (rng.random(300) < 0.2)  # right labels that somebody has checked
weight = np.where(trusted, 2.0, 1.0)
person = np.arange(300) % 15

# %%
# The classifier asks for what it wants in ``fit`` and ``score``; the scaler says that weights are not its business.
sklearn.set_config(enable_metadata_routing=True)
floral = (
    FloralClassifier(gamma=1.0, random_state=0)
    .set_fit_request(trusted=True, sample_weight=True)
    .set_score_request(sample_weight=True)
)
pipe = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), floral)
search = GridSearchCV(pipe, {"floralclassifier__budget": [0.02, 0.1, 0.3]}, cv=GroupKFold(3))
search.fit(X, bad.y, trusted=trusted, sample_weight=weight, groups=person)
sklearn.set_config(enable_metadata_routing=False)
print("budget:", search.best_params_["floralclassifier__budget"])
flip_rate = search.best_estimator_[-1].flip_rate_
print("trusted labels that were ever flipped:", int((flip_rate[trusted] > 0).sum()))

# %%
# The attacker never touched a trusted label.
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.scatter(*X.T, c=bad.y, cmap="coolwarm", s=12, alpha=0.5)
ax.scatter(*X[trusted].T, s=40, facecolors="none", edgecolors="0.4", lw=0.8, label="trusted")
often = flip_rate > 0.2
ax.scatter(*X[often].T, s=60, facecolors="none", edgecolors="black", lw=1.4, label="flipped in every fifth round")
ax.set(xticks=[], yticks=[])
ax.legend(frameon=False)
plt.show()
