"""The defenses: scikit-learn classifiers that expect poisoned labels.

``DEFENSES`` maps the short names of the command line to classes. Looking a name up imports its module
and nothing else, so that listing the names stays cheap.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any


class _LazyClasses(Mapping[str, Any]):
    """A read-only dict of classes; each is imported when it is asked for."""

    def __init__(self, where: dict[str, str]) -> None:
        self._where = where

    def __repr__(self) -> str:
        return f"{{{', '.join(self._where)}}}"

    def __getitem__(self, name: str) -> Any:
        try:
            module, attribute = self._where[name].split(":")
        except KeyError:
            raise KeyError(f"{name!r} is not a defense; known names: {', '.join(self._where)}") from None
        return getattr(import_module(module), attribute)

    def __iter__(self) -> Iterator[str]:
        return iter(self._where)

    def __len__(self) -> int:
        return len(self._where)

    def __contains__(self, name: object) -> bool:
        return name in self._where  # the mixin's version would import the class


DEFENSES: Mapping[str, Any] = _LazyClasses(
    {
        "floral": "floral_learn.floral.classifier:FloralClassifier",
        "svm": "floral_learn.baselines.svm:PlainSVC",
        "ln-svm": "floral_learn.baselines.ln_svm:LabelNoiseSVC",
        "curie": "floral_learn.baselines.curie:CurieSVC",
        "ls-svm": "floral_learn.baselines.label_sanitation:LabelSanitizedSVC",
        "k-lid": "floral_learn.baselines.k_lid:KLIDWeightedSVC",
        "contradicted": "floral_learn.baselines.contradicted_svc:ContradictedLabelsSVC",
        "rs": "floral_learn.certify.smoothing:RandomizedSmoothingClassifier",
        "dpa": "floral_learn.certify.partition:PartitionAggregationClassifier",
        "rsrnn": "floral_learn.baselines.rsrnn:RSRNNClassifier",
        "nn": "floral_learn.neural.mlp:NeuralNetClassifier",
        "nn-pgd": "floral_learn.neural.mlp:PGDNeuralNetClassifier",
        "roberta": "floral_learn.neural.text:TextClassifier",
    }
)

__all__ = ["DEFENSES"]
