"""skops without torch and dask, which reading or writing a model of numbers does not need."""

from __future__ import annotations

import sys
from typing import Any

# skops lists every estimator of scikit-learn. The search walks through all its packages, these bridges among them, and
# importing a bridge imports what is behind it: two seconds of every `floral train` and `floral predict`.
_BRIDGES = ("sklearn.externals.array_api_compat.torch", "sklearn.externals.array_api_compat.dask")


def import_skops() -> Any:
    """``skops.io``, imported without scikit-learn's bridges to torch and dask unless these are there already."""
    hidden = [] if "skops.io" in sys.modules else [name for name in _BRIDGES if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]  # cannot be imported, so the search passes over it
    try:
        import skops.io
    finally:
        for name in hidden:
            sys.modules.pop(name, None)
    return skops.io
