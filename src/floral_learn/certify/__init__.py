"""How many flipped training labels a prediction survives: exactly (kernel ridge), by partitions, together."""

from .certificate import Certificate
from .collective import CollectiveCertificate
from .kernel_ridge import CertifiedKernelClassifier
from .partition import PartitionAggregationClassifier
from .spectral import SpectralFeatures

__all__ = [
    "Certificate", "CertifiedKernelClassifier", "CollectiveCertificate", "PartitionAggregationClassifier",
    "SpectralFeatures",
]  # fmt: skip
