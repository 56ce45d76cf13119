"""Lowered programs: what lowering makes of a closed jaxpr, and compilation takes."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from jaxlib.mlir import ir

from minijax.core.jaxpr import ClosedJaxpr, Jaxpr
from minijax.lowering.call_plan import AbstractPlan, select
from minijax.lowering.inspection import Inspected
from minijax.runtime.callbacks import HostCallback

T = TypeVar("T")


class LoweredProgram(NamedTuple):
    """A program as a StableHLO module.

    Attributes:
        module: the module.
        plan: the plan that it was lowered for.
        jaxpr: the program without dead code.
        used: positions of the arguments that the module still takes, or None for all.
        large_consts: constants that the module takes before its arguments.
        host_callbacks: Python functions that the module calls, by index.
        choices: see `lowering/partitioning.py`.
        inspected: values whose shardings user functions inspect.
        origin: the program before it was cleaned; weak, as this is in the program's cache.
    """

    module: ir.Module
    plan: AbstractPlan
    jaxpr: Jaxpr
    used: tuple[int, ...] | None
    large_consts: list[Any]
    host_callbacks: list[HostCallback]
    choices: Sequence[str]
    inspected: Sequence[Inspected]
    origin: weakref.ref[ClosedJaxpr]

    def of_used(self, items: Sequence[T]) -> Sequence[T]:
        """Selects, from one item for each argument, those of the arguments that are used."""
        return select(items, self.used)
