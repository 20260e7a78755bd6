"""A diagnosis in words that need no theorem."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from floral_learn.theory.diagnosis import Diagnosis


def report(found: Diagnosis) -> str:
    """Return the text: a verdict, what it means, the conditions one by one, the numbers."""
    known = found.constants
    proven = all(p.holds for p in found.premises if p.statement in ("all", "Proposition"))
    local = found.equilibrium.exists and found.gap > 0 and known.kappa_spectral < 1
    if found.k == 0:
        verdict = "The attacker is off: this is a plain SVM, and its training settles wherever the step size is stable."
    elif proven:
        verdict = "This game is guaranteed to settle from any start: the paper's global result applies to it."
    elif local and found.budget <= found.k:
        verdict = "This game settles once it is close to its balance point; nothing is promised from far away."
    elif local:
        verdict = (
            "The balance point of this game is stable, but the attacker draws its flips at random in every round: the "
            "training keeps moving around it. That is expected, and why predictions use the averaged model."
        )
    else:
        verdict = (
            "No convergence guarantee of the paper covers this fit. That is common, and says nothing about accuracy: "
            "the iterates are bounded all the same, and predictions use their average."
        )
    lines = [verdict, "", *_meaning(found), "", "Conditions:"]
    for p in found.premises:
        lines.append(f"  [{'holds' if p.holds else 'FAILS'}] {p.statement}: {p.condition} ({p.measured})")
        if p.remedy:
            lines.append(f"          to make it hold: {p.remedy}")
    lines += [
        "",
        "Numbers:",
        f"  step size {known.eta:.4g}; stable below 2 / lambda_max = {2 / known.lambda_max:.4g}",
        f"  kappa_lambda {known.kappa_infinity:.4g} (infinity norm), {known.kappa_spectral:.6g} (spectral norm)",
        f"  kappa_y {found.kappa_y:.4g} as printed, {found.kappa_y_proven:.4g} as proven; kappa_z {found.kappa_z:.4g}",
        f"  kappa'_y {found.kappa_prime_y:.4g}; delta' {found.gap:.4g}",
    ]
    if found.n < found.n_fit:
        lines.append(
            f"  Only the {found.n:,} support vectors of {found.n_fit:,} rows were at hand: what fails here fails for "
            "all rows, what holds may not. Pass X and y for all of them."
        )
    return "\n".join(lines)


def _meaning(found: Diagnosis) -> list[str]:
    known = found.constants
    out = []
    if known.kappa_infinity >= 1 and known.eta_infinity is None:
        out.append(
            "Rows are so similar that one row's label moves many others: the paper's 'small enough step' does not "
            "exist for this kernel. A larger gamma makes rows more independent."
        )
    elif known.kappa_infinity >= 1:
        out.append(f"The step is too large for the guarantee; below {known.eta_infinity:.3g} it would be small enough.")
    else:
        out.append("Each round shrinks what is left of an error, row by row: the step is small enough for the kernel.")
    if not found.equilibrium.exists:
        out.append("Model and attacker chase each other in a circle: there is no pair of best answers to settle on.")
    if found.distances is not None:
        first, last = found.distances[0], found.distances[-1]
        tail = found.distances[-max(1, len(found.distances) // 4) :]
        moving = float(np.ptp(tail))
        goal = "the balance point" if found.equilibrium.exists else "the last pair of that circle"
        out.append(
            f"Over {len(found.distances)} rounds the distance to {goal} went from {first:.3g} to {last:.3g}; in the "
            f"last quarter it still moved by {moving:.2g}."
        )
    return out
