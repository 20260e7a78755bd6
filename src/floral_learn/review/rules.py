"""The numbers that steer a review, in one place, each with what chose it.

"Chosen" means: by ``benchmarks/questions.py run choose`` on its development data sets (``docs/results/looked-at.md``),
where other values were no better. "Prior" means: a belief before any answer, which answers average out or overrule; no
script chose it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """What changes which rows are asked about, how labels are read, and what a model is trained on."""

    # -- the model of wrong labels (posterior.py) ------------------------------------------------------------------
    # (b, a) of logit q = b + a s: hardly any label wrong by itself; some, where contradicted; many, where contradicted;
    # prior (ranks of s in its place, and six pairs, were no better)
    own: tuple[tuple[float, float], ...] = ((-4.0, 0.5), (-2.5, 1.0), (-1.5, 2.0), (-0.7, 4.0))
    widths: tuple[float, ...] = (0.1, 0.5, 3.0)  # of regions, in squared distances at gamma="scale"; prior
    # of regions in which the classifier that the labels teach is off (without these 4 to 7 points less came back), and
    # of those in which an answer says what other wrong labels should have been; chosen
    class_width: float = 0.3
    stretches: tuple[float, ...] = (0.2, 1.0, 6.0)  # of scores from -2 to 2: half, a third and an eighth; chosen
    height: float = 3.0  # standard deviation of logit r between regions; chosen (5 is level)
    centre: float = -1.0  # mean of logit r where regions are possible; chosen (0 is level)
    no_regions: tuple[float, ...] = (-8.0, -2.2, -1.0)  # logit r without regions: nowhere, or at random; prior
    components: int = 16  # principal components in which rows with more columns are compared; chosen

    # -- reviewers and groups (answers.py, beliefs.py): priors, on which no data were looked at ----------------------
    error_prior: tuple[float, float] = (1.0, 29.0)  # Beta prior of a reviewer's error rate: about three in a hundred
    suspect: float = 0.1  # prior probability that one of several reviewers guesses, or lies
    settled: float = 0.8  # share of the likelihood from which an answer is taken for the label
    group_effects: tuple[float, float] = (1.5, 1.0)  # standard deviations: of a group, and of its use of one label
    suspect_group: float = 1.0  # log-odds of a group from which its labels are read anew without any answer

    # -- training (training.py) --------------------------------------------------------------------------------------
    least_weight: float = 0.1  # of a row in doubt; prior
    few_answers: float = 3.0  # answers with which doubt and the expected sizes of classes count half; chosen


RULES = Rules()
