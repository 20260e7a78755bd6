"""Ask a person about a few rows and correct the other labels: `LabelReview`.

``label_review`` is the conversation about a ``table`` (rows, given labels, what is computed before any answer). It
hands ``answers`` to ``beliefs`` (what is known after them), which rests on the ``posterior`` over "this label is wrong"
(solved by ``expectation_propagation``), on ``groups`` and on the ``calibration`` of both. ``questions`` chooses rows to
ask about, ``guarantee`` says how many labels are wrong whatever the model thinks, ``training`` what a model is trained
on. ``rules`` holds the numbers that were chosen, and the beliefs before any answer.
"""

from .calibration import Expected, WrongShare
from .guarantee import Guarantee
from .label_review import LabelReview

__all__ = ["Expected", "Guarantee", "LabelReview", "WrongShare"]
