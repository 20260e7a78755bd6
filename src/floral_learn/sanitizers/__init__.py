"""Label sanitisers: rows and untrusted labels in, cleaner rows, labels or weights out."""

from floral_learn.sanitizers.contradicted import ContradictedLabels
from floral_learn.sanitizers.curie_filter import CurieFilter
from floral_learn.sanitizers.klid_weights import KLIDWeights
from floral_learn.sanitizers.knn_relabel import KNNRelabel
from floral_learn.sanitizers.result import SanitizeResult

__all__ = ["ContradictedLabels", "CurieFilter", "KLIDWeights", "KNNRelabel", "SanitizeResult"]
