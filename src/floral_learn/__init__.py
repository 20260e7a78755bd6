"""floral-learn: train classifiers on labels you do not trust.

The public names below load on first use, so that ``import floral_learn`` stays fast and pulls in
neither torch, matplotlib, pandas nor dask.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

__version__ = "0.2.0"

# public name -> module that holds it
_PUBLIC = {
    "FloralClassifier": "floral_learn.floral.classifier",
    "PaperFloralClassifier": "floral_learn.floral.paper",
    "Engine": "floral_learn.floral.engine",
    "HistoryDisplay": "floral_learn.floral.history_display",
    "Checkpoint": "floral_learn.floral.checkpoint",
    "resume": "floral_learn.floral.checkpoint",
    "save": "floral_learn.files.persistence",
    "load": "floral_learn.files.persistence",
    "ContradictedLabels": "floral_learn.sanitizers",
    "ContradictedLabelsSVC": "floral_learn.baselines.contradicted_svc",
    "ModelFileError": "floral_learn.files.model_archive",
    "CurieFilter": "floral_learn.sanitizers",
    "CurieSVC": "floral_learn.baselines.curie",
    "KLIDWeightedSVC": "floral_learn.baselines.k_lid",
    "KLIDWeights": "floral_learn.sanitizers",
    "KNNRelabel": "floral_learn.sanitizers",
    "LabelNoiseSVC": "floral_learn.baselines.ln_svm",
    "LabelSanitizedSVC": "floral_learn.baselines.label_sanitation",
    "Certificate": "floral_learn.certify.certificate",
    "CertifiedKernelClassifier": "floral_learn.certify.kernel_ridge",
    "PartitionAggregationClassifier": "floral_learn.certify.partition",
    "PlainSVC": "floral_learn.baselines.svm",
    "RSRNNClassifier": "floral_learn.baselines.rsrnn",
    "RandomizedSmoothingClassifier": "floral_learn.certify.smoothing",
    "SanitizeResult": "floral_learn.sanitizers",
    "SanitizedClassifier": "floral_learn.sanitizers.sanitized",
    "FloralHead": "floral_learn.neural.head",
    "NeuralFloralClassifier": "floral_learn.neural.floral_net",
    "NeuralNetClassifier": "floral_learn.neural.mlp",
    "PGDNeuralNetClassifier": "floral_learn.neural.mlp",
    "TextClassifier": "floral_learn.neural.text",
    "TextFloralClassifier": "floral_learn.neural.text_floral",
    "DEFENSES": "floral_learn.baselines",
    "find_label_issues": "floral_learn.audit.issues",
    "LabelIssues": "floral_learn.audit.result",
    "judge_labels": "floral_learn.labels.evidence",
    "LabelEvidence": "floral_learn.labels.evidence",
    "poison": "floral_learn.attacks",
    "PoisonResult": "floral_learn.attacks",
    "ATTACKS": "floral_learn.attacks",
    "PoisonDisplay": "floral_learn.attacks",
    "SecurityCurveDisplay": "floral_learn.attacks",
    "transfer_table": "floral_learn.attacks",
    "LabelReview": "floral_learn.review.label_review",
    "poison_votes": "floral_learn.attacks.votes",
    "VOTE_ATTACKS": "floral_learn.attacks.vote_attacks",
    "CrowdFloralClassifier": "floral_learn.crowd.classifier",
    "aggregate_votes": "floral_learn.crowd.aggregate",
    "TextReview": "floral_learn.review.text_review",
    "diagnose": "floral_learn.theory.diagnosis",
    "DATASETS": "floral_learn.datasets",
    "Dataset": "floral_learn.datasets",
    "load_moon": "floral_learn.datasets",
    "load_mnist": "floral_learn.datasets",
    "load_imdb": "floral_learn.datasets",
    "read_table": "floral_learn.tables.tables",
    "Table": "floral_learn.tables.tables",
    "TableError": "floral_learn.tables.tables",
    "TableEncoder": "floral_learn.tables.encoder",
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
