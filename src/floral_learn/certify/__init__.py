"""How many flipped training labels a prediction survives: exactly (kernel ridge), by smoothing, by partitions."""

from importlib import import_module
from typing import Any

# public name -> module of this room; loaded on first use
_PUBLIC = {
    "Certificate": "certificate",
    "CertifiedFlipsDisplay": "display",
    "CertifiedKernelClassifier": "kernel_ridge",
    "PartitionAggregationClassifier": "partition",
    "RandomizedSmoothingClassifier": "smoothing",
    "SpectralFeatures": "spectral",
}
__all__ = list(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
