"""What a review knows about its labels, as plain values that are stored beside the model trained on them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np


def review_evidence(review: Any) -> dict[str, Any]:
    """Labels checked, by whom and drawn how, the guaranteed interval, and what was changed, of a `LabelReview`.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn import LabelReview
    >>> from floral_learn.review.evidence import review_evidence
    >>> review = LabelReview(np.arange(40.0)[:, None], np.repeat([0, 1], 20))
    >>> review.answer([3], [0], reviewer="ann")
    >>> found = review_evidence(review)
    >>> found["rows"], found["checked"], found["reviewers"]
    (40, 1, {'ann': 1})
    """
    history, bound = review.history, review.guarantee()
    answered = {entry["row"] for entry in history}
    changed = np.flatnonzero(review.labels != review.given)
    return {
        "rows": len(review.given),
        "classes": [str(name) for name in review.classes.tolist()],
        "trusted before": int(review.trusted.sum()),
        "checked": len(answered),
        "drawn at random": int(bound.checked),
        "chosen by the model": len(answered) - len({entry["row"] for entry in history if entry["drawn"]}),
        "reviewers": dict(Counter(entry["reviewer"] for entry in history)),
        "not sure": sum(entry["label"] is None for entry in history),
        "changed by answers": sum(int(row) in answered for row in changed),
        "changed by the model": sum(int(row) not in answered for row in changed),
        "wrong among the drawn": int(bound.wrong),
        "guaranteed low": float(bound.low),
        "guaranteed high": float(bound.high),
        "confidence": float(bound.confidence),
        "guarantee valid": bool(bound.valid),
    }
