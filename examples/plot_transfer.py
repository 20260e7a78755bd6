"""
Black-box transfer
==================

An attacker rarely knows your model. Labels are poisoned against one model and hurt another: rows of the picture are
the stand-ins that the attacker used, columns the victims.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from floral_learn import FloralClassifier, load_moon, transfer_table
from floral_learn.attacks import Farthest

moon = load_moon(n_train=300, n_val=1, n_test=1000)
stand_ins = {
    "logistic": LogisticRegression(),
    "SVC": SVC(C=10, gamma=1.0),
    "k-NN": KNeighborsClassifier(),
    "forest": RandomForestClassifier(50, random_state=0),
}
victims = stand_ins | {"FLORAL": FloralClassifier(gamma=1.0, budget=0.3, random_state=0)}
table = transfer_table(
    moon.X_train, moon.y_train, moon.X_test, moon.y_test,
    attacks={name: Farthest(budget=0.15, surrogate=model) for name, model in stand_ins.items()},
    victims=victims, random_state=0,
)  # fmt: skip

# %%
drops = table.drops()
values = np.array([[drops[row][column] for column in victims] for row in stand_ins])
figure, ax = plt.subplots(figsize=(6.8, 4.6), layout="constrained")
ax.imshow(values, cmap="OrRd", vmin=0, vmax=0.25)
for (i, j), value in np.ndenumerate(values):
    ax.text(j, i, f"{value:+.3f}", ha="center", va="center", fontsize=9)
labels = [f"{name}\n({table.clean[name]:.3f} clean)" for name in victims]
ax.set(xticks=range(len(victims)), yticks=range(len(stand_ins)), yticklabels=stand_ins, ylabel="attacker's stand-in")
ax.set_xticklabels(labels, fontsize=8)
ax.set_title("accuracy lost to 15 % farthest flips")
plt.show()

# %%
# A model that memorises its training rows (a forest, k-NN) is sure of all of them and has little to say about which to
# flip: labels poisoned against it hurt few others. FLORAL starts lower on clean labels, because its budget of 0.3 is
# set for an attack. It loses half as much as an SVC to the linear stand-in, and as much to an attacker who uses an SVC.
