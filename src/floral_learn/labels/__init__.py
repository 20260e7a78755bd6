"""How probable it is that a label is wrong: the evidence, written once, on which every other room rests."""

from floral_learn.labels.evidence import LabelEvidence, judge_labels

__all__ = ["LabelEvidence", "judge_labels"]
