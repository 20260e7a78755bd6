"""Ask a person about a few rows and correct the other labels: `LabelReview`, and `TextReview` for texts."""

from .choosing import Choice
from .guarantee import Accuracy, Guarantee
from .label_review import LabelReview
from .text_review import TextReview
from .wrong_share import WrongShare

__all__ = ["Accuracy", "Choice", "Guarantee", "LabelReview", "TextReview", "WrongShare"]
