"""The game itself: arrays in, small dataclasses out; no files, no logging, no plots, no data set names."""

from .arrays import NUMPY
from .attackers import LargestLoss, NoAttack, RandomizedTopK
from .dual import Projection, gradient, optimality, project
from .game import Game, GameResult, GameState, solve, step_schedule
from .gram import DenseGram, Gram, choose_gram
from .kernels import Kernel
from .low_rank import LowRankGram

__all__ = [
    "NUMPY", "DenseGram", "Game", "GameResult", "GameState", "Gram", "Kernel", "LargestLoss",
    "LowRankGram", "NoAttack", "Projection", "RandomizedTopK", "choose_gram", "gradient", "optimality",
    "project", "solve", "step_schedule",
]  # fmt: skip
