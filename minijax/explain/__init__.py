"""What happened and why: repeated compilation, and collectives on many devices."""

from minijax.explain.communication import Collective, Collectives, collectives
from minijax.explain.differences import Cause, Change
from minijax.explain.plans import Plan, PlannedCollective, PlannedValue, plan
from minijax.explain.report import Report, Retrace, no_retrace, retraces

__all__ = [
    "Cause",
    "Change",
    "Collective",
    "Collectives",
    "Plan",
    "PlannedCollective",
    "PlannedValue",
    "Report",
    "Retrace",
    "collectives",
    "no_retrace",
    "plan",
    "retraces",
]
