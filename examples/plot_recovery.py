"""
Which flips are flipped back?
=============================

When the attacker inside the training flips a poisoned label, that label is right again for a round. How often does
that happen, and to which labels?
"""

# %%
import matplotlib.pyplot as plt

from floral_bench.recovery import RecoveryDisplay, recovery
from floral_learn import FloralClassifier, load_moon, poison

moon = load_moon()
figure, axes = plt.subplots(2, 2, figsize=(10, 7.4), layout="constrained")
for row, level in zip(axes, (0.1, 0.25)):
    bad = poison(moon.X_train, moon.y_train, attack="farthest", budget=level, random_state=0)
    clf = FloralClassifier(gamma=1.0, budget=2 * level, random_state=0).fit(moon.X_train, bad.y)
    found = recovery(clf, bad.indices)
    display = RecoveryDisplay(found)
    display.plot(row[0], label=f"{level:.0%} flipped")
    display.plot_points(moon.X_train, row[1])
    row[1].set_title(f"test accuracy {clf.score(moon.X_test, moon.y_test):.3f}")
plt.show()

# %%
# A label that is never flipped back keeps its full weight in the model. At 25 % one of the two poisoned corners is
# flipped back and the other is not: there the flipped labels are the majority, and nothing in the data says
# otherwise.
