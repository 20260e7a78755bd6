"""Ask a person about a few rows and read the labels anew: `LabelReview`."""

from .guarantee import Guarantee
from .label_review import LabelReview

__all__ = ["Guarantee", "LabelReview"]
