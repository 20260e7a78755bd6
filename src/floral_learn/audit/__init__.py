"""Find labels that look wrong: ``find_label_issues(X, y)`` gives a ranked list, a page and a ranking of sources."""

from .decisions import read_decisions
from .issues import find_label_issues
from .result import LabelIssues

__all__ = ["LabelIssues", "find_label_issues", "read_decisions"]
