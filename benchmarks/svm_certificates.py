"""For which C the SVM itself is linear in its labels, how often duals are at their bound, and what is certified there.

python benchmarks/svm_certificates.py  (about half a minute; its table is in docs/certificates.md)
"""

import argparse

import numpy as np
from sklearn.datasets import load_breast_cancer, make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from floral_bench.public_tables import load_table
from floral_bench.reporting.making import begin
from floral_learn import CertifiedKernelClassifier

TABLES = ("Moon", "breast cancer", "banknote", "htru2", "magic04", "phoneme", "pima", "spambase")
COSTS = (0.01, 0.1, 1.0, 10.0)
SHARES = (0.0, 0.01, 0.02, 0.05)


def split(name):
    """At most 500 training rows, up to 1,000 test rows, standardised."""
    if name == "Moon":
        X, y = make_moons(1500, noise=0.2, random_state=0)
    else:
        X, y = load_breast_cancer(return_X_y=True) if name == "breast cancer" else load_table(name)
    X, y = np.asarray(X, dtype=float), np.asarray(y)
    order, n = np.random.default_rng(0).permutation(len(y)), min(500, len(y) // 2)
    train, test = order[:n], order[n : n + 1000]
    scaler = StandardScaler().fit(X[train])
    return scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test]


def line(name):
    X, y, X_test, y_test = split(name)
    n, gamma = len(y), 1 / (X.shape[1] * X.var())
    small = 1 / rbf_kernel(X, gamma=gamma).sum(axis=1).max()
    bound = [np.isclose(np.abs(SVC(C=C, gamma=gamma).fit(X, y).dual_coef_), C).sum() / n for C in COSTS]
    flips = np.rint(np.array(SHARES) * n).astype(int)
    svm = CertifiedKernelClassifier(gamma=gamma, ridge=1e6 * n, fit_intercept=False).fit(X, y)
    ridge = CertifiedKernelClassifier(gamma=gamma).fit(X, y)
    certified = [model.certified_accuracy(X_test, y_test, flips) for model in (svm, ridge)]
    largest = max(np.mean(y_test == label) for label in np.unique(y))
    shown = (" / ".join(f"{share:.3f}" for share in shares) for shares in certified)
    accuracy = SVC(gamma=gamma).fit(X, y).score(X_test, y_test)
    cells = [name, f"{small:.4f}", " / ".join(f"{share:.0%}" for share in bound), f"{accuracy:.3f}", *shown]
    print("| " + " | ".join([*cells, f"{largest:.3f}"]).replace("%", " %") + " |", flush=True)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    print(f"{begin(trial=True).heading()}\n")
    at = " / ".join(f"{C:g}" for C in COSTS)
    print(
        f"| data | linear up to C | duals of SVC at their bound, C = {at} | SVC() | SVM, small C | ridge | majority |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name in TABLES:
        line(name)
