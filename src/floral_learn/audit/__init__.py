"""Find labels that look wrong: ``audit(X, y)`` gives a calibrated, ranked list, a page and a ranking of sources."""

from .result import AuditResult
from .run import audit

__all__ = ["AuditResult", "audit"]
