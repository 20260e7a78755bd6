"""
Security curves
===============

How much accuracy does a model lose as an attacker flips more labels? One curve an attack, mean and deviation over
repetitions. Random flips cost an SVC almost nothing; the same number of chosen ones costs twenty points.
"""

# %%
# The victim is trained on poisoned labels and scored on clean ones.
import matplotlib.pyplot as plt
from sklearn.svm import SVC

from floral_bench.displays import SecurityCurveDisplay
from floral_learn import FloralClassifier, load_moon
from floral_learn.attacks import AlfaTilt, Farthest, NearBoundary, RandomFlips

moon = load_moon(n_train=300, n_val=1, n_test=1000)
attacks = {
    "random": RandomFlips(),
    "near-boundary": NearBoundary(),
    "farthest": Farthest(),
    "alfa-tilt": AlfaTilt(C=10, gamma=1.0, n_restarts=20),
}
budgets = (0.0, 0.05, 0.1, 0.15, 0.2)

figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True, layout="constrained")
victims = {
    "SVC": SVC(C=10, gamma=1.0),
    "FLORAL, budget 0.2": FloralClassifier(gamma=1.0, budget=0.2, n_rounds=250, random_state=0),
}
for ax, (name, victim) in zip(axes, victims.items()):
    display = SecurityCurveDisplay.from_estimator(
        victim, moon.X_train, moon.y_train, moon.X_test, moon.y_test,
        attacks=attacks, budgets=budgets, n_repeats=2, random_state=0,
    )  # fmt: skip
    display.plot(ax)
    ax.set_title(name)
    ax.grid(alpha=0.3)
plt.show()

# %%
# A budget of 0.2 costs FLORAL accuracy where there is nothing to defend against (left end of its curves) and buys some
# where there is. Which attack is worst depends on the victim: look at more than one.
