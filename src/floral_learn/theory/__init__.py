"""The paper's stability constants for a fitted game: their values, whether the theorems apply, how tight they are."""

from .diagnosis import Diagnosis, Premise, diagnose
from .equilibrium import Equilibrium, find_equilibrium
from .lemmas import Constants, constants

__all__ = [
    "Constants",
    "Diagnosis",
    "Equilibrium",
    "Premise",
    "constants",
    "diagnose",
    "find_equilibrium",
]
