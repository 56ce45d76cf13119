"""What happened and why: repeated compilation, collectives, and the stages of a program."""

from minijax.explain.communication import Collective, Collectives, collectives
from minijax.explain.differences import Cause, Change
from minijax.explain.pipeline import Stages, stages
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
    "Stages",
    "collectives",
    "no_retrace",
    "plan",
    "retraces",
    "stages",
]


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
