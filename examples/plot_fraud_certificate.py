"""
How many labels must a fraudster change?
========================================

A fraud model is trained on past payments whose labels somebody decided. A fraudster who gets some of his payments
marked as honest can teach it to let the next one through. ``CertifiedKernelClassifier`` says for every prediction how
many labels that takes, exactly. The payments are made up: one in ten is fraud, in two kinds.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from floral_learn import CertifiedKernelClassifier

rng = np.random.default_rng(0)


def payments(n):
    """Amount, hour and distance (logarithms), and whether it is fraud."""
    fraud = rng.random(n) < 0.1
    night = fraud & (rng.random(n) < 0.5)
    rows = rng.normal([3.0, 14.0, 1.0], [1.0, 4.0, 0.8], size=(n, 3))
    rows[night] = rng.normal([4.5, 3.0, 2.0], [0.7, 1.5, 0.8], size=(night.sum(), 3))
    far = fraud & ~night
    rows[far] = rng.normal([4.0, 14.0, 4.5], [0.7, 4.0, 0.7], size=(far.sum(), 3))
    return rows, np.where(fraud, "fraud", "honest")


X, y = payments(800)
X_new, y_new = payments(600)
scaler = StandardScaler().fit(X)
X, X_new = scaler.transform(X), scaler.transform(X_new)

# %%
# The fraudster can have his own payments marked as honest, and nothing else: ``possible_flips``. More ridge makes a
# prediction rest on more labels, so that it is harder to turn, and misses more fraud; too much of it helps nobody.
only = {"fraud": ["honest"]}
models = {
    f"ridge {ridge}": CertifiedKernelClassifier(gamma=0.3, ridge=ridge, possible_flips=only) for ridge in (1, 10, 30)
}
fraud, flips = y_new == "fraud", np.arange(16)
found = {name: model.fit(X, y).certificate(X_new[fraud]) for name, model in models.items()}
for name, certificate in found.items():
    caught = certificate.prediction == "fraud"
    typical = np.median(certificate.flips[caught])
    print(f"{name}: {caught.mean():.0%} of fraud is caught, half of it survives {typical:.0f} or more")
plain = SVC(gamma=0.3).fit(X, y).predict(X_new[fraud]) == "fraud"
print(f"SVC, without a promise: {plain.mean():.0%} is caught")

# %%
# The number is exact: that many flips leave the prediction, one more turns it.
certificate = found["ridge 1"]
caught = np.flatnonzero(certificate.prediction == "fraud")
row = caught[np.argmax(certificate.flips[caught])]  # the payment that is hardest to turn
needed = certificate.rows[row]
for count in (len(needed) - 1, len(needed)):
    changed = y.copy()
    changed[needed[:count]] = "honest"
    again = CertifiedKernelClassifier(gamma=0.3, ridge=1).fit(X, changed).predict(X_new[fraud][[row]])[0]
    print(f"{count} labels changed: {again}")

# %%
# Left: of all fraud, what is caught whichever so many labels are changed. Right: the payments, and how many labels turn
# each that is caught.
figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
for name, made in found.items():
    shares = [((made.prediction == "fraud") & (made.flips >= count)).mean() for count in flips]
    axes[0].step(flips, shares, where="post", label=name)
axes[0].axhline(plain.mean(), color="0.6", ls=":", label="SVC, no promise")
axes[0].set(xlabel="labels changed, of 800", ylabel="fraud that is caught for certain", ylim=(0, 1.03))
axes[0].legend()
missed = certificate.prediction != "fraud"
axes[1].scatter(X_new[~fraud][:, 1], X_new[~fraud][:, 2], s=4, color="0.8", label="honest")
shown = axes[1].scatter(*X_new[fraud][~missed, 1:].T, c=certificate.flips[~missed] + 1, s=28, cmap="viridis")
axes[1].scatter(*X_new[fraud][missed, 1:].T, marker="x", color="C3", label="fraud that is missed")
axes[1].set(
    xlabel="hour (standardised)", ylabel="distance (standardised)", title="labels that turn each fraud, ridge 1"
)
axes[1].legend(loc="lower right")
figure.colorbar(shown, ax=axes[1])
plt.show()
