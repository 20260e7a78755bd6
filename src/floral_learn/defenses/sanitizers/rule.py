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
    least_share : float
        One-way flips: labels of the class, as a share of what it would have if all classes were even. A class with
        fewer may be rare by nature.
    most_clumped : float
        One-way flips: deviations by which labels inside the region may keep to their own kind.
    scattered : {"both", "confident", "restored"}
        Scattered suspects: labels for which both judges name the same other class ("both"), or labels that look more
        like another class than that class's own labels do on average ("confident"); "restored" also makes up for the
        labels that each class has lost by weights.
    scattered_errors, recall_errors : float
        Rise of the held-out accuracy and of the mean recall, in their standard errors (paired), without which
        scattered suspects are left alone.
    scattered_share : float
        Scattered suspects: labels of the rarest class, as a share of what it would have if all classes were even,
        below which nothing is done about them.
    scattered_weight : float
        Weight of a scattered suspect.
    """

    level: float = 0.6
    most_foreign: float = 0.7
    own_in_core: float = 0.6
    one_way_gain: float = 0.1
    least_share: float = 0.35
    most_clumped: float = 2.0
    scattered: str = "both"
    scattered_errors: float = 2.0
    recall_errors: float = 2.0
    scattered_share: float = 0.6
    scattered_weight: float = 0.0


RULE = Rule()
