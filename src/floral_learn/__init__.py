"""floral-learn: train classifiers on labels you do not trust.

The public names below load on first use, so that ``import floral_learn`` stays fast and pulls in
neither torch, matplotlib, pandas nor dask.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

__version__ = "0.3.0"

# public name -> module that holds it
_PUBLIC = {
    "FloralClassifier": "floral_learn.floral.classifier",
    "PaperFloralClassifier": "floral_learn.floral.paper",
    "Engine": "floral_learn.floral.settings",
    "Checkpoint": "floral_learn.floral.checkpoint",
    "resume": "floral_learn.floral.checkpoint",
    "save": "floral_learn.base.models",
    "load": "floral_learn.base.models",
    "ContradictedLabels": "floral_learn.sanitizers",
    "CurieFilter": "floral_learn.sanitizers",
    "KLIDWeights": "floral_learn.sanitizers",
    "KNNRelabel": "floral_learn.sanitizers",
    "SanitizedClassifier": "floral_learn.sanitizers.sanitized",
    "LabelNoiseSVC": "floral_learn.baselines.ln_svm",
    "RSRNNClassifier": "floral_learn.baselines.rsrnn",
    "CertifiedKernelClassifier": "floral_learn.certify.kernel_ridge",
    "PartitionAggregationClassifier": "floral_learn.certify.partition",
    "RandomizedSmoothingClassifier": "floral_learn.certify.smoothing",
    "FloralHead": "floral_learn.neural.head",
    "NeuralFloralClassifier": "floral_learn.neural.floral_net",
    "TextClassifier": "floral_learn.neural.text",
    "TextFloralClassifier": "floral_learn.neural.text_floral",
    "find_label_issues": "floral_learn.audit.issues",
    "judge_labels": "floral_learn.labels.evidence",
    "poison": "floral_learn.attacks",
    "poison_votes": "floral_learn.attacks.votes",
    "SecurityCurveDisplay": "floral_learn.attacks",
    "LabelReview": "floral_learn.review.label_review",
    "TextReview": "floral_learn.review.text_review",
    "CrowdClassifier": "floral_learn.crowd.classifier",
    "aggregate_votes": "floral_learn.crowd.aggregate",
    "load_moon": "floral_learn.datasets",
}

_NEEDS_TORCH = "floral_learn.neural."


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
