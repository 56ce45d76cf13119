"""What happened and why: causes of repeated tracing and compilation."""

from minijax.explain.differences import Cause, Change
from minijax.explain.report import Report, Retrace, no_retrace, retraces

__all__ = ["Cause", "Change", "Report", "Retrace", "no_retrace", "retraces"]
