"""The numbers that steer a review, in one place, each with what chose it.

All were chosen by ``benchmarks/questions.py --choose`` on the data sets that it calls development sets (see
``docs/results/looked-at.md``), unless a line says otherwise. Grids are priors: answers average them out.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """What changes which rows are asked about, how labels are read, and what a model is trained on."""

    # -- the model of wrong labels (posterior.py) ------------------------------------------------------------------
    # (b, a) of logit q = b + a s: hardly any label wrong by itself; some, where contradicted; many, where contradicted
    own: tuple[tuple[float, float], ...] = ((-4.0, 0.5), (-2.5, 1.0), (-1.5, 2.0), (-0.7, 4.0))
    widths: tuple[float, ...] = (0.1, 0.5, 3.0)  # of regions among rows, in squared distances at gamma="scale"
    class_width: float = 0.3  # of regions in which the classifier that the labels teach is off
    stretches: tuple[float, ...] = (1.0, 6.0)  # of the scores from -2 to 2: about a third and an eighth of them
    height: float = 3.0  # standard deviation of logit r between regions
    centre: float = -1.0  # mean of logit r where regions are possible
    no_regions: tuple[float, ...] = (-8.0, -2.2, -1.0)  # logit r without regions: nowhere, or at random by so much
    most_wrong: float = 0.5  # share of wrong labels from which a hypothesis loses weight

    # -- reviewers (answers.py, beliefs.py) --------------------------------------------------------------------------
    error_prior: tuple[float, float] = (1.0, 29.0)  # Beta prior of a reviewer's error rate: about three in a hundred
    suspect: float = 0.1  # prior probability that one of several reviewers guesses, or lies
    settled: float = 0.8  # share of the likelihood from which an answer is taken for the label

    # -- groups (beliefs.py) -----------------------------------------------------------------------------------------
    group_effects: tuple[float, float] = (1.5, 1.0)  # standard deviations: of a group, and of its use of one label
    suspect_group: float = 1.0  # log-odds of a group from which its labels are read anew without any answer

    # -- reading and training (beliefs.py, training.py) --------------------------------------------------------------
    transition_width: float = 0.3  # how far an answer says what other wrong labels should have been
    sure: float = 1.25  # rows that are read right with 90 % and more count in full
    least_weight: float = 0.1
    few_answers: float = 10.0  # answers with which doubt and the expected sizes of classes count half
    most_shift: float = 4.0  # how much more, or less, a class may weigh than the rows that are read as it
    look_again: int = 10  # answers from which a second model is taught the labels as they are read


RULES = Rules()
