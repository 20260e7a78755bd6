"""The paper's stability constants for a fitted game: their values, whether the theorems apply, how tight they are."""

from .constants import Constants, constants
from .diagnose import Diagnosis, Premise, diagnose
from .equilibrium import Equilibrium, find_equilibrium
from .stability import BOUNDS, check_game, stability, summarise

__all__ = [
    "BOUNDS",
    "Constants",
    "Diagnosis",
    "Equilibrium",
    "Premise",
    "check_game",
    "constants",
    "diagnose",
    "find_equilibrium",
    "stability",
    "summarise",
]
