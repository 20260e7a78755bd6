"""
What the theory says about a fit
================================

The paper proves that training settles, under conditions. ``diagnose`` computes them for a fit, and says in words
which hold. With a kernel of usual width the central one fails, whatever the step size. Nothing breaks: duals stay
bounded, and predictions use their average.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from floral_learn import FloralClassifier
from floral_learn.game.arrays import NUMPY
from floral_learn.game.kernels import Kernel
from floral_learn.paper import constants, diagnose

X, y = make_moons(100, noise=0.2, random_state=0)
usual = FloralClassifier(gamma=1.0, budget=0.06, random_state=0).fit(X, y)
found = diagnose(usual, X, y)
print(found)

# %%
# kappa_lambda below 1 is what convergence needs. In the infinity norm, which the paper uses, it depends on how narrow
# the kernel is; no step size helps a wide one. In the spectral norm it is (numerically) never above 1 for stable steps.
gammas = np.geomspace(0.1, 1000, 30)
infinity, spectral = [], []
for gamma in gammas:
    K = Kernel("rbf", gamma=gamma)(X, X, NUMPY)
    known = constants(K, eta=1 / np.linalg.eigvalsh(K)[-1])
    infinity.append(known.kappa_infinity)
    spectral.append(known.kappa_spectral)

figure, axes = plt.subplots(1, 2, figsize=(10.5, 4), layout="constrained")
axes[0].semilogx(gammas, infinity, label="infinity norm (the paper's)")
axes[0].semilogx(gammas, spectral, label="spectral norm")
axes[0].axhline(1, color="0.5", ls=":")
axes[0].axvline(1.0, color="0.8")
axes[0].text(1.1, 1.02, "gamma = 1", fontsize=8, color="0.4")
axes[0].set(xlabel="gamma of the rbf kernel", ylabel="kappa_lambda, step 1 / lambda_max")
axes[0].legend()
found.plot(axes[1])
axes[1].set_title("gamma = 1: bounded, and never settling")
plt.show()
