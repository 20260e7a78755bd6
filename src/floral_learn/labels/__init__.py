"""How probable it is that a label is wrong: the evidence, written once, on which every other room rests."""

from floral_learn.labels.evidence import LabelEvidence, judge_labels
from floral_learn.labels.flagging import Flags, flag_labels
from floral_learn.labels.noise import NoiseModel, calibrate, fit_noise

__all__ = ["Flags", "LabelEvidence", "NoiseModel", "calibrate", "fit_noise", "flag_labels", "judge_labels"]
