"""How many flipped training labels a prediction survives: exactly (kernel ridge), by partitions, together."""

from typing import TYPE_CHECKING

from floral_learn.base import on_first_use

if TYPE_CHECKING:  # type checkers and editors do not follow names that load on first use
    from .certificate import Certificate as Certificate
    from .collective import CollectiveCertificate as CollectiveCertificate
    from .kernel_ridge import CertifiedKernelClassifier as CertifiedKernelClassifier
    from .partition import PartitionAggregationClassifier as PartitionAggregationClassifier
    from .spectral import SpectralFeatures as SpectralFeatures

# public name -> module of this room; loaded on first use
_PUBLIC = {
    "Certificate": "certificate",
    "CollectiveCertificate": "collective",
    "CertifiedKernelClassifier": "kernel_ridge",
    "PartitionAggregationClassifier": "partition",
    "SpectralFeatures": "spectral",
}
__all__ = list(_PUBLIC)
__getattr__ = on_first_use(__name__, _PUBLIC)
