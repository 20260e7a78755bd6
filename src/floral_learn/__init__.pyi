"""Types of the public names, which load on first use: type checkers and editors read this file."""

from floral_learn.attacks import SecurityCurveDisplay as SecurityCurveDisplay
from floral_learn.attacks import poison as poison
from floral_learn.attacks.votes import poison_votes as poison_votes
from floral_learn.audit.issues import find_label_issues as find_label_issues
from floral_learn.base.models import load as load
from floral_learn.base.models import save as save
from floral_learn.baselines.ln_svm import LabelNoiseSVC as LabelNoiseSVC
from floral_learn.baselines.rsrnn import RSRNNClassifier as RSRNNClassifier
from floral_learn.certify.kernel_ridge import CertifiedKernelClassifier as CertifiedKernelClassifier
from floral_learn.certify.partition import PartitionAggregationClassifier as PartitionAggregationClassifier
from floral_learn.certify.smoothing import RandomizedSmoothingClassifier as RandomizedSmoothingClassifier
from floral_learn.crowd.aggregate import aggregate_votes as aggregate_votes
from floral_learn.crowd.classifier import CrowdClassifier as CrowdClassifier
from floral_learn.datasets import load_moon as load_moon
from floral_learn.floral.checkpoint import Checkpoint as Checkpoint
from floral_learn.floral.checkpoint import resume as resume
from floral_learn.floral.classifier import FloralClassifier as FloralClassifier
from floral_learn.floral.paper import PaperFloralClassifier as PaperFloralClassifier
from floral_learn.floral.settings import Engine as Engine
from floral_learn.labels.evidence import judge_labels as judge_labels
from floral_learn.neural.floral_net import NeuralFloralClassifier as NeuralFloralClassifier
from floral_learn.neural.head import FloralHead as FloralHead
from floral_learn.neural.text import TextClassifier as TextClassifier
from floral_learn.neural.text_floral import TextFloralClassifier as TextFloralClassifier
from floral_learn.review.label_review import LabelReview as LabelReview
from floral_learn.review.text_review import TextReview as TextReview
from floral_learn.sanitizers import ContradictedLabels as ContradictedLabels
from floral_learn.sanitizers import CurieFilter as CurieFilter
from floral_learn.sanitizers import KLIDWeights as KLIDWeights
from floral_learn.sanitizers import KNNRelabel as KNNRelabel
from floral_learn.sanitizers.sanitized import SanitizedClassifier as SanitizedClassifier

__version__: str
__all__: list[str]
