"""What stands in front of a classifier and repairs, weights or drops labels."""

from floral_learn.sanitizers.contradicted import ContradictedLabels
from floral_learn.sanitizers.sanitized import SanitizedClassifier

__all__ = ["ContradictedLabels", "SanitizedClassifier"]
