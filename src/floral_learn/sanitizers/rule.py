"""The numbers by which ContradictedLabels decides, all in one place; `benchmarks/contradicted_rule.py` chose them."""

from dataclasses import dataclass, replace


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
    least_share : float
        One-way flips: labels of the class, as a share of what it would have if all classes were even. A class with
        fewer may be rare by nature.
    one_way_gain, one_way_errors : float
        Rise of the recalls, summed over classes and on the given labels, and the same in its standard errors (paired),
        without which one-way flips are left alone.
    most_clumped : float
        Deviations by which labels inside a region may keep to their own kind and still count as mixed at random.
    scattered_errors, recall_errors : float
        Rise of the held-out accuracy and of the mean recall, in their standard errors (paired), without which
        scattered suspects are left alone.
    scattered_share : float
        Scattered suspects: labels of the rarest class, as a share of what it would have if all classes were even,
        below which nothing is done about them.
    """

    level: float = 0.6
    most_foreign: float = 0.55
    own_in_core: float = 0.5
    least_share: float = 0.25
    one_way_gain: float = 0.2
    one_way_errors: float = 2.0
    most_clumped: float = 3.0
    scattered_errors: float = 2.0
    recall_errors: float = 1.0
    scattered_share: float = 0.35


RULE = Rule()

# A model that learns contradicted labels by heart is hurt by each of them, also where the class's own labels are in the
# majority; one that smooths over them is not, and has more to lose than to gain.
MEMORISES = 0.5  # share of contradicted labels that a model repeats once it has seen them
RULE_MEMORISING = replace(RULE, own_in_core=0.7, one_way_gain=0.1, scattered_errors=1.0)


def rule_for(memorised: float) -> Rule:
    """The rule for a model that repeats this share of the contradicted labels."""
    return RULE_MEMORISING if memorised >= MEMORISES else RULE
