"""Find labels that look wrong: ``audit(X, y)`` gives a calibrated, ranked list, a page and a ranking of sources."""

from .recovery import Recovery, RecoveryDisplay, recovery
from .result import AuditResult
from .run import audit

__all__ = ["AuditResult", "Recovery", "RecoveryDisplay", "audit", "recovery"]
