"""The paper as published: its algorithm to the letter, what it is compared with, and its theory.

The public names load on first use: heads and networks need torch.
"""

from typing import TYPE_CHECKING

from floral_learn.base import on_first_use

if TYPE_CHECKING:  # type checkers and editors do not follow names that load on first use
    from floral_learn.paper.curie_filter import CurieFilter as CurieFilter
    from floral_learn.paper.defenses import DEFENSES as DEFENSES
    from floral_learn.paper.diagnosis import Diagnosis as Diagnosis
    from floral_learn.paper.diagnosis import Premise as Premise
    from floral_learn.paper.diagnosis import diagnose as diagnose
    from floral_learn.paper.floral_net import NeuralFloralClassifier as NeuralFloralClassifier
    from floral_learn.paper.head import FloralHead as FloralHead
    from floral_learn.paper.head import layer_features as layer_features
    from floral_learn.paper.klid_weights import KLIDWeights as KLIDWeights
    from floral_learn.paper.knn_relabel import KNNRelabel as KNNRelabel
    from floral_learn.paper.ln_svm import LabelNoiseSVC as LabelNoiseSVC
    from floral_learn.paper.printed import PaperFloralClassifier as PaperFloralClassifier
    from floral_learn.paper.rsrnn import RSRNNClassifier as RSRNNClassifier
    from floral_learn.paper.smoothing import RandomizedSmoothingClassifier as RandomizedSmoothingClassifier
    from floral_learn.paper.text_floral import TextFloralClassifier as TextFloralClassifier
    from floral_learn.paper.theory import Constants as Constants
    from floral_learn.paper.theory import Equilibrium as Equilibrium
    from floral_learn.paper.theory import constants as constants
    from floral_learn.paper.theory import find_equilibrium as find_equilibrium

# public name -> module of this room that holds it
_PUBLIC = {
    "Constants": "theory",
    "CurieFilter": "curie_filter",
    "DEFENSES": "defenses",
    "Diagnosis": "diagnosis",
    "Equilibrium": "theory",
    "FloralHead": "head",
    "KLIDWeights": "klid_weights",
    "KNNRelabel": "knn_relabel",
    "LabelNoiseSVC": "ln_svm",
    "NeuralFloralClassifier": "floral_net",
    "PaperFloralClassifier": "printed",
    "Premise": "diagnosis",
    "RSRNNClassifier": "rsrnn",
    "RandomizedSmoothingClassifier": "smoothing",
    "TextFloralClassifier": "text_floral",
    "constants": "theory",
    "diagnose": "diagnosis",
    "find_equilibrium": "theory",
    "layer_features": "head",
}

__all__ = list(_PUBLIC)
__getattr__ = on_first_use(__name__, _PUBLIC)
