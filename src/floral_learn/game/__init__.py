"""The game itself: arrays in, small dataclasses out; no files, no logging, no plots, no data set names."""

from typing import TYPE_CHECKING

from floral_learn.base import on_first_use

if TYPE_CHECKING:  # type checkers and editors do not follow names that load on first use
    from floral_learn.game.arrays import NUMPY as NUMPY
    from floral_learn.game.attackers import LargestLoss as LargestLoss
    from floral_learn.game.attackers import NoAttack as NoAttack
    from floral_learn.game.attackers import RandomizedTopK as RandomizedTopK
    from floral_learn.game.attackers import TopK as TopK
    from floral_learn.game.dual import Projection as Projection
    from floral_learn.game.dual import gradient as gradient
    from floral_learn.game.dual import optimality as optimality
    from floral_learn.game.dual import project as project
    from floral_learn.game.game import Game as Game
    from floral_learn.game.game import GameResult as GameResult
    from floral_learn.game.game import GameState as GameState
    from floral_learn.game.game import solve as solve
    from floral_learn.game.game import step_schedule as step_schedule
    from floral_learn.game.gram import ChunkedGram as ChunkedGram
    from floral_learn.game.gram import DenseGram as DenseGram
    from floral_learn.game.gram import Gram as Gram
    from floral_learn.game.gram import choose_gram as choose_gram
    from floral_learn.game.kernels import Kernel as Kernel
    from floral_learn.game.low_rank import LowRankGram as LowRankGram

# public name -> module of this room that holds it
_PUBLIC = {
    "NUMPY": "arrays",
    "ChunkedGram": "gram",
    "DenseGram": "gram",
    "Game": "game",
    "GameResult": "game",
    "GameState": "game",
    "Gram": "gram",
    "Kernel": "kernels",
    "LargestLoss": "attackers",
    "LowRankGram": "low_rank",
    "NoAttack": "attackers",
    "Projection": "dual",
    "RandomizedTopK": "attackers",
    "TopK": "attackers",
    "choose_gram": "gram",
    "gradient": "dual",
    "optimality": "dual",
    "project": "dual",
    "solve": "game",
    "step_schedule": "game",
}

__all__ = list(_PUBLIC)
__getattr__ = on_first_use(__name__, _PUBLIC)
