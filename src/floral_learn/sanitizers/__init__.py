"""Label sanitisers: ``fit_resample(X, y)`` drops or relabels rows; what only weighs them has ``sample_weight_``."""

from floral_learn.sanitizers.contradicted import ContradictedLabels
from floral_learn.sanitizers.curie_filter import CurieFilter
from floral_learn.sanitizers.klid_weights import KLIDWeights
from floral_learn.sanitizers.knn_relabel import KNNRelabel

__all__ = ["ContradictedLabels", "CurieFilter", "KLIDWeights", "KNNRelabel"]
