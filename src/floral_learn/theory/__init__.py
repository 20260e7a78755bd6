"""The paper's stability constants for a fitted game: their values, whether the theorems apply, how tight they are."""

from .constants import Constants, constants
from .diagnose import Diagnosis, Premise, diagnose
from .equilibrium import Equilibrium, find_equilibrium

__all__ = [
    "Constants",
    "Diagnosis",
    "Equilibrium",
    "Premise",
    "constants",
    "diagnose",
    "find_equilibrium",
]
