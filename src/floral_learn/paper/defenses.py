"""What the paper compares with, and the names under which the command line knows every defense.

``DEFENSES`` maps a name to what builds the classifier: a class, or a function for a sanitiser in front of an SVC
(``DEFENSES["curie"](confidence=0.9, C=10)`` is ``SanitizedClassifier(CurieFilter(confidence=0.9), SVC(C=10))``).
Looking a name up imports its module and nothing else, so that listing the names stays cheap.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any

_CLASSES = {
    "floral": "floral_learn.floral.classifier:FloralClassifier",
    "svm": "sklearn.svm:SVC",
    "ln-svm": "floral_learn.paper.ln_svm:LabelNoiseSVC",
    "rs": "floral_learn.paper.smoothing:RandomizedSmoothingClassifier",
    "dpa": "floral_learn.certify.partition:PartitionAggregationClassifier",
    "rsrnn": "floral_learn.paper.rsrnn:RSRNNClassifier",
    "transformer": "floral_learn.text.classifier:TextClassifier",
}
# sanitisers that stand in front of an SVC
_IN_FRONT_OF_SVC = {
    "curie": "floral_learn.paper.curie_filter:CurieFilter",
    "ls-svm": "floral_learn.paper.knn_relabel:KNNRelabel",
    "k-lid": "floral_learn.paper.klid_weights:KLIDWeights",
    "contradicted": "floral_learn.sanitizers.contradicted:ContradictedLabels",
}
_NAMES = (
    "floral", "svm", "ln-svm", "curie", "ls-svm", "k-lid", "contradicted", "rs", "dpa", "rsrnn", "transformer",
)  # fmt: skip


def _look_up(place: str) -> Any:
    module, attribute = place.split(":")
    return getattr(import_module(module), attribute)


def _sanitized_svc(sanitizer: str, **settings: Any) -> Any:
    """`SanitizedClassifier(sanitizer, SVC())`; each setting goes to the part that has a parameter of that name."""
    from sklearn.svm import SVC

    from floral_learn.sanitizers import SanitizedClassifier

    return set_parts(SanitizedClassifier(_look_up(sanitizer)(), SVC()), **settings)


def set_parts(model: Any, **settings: Any) -> Any:
    """`model` with each setting given to itself or, in a `SanitizedClassifier`, to the parts that have it.

    A TypeError names a setting that no part has.
    """
    known = model.get_params()
    for name, value in settings.items():
        places = [place for place in (name, f"sanitizer__{name}", f"estimator__{name}") if place in known]
        # SVC's seed is for probabilities only; a seed is meant for the sanitiser where that has one.
        places = [place for place in places if place != "estimator__random_state"] or places
        if not places:
            raise TypeError(f"{type(model).__name__} has no setting {name!r}")
        model.set_params(**dict.fromkeys(places, value))
    return model


class _Defenses(Mapping[str, Callable[..., Any]]):
    """A read-only dict of what builds each defense; modules are imported when a name is looked up."""

    def __repr__(self) -> str:
        return f"{{{', '.join(_NAMES)}}}"

    def __getitem__(self, name: str) -> Callable[..., Any]:
        if name in _IN_FRONT_OF_SVC:
            return partial(_sanitized_svc, _IN_FRONT_OF_SVC[name])
        if name not in _CLASSES:
            raise KeyError(f"{name!r} is not a defense; known names: {', '.join(_NAMES)}")
        return _look_up(_CLASSES[name])

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)

    def __contains__(self, name: object) -> bool:
        return name in _NAMES  # the mixin's version would import the class


DEFENSES: Mapping[str, Callable[..., Any]] = _Defenses()

__all__ = ["DEFENSES", "set_parts"]
