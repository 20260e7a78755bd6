"""Ask a person about a few rows and correct the other labels: `LabelReview`, and `TextReview` for texts.

``label_review`` is the conversation. It hands ``answers`` to ``beliefs`` (what is known after them), which rests on the
``posterior`` over "this label is wrong" (solved by ``expectation_propagation``); ``questions`` chooses rows to ask
about, ``guarantee`` and ``wrong_share`` say how many labels are wrong, ``training`` what a model is trained on.
``rows`` holds the table in the scale in which rows are compared, ``rules`` the numbers that
were chosen, and the beliefs before any answer.
"""

from .guarantee import Accuracy, Guarantee
from .label_review import LabelReview
from .training import Choice
from .wrong_share import WrongShare

__all__ = ["Accuracy", "Choice", "Guarantee", "LabelReview", "WrongShare"]
