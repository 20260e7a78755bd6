"""What a loaded model may hold: numbers that compiled code will use as places in memory, checked before it does.

scikit-learn's compiled code trusts the arrays of its own fit. A file can hold others: support vectors fewer than their
weights, a class number beyond the last class. Python code answers these with an exception, compiled code with a crash
or worse. Two rules close that: classes of scikit-learn are created only where what they run on stored numbers is numpy,
and for the few others that are needed (libsvm, nearest neighbours, one-hot columns, vocabularies, old random states)
the numbers must fit each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from floral_learn.files.model_archive import ModelFileError

# Modules of scikit-learn whose classes use their fitted numbers through numpy and scipy.sparse alone, or are checked
# below. Not here, and so refused unless the caller names them: trees and forests (their nodes are places in memory),
# boosted trees, k-d and ball trees, k-means, splines.
SKLEARN_MODULES = frozenset(
    f"sklearn.{name}"
    for name in (
        "calibration", "compose._column_transformer", "compose._target", "cross_decomposition._pls",
        "decomposition._base", "decomposition._incremental_pca", "decomposition._pca", "decomposition._truncated_svd",
        "discriminant_analysis", "dummy", "ensemble._bagging", "ensemble._stacking", "ensemble._voting",
        "feature_extraction._hash", "feature_extraction.text", "feature_selection._base",
        "feature_selection._from_model", "feature_selection._rfe", "feature_selection._sequential",
        "feature_selection._univariate_selection", "feature_selection._variance_threshold", "frozen._frozen",
        "gaussian_process._gpc", "gaussian_process._gpr", "gaussian_process.kernels", "impute._base", "isotonic",
        "kernel_approximation", "kernel_ridge", "linear_model._base", "linear_model._bayes",
        "linear_model._coordinate_descent", "linear_model._least_angle", "linear_model._logistic",
        "linear_model._passive_aggressive", "linear_model._perceptron", "linear_model._ridge", "linear_model._sgd_fast",
        "linear_model._stochastic_gradient", "metrics._scorer", "model_selection._classification_threshold",
        "model_selection._search", "model_selection._search_successive_halving", "model_selection._split",
        "multiclass", "multioutput", "naive_bayes", "neighbors._classification", "neighbors._nearest_centroid",
        "neighbors._regression", "neighbors._unsupervised", "neural_network._multilayer_perceptron",
        "neural_network._stochastic_optimizers", "pipeline", "preprocessing._data", "preprocessing._discretization",
        "preprocessing._encoders", "preprocessing._function_transformer", "preprocessing._label",
        "preprocessing._polynomial", "random_projection", "semi_supervised._self_training", "svm._classes",
        "utils._bunch", "utils._encode", "utils._metadata_requests",
    )
)  # fmt: skip
_COMPILED = frozenset({"sklearn.preprocessing._polynomial.SplineTransformer"})


def allowed_sklearn(name: str) -> bool:
    """Whether a class of scikit-learn may be created from a file that nobody vouches for."""
    module = name.rpartition(".")[0]
    return name not in _COMPILED and module in SKLEARN_MODULES


def check_loaded(model: Any) -> None:
    """Raise ModelFileError where fitted numbers contradict each other in a way that compiled code would not notice."""
    for part in every_part(model):
        if sparse.issparse(part):
            _require(part.format in ("csr", "csc"), part, "format")
            try:
                part.check_format(full_check=True)
            except ValueError as error:
                raise ModelFileError(f"it is damaged: a sparse matrix in it has wrong indices ({error})") from None
        for base in type(part).__mro__:
            if check := _CHECKS.get(f"{base.__module__}.{base.__qualname__}"):
                check(part)


def every_part(model: Any) -> Iterator[Any]:
    """`model` and everything that it holds: values of dicts, lists, object arrays and attributes, each once."""
    waiting, seen = [model], dict[int, Any]()
    while waiting:
        item = waiting.pop()
        if item is None or isinstance(item, str | int | float | type) or id(item) in seen:
            continue
        seen[id(item)] = item  # kept, so that no number is used twice
        yield item
        if isinstance(item, dict):
            waiting.extend(item.keys())
            waiting.extend(item.values())
        elif isinstance(item, list | tuple | set | frozenset):
            waiting.extend(item)
        elif isinstance(item, np.ndarray):
            if item.dtype.hasobject:
                waiting.extend(item.ravel().tolist())
        else:
            waiting.extend(getattr(item, "__dict__", {}).values())


def _require(fits: Any, part: Any, what: str) -> None:
    if not fits:
        raise ModelFileError(f"it is damaged: {what} of its {type(part).__name__} does not fit the rest")


def _array(part: Any, name: str, kinds: str, shape: tuple[int | None, ...]) -> np.ndarray:
    """The fitted attribute `name`, an array of these kinds of number and this shape (None: any length)."""
    found = vars(part).get(name)
    _require(isinstance(found, np.ndarray) and found.dtype.kind in kinds, part, name)
    sizes = zip(found.shape, shape, strict=False)
    _require(found.ndim == len(shape) and all(want in (None, has) for has, want in sizes), part, name)
    return found


def _within(values: np.ndarray, part: Any, name: str, stop: int) -> None:
    _require(values.size == 0 or (values.min() >= 0 and values.max() < stop), part, name)


def _check_svm(part: Any) -> None:
    """libsvm reads (M - 1, n_sv) weights, n_sv rows and M (M - 1) / 2 intercepts wherever it is told to."""
    own = vars(part)
    _require("_impl" not in own and not callable(own.get("kernel")), part, "kernel")
    if not {"support_", "support_vectors_", "_n_support", "_dual_coef_"} & set(own):
        return  # not fitted: there is nothing that predict could read
    classifies = type(part).__name__ in ("SVC", "NuSVC")
    classes = len(_array(part, "classes_", "biufUSO", (None,))) if classifies else 2
    _require(classes >= 2, part, "classes_")
    pairs = classes * (classes - 1) // 2 if classifies else 1
    n_sv = len(_array(part, "support_", "i", (None,)))
    shape = own.get("shape_fit_")
    _require(isinstance(shape, tuple) and all(type(size) is int for size in shape) and len(shape) == 2, part, "shape")
    _within(own["support_"], part, "support_", shape[0])
    per_class = _array(part, "_n_support", "i", (classes,))
    counted = per_class if classifies else per_class[:1]
    _require((per_class >= 0).all() and counted.sum(dtype=np.int64) == n_sv, part, "_n_support")
    _require(own.get("_sparse") in (True, False), part, "_sparse")
    vectors, weights = own.get("support_vectors_"), own.get("_dual_coef_")
    rows = classes - 1 if classifies else 1
    if own["_sparse"]:
        _require(sparse.issparse(vectors) and vectors.format == "csr", part, "support_vectors_")
        _require(sparse.issparse(weights) and weights.format == "csr", part, "_dual_coef_")
        _require(vectors.shape == (n_sv, shape[1]), part, "support_vectors_")
        _require(weights.data.shape == (rows * n_sv,), part, "_dual_coef_")
    else:
        wide = own.get("kernel") != "precomputed"
        _array(part, "support_vectors_", "f", (n_sv if wide else None, shape[1] if wide else None))
        _array(part, "_dual_coef_", "f", (rows, n_sv))
    _array(part, "_intercept_", "f", (pairs,))
    for name in ("_probA", "_probB"):
        slopes = _array(part, name, "f", (None,))
        _require(len(slopes) in (0, pairs), part, name)
    _require(own.get("n_features_in_") in (None, shape[1]), part, "n_features_in_")


def _check_neighbours(part: Any) -> None:
    """Votes are counted at the places that the class numbers name; rows are read as far as X is wide."""
    own = vars(part)
    if "_fit_X" not in own:
        return
    rows = own["_fit_X"]
    _require(isinstance(rows, np.ndarray) or sparse.issparse(rows), part, "_fit_X")
    _require(rows.ndim == 2 and rows.dtype.kind in "biuf", part, "_fit_X")
    _require(own.get("n_samples_fit_", rows.shape[0]) == rows.shape[0], part, "n_samples_fit_")
    _require(own.get("n_features_in_", rows.shape[1]) == rows.shape[1], part, "n_features_in_")
    _require(not callable(own.get("metric")) and not callable(own.get("weights")), part, "metric")
    if "classes_" not in own:
        return
    y, classes = own.get("_y"), own["classes_"]
    _require(isinstance(y, np.ndarray) and y.dtype.kind in "iu" and y.shape[:1] == rows.shape[:1], part, "_y")
    for column, known in enumerate(classes if isinstance(classes, list) else [classes]):
        codes = y[:, column] if isinstance(classes, list) else y
        _require(codes.ndim == 1 and isinstance(known, np.ndarray) and known.ndim == 1, part, "classes_")
        _within(codes, part, "_y", len(known))


def _check_one_hot(part: Any) -> None:
    """A category becomes the number of a column: there must be as many columns as categories."""
    own = vars(part)
    if "categories_" not in own:
        return
    groups = own["categories_"]
    _require(isinstance(groups, list) and all(isinstance(g, np.ndarray) and g.ndim == 1 for g in groups), part, "them")
    if "_n_features_outs" not in own:
        return
    counts = [len(group) for group in groups]
    merged = own.get("_infrequent_indices") if own.get("_infrequent_enabled") else None
    if merged is not None:  # rare categories share a column
        places = own.get("_default_to_infrequent_mappings")
        _require(isinstance(places, list) and len(places) == len(merged) == len(groups), part, "rare categories")
        for at, (rare, place) in enumerate(zip(merged, places, strict=True)):
            if rare is None and place is None:
                continue
            _require(all(isinstance(v, np.ndarray) and v.dtype.kind in "iu" for v in (rare, place)), part, "them")
            _require(place.shape == (len(groups[at]),), part, "rare categories")
            counts[at] -= rare.size - 1
            _within(place, part, "rare categories", counts[at])
    dropped = own.get("_drop_idx_after_grouping")
    if dropped is not None:
        _require(isinstance(dropped, np.ndarray) and dropped.shape == (len(groups),), part, "dropped categories")
        for at, place in enumerate(dropped.tolist()):
            if place is not None:
                _require(0 <= place < counts[at], part, "dropped categories")
                counts[at] -= 1
    _require(list(own["_n_features_outs"]) == counts, part, "_n_features_outs")
    _require(own.get("n_features_in_", len(groups)) == len(groups), part, "n_features_in_")


def _check_vocabulary(part: Any) -> None:
    """A word becomes the number of a column: each number below their count once."""
    known = vars(part).get("vocabulary_")
    if known is not None:
        _require(isinstance(known, dict), part, "vocabulary_")
        numbers = np.array(list(known.values()) or [0])
        _require(numbers.dtype.kind in "iu" and len(set(numbers.tolist())) == max(len(known), 1), part, "vocabulary_")
        _within(numbers, part, "vocabulary_", max(len(known), 1))


def _check_random_state(part: Any) -> None:
    """The Mersenne Twister reads its key at `pos`, Philox its buffer at `buffer_pos`, without looking."""
    state = part.get_state(legacy=False) if isinstance(part, np.random.RandomState) else part.bit_generator.state
    places = {"MT19937": (state["state"].get("pos", 0), 624), "Philox": (state.get("buffer_pos", 0), 4)}
    place, last = places.get(state["bit_generator"], (0, 0))
    _require(0 <= place <= last, part, "the state")


_CHECKS: dict[str, Callable[[Any], None]] = {
    "sklearn.svm._base.BaseLibSVM": _check_svm,
    "sklearn.neighbors._base.NeighborsBase": _check_neighbours,
    "sklearn.preprocessing._encoders.OneHotEncoder": _check_one_hot,
    "sklearn.feature_extraction.text.CountVectorizer": _check_vocabulary,
    "numpy.random.mtrand.RandomState": _check_random_state,
    "numpy.random._generator.Generator": _check_random_state,
}
