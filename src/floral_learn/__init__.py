"""floral-learn: train classifiers on labels you do not trust.

The public names below load on first use, so that ``import floral_learn`` stays fast and pulls in
neither torch, matplotlib, pandas nor dask.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

__version__ = "0.4.0"

# public name -> module that holds it
_PUBLIC = {
    "FloralClassifier": "floral_learn.floral.classifier",
    "LabelReview": "floral_learn.review.label_review",
    "JudgeReview": "floral_learn.review.judge",
    "find_label_issues": "floral_learn.audit.issues",
    "aggregate_votes": "floral_learn.crowd.aggregate",
    "CrowdClassifier": "floral_learn.crowd.classifier",
    "SanitizedClassifier": "floral_learn.sanitizers.sanitized",
    "ContradictedLabels": "floral_learn.sanitizers.contradicted",
    "CertifiedKernelClassifier": "floral_learn.certify.kernel_ridge",
    "PartitionAggregationClassifier": "floral_learn.certify.partition",
    "poison": "floral_learn.attacks",
    "poison_votes": "floral_learn.attacks.votes",
    "TextClassifier": "floral_learn.text.classifier",
    "load_moon": "floral_learn.datasets",
    "save": "floral_learn.base.models",
    "load": "floral_learn.base.models",
}

_NEEDS_TORCH = "floral_learn.text."


def _installed() -> list[str]:
    """The public names whose libraries are there: ``from floral_learn import *`` works without torch."""
    torch = find_spec("torch") is not None
    return [name for name, module in _PUBLIC.items() if torch or not module.startswith(_NEEDS_TORCH)]


__all__ = ["__version__", *_installed()]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'floral_learn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
