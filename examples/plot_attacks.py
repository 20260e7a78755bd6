"""
Six attacks, one budget
=======================

The same number of flipped labels, spent in six ways. Where an attacker spends it decides what it costs.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.svm import SVC

from floral_learn import load_moon, poison
from floral_learn.attacks import PoisonDisplay

moon = load_moon(n_train=300, n_val=1, n_test=1000)
attacks = {
    "random": {},
    "near-boundary": {},
    "farthest": {},
    "randomized-top-k": {},
    "alfa": {"C": 10, "gamma": 1.0, "n_init": 3},
    "alfa-tilt": {"C": 10, "gamma": 1.0, "n_restarts": 20},
}
figure, axes = plt.subplots(2, 3, figsize=(10.5, 6.6), layout="constrained")
for ax, (name, params) in zip(axes.flat, attacks.items()):
    result = poison(moon.X_train, moon.y_train, attack=name, budget=0.15, random_state=0, **params)
    accuracy = SVC(C=10, gamma=1.0).fit(moon.X_train, result.y).score(moon.X_test, moon.y_test)
    PoisonDisplay.from_result(moon.X_train, result, title=f"{name}: SVC {accuracy:.3f}").plot(ax)
    ax.set(xticks=[], yticks=[], xlabel="", ylabel="")
    ax.get_legend().remove()
plt.show()

# %%
# ``randomized-top-k`` flips the rows that an SVM leans on. As a one-shot attack it is weak: these rows sit where
# labels are doubtful anyway, and flipping a mislabelled one repairs it. Inside FLORAL's training the same attacker
# plays every round.
