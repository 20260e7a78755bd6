"""The numbers by which ContradictedLabels decides, all in one place; `benchmarks/contradicted_rule.py` chose them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """When a pattern counts, and when acting on it counts as help.

    Attributes
    ----------
    level : float
        One-way flips: the lowest slope in the core over the slope at the rim, 1 where labels were lost at random.
    most_foreign : float
        One-way flips: largest slope, the share of all other labels that would have to be wrong.
    own_in_core : float
        One-way flips: share of own labels in the core above which a plain model is right anyway.
    one_way_gain : float
        Rise of the recalls, summed over classes and on the given labels, without which one-way flips are left alone.
    scattered_gain : float
        Rise of the held-out accuracy, times the root of the number of rows, without which scattered suspects are left
        alone: 0.8 is two standard errors if one prediction in six changes, 0.04 with 400 rows.
    scattered_weight : float
        Weight of a scattered suspect.
    """

    level: float = 0.6
    most_foreign: float = 0.55
    own_in_core: float = 0.5
    one_way_gain: float = 0.2
    scattered_gain: float = 0.8
    scattered_weight: float = 0.5


RULE = Rule()
