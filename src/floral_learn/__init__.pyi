"""Types of the public names, which load on first use: type checkers and editors read this file."""

from floral_learn.attacks import poison as poison
from floral_learn.attacks.votes import poison_votes as poison_votes
from floral_learn.audit.issues import find_label_issues as find_label_issues
from floral_learn.base.models import load as load
from floral_learn.base.models import save as save
from floral_learn.certify.kernel_ridge import CertifiedKernelClassifier as CertifiedKernelClassifier
from floral_learn.certify.partition import PartitionAggregationClassifier as PartitionAggregationClassifier
from floral_learn.crowd.aggregate import aggregate_votes as aggregate_votes
from floral_learn.crowd.classifier import CrowdClassifier as CrowdClassifier
from floral_learn.datasets import load_moon as load_moon
from floral_learn.floral.classifier import FloralClassifier as FloralClassifier
from floral_learn.review.judge import JudgeReview as JudgeReview
from floral_learn.review.label_review import LabelReview as LabelReview
from floral_learn.sanitizers.contradicted import ContradictedLabels as ContradictedLabels
from floral_learn.sanitizers.sanitized import SanitizedClassifier as SanitizedClassifier
from floral_learn.text.classifier import TextClassifier as TextClassifier

__version__: str
__all__: list[str]
