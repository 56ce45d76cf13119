"""Inspected shardings: how the compiler places a value inside a program.

An `Inspection` tells the user how the compiler places a value inside a program.  XLA's partitioner
meets a custom call that names a Python function, tells it the tiling of the call's operand, and
drops the call.  That happens during compilation in a thread of XLA's own, so each call in a module
has an `Inspected` of its own, and whoever compiles the module says there for which devices
(`compiling`).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jaxlib import _jax
from jaxlib.mlir import ir

from minijax.core import effects
from minijax.core.aval import ShapedArray
from minijax.core.jaxpr import Jaxpr, subjaxprs
from minijax.lowering import program_shardings
from minijax.lowering.call_plan import CallPlan
from minijax.lowering.stablehlo import LoweringContext, boolean
from minijax.runtime.array import physical_aval
from minijax.sharding import hlo
from minijax.sharding.base import Sharding
from minijax.sharding.named import SingleDeviceSharding

TARGET = "InspectSharding"


class InspectionEffect(effects.Effect):
    """A program shows the user how a value is placed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Inspection"


effect = InspectionEffect()
effects.lowerable_effects.add_type(InspectionEffect)
effects.control_flow_allowed_effects.add_type(InspectionEffect)
effects.unguarded_effects.add_type(InspectionEffect)


class _Compilation:
    """The compilation that is under way: where it will run, and what went wrong in callbacks."""

    __slots__ = ("failure", "plan")

    def __init__(self, plan: CallPlan) -> None:
        self.plan = plan
        self.failure: BaseException | None = None

    def public_sharding(self, tiling: Any, aval: ShapedArray) -> Sharding:
        """A tiling in the terms of the program's inputs."""
        if len(self.plan.devices) == 1 and self.plan.mesh is None:
            return SingleDeviceSharding(self.plan.devices[0])
        return program_shardings.public_sharding(tiling, aval, self.plan)


class Inspection:
    """A user's function that is told how a value is placed; a parameter of equations.

    Attributes:
        callback: the function, which takes a `Sharding`.
    """

    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[Any], Any]) -> None:
        self.callback = callback

    def __repr__(self) -> str:
        return f"Inspection({getattr(self.callback, '__name__', self.callback)})"

    def tell(self, now: _Compilation, tiling: Any, aval: ShapedArray) -> None:
        """Calls the user's function for a tiling that the compiler has chosen."""
        try:
            self.callback(now.public_sharding(tiling, aval))
        except BaseException as error:  # XLA must not see it: `compiling` raises it
            now.failure = now.failure or error

    def lower(self, ctx: LoweringContext, value: ir.Value[Any], aval: ShapedArray) -> None:
        """Adds the custom call that XLA's partitioner answers."""
        made = Inspected(self, aval)
        ctx.module.inspected.append(made)
        attributes = {
            "call_target_name": ctx.string(TARGET),
            "has_side_effect": boolean(True),
            "backend_config": made.address,
        }
        ctx.op("stablehlo.custom_call", [value], attributes, ctx.type_of(aval))


class Inspected:
    """A value of one module that is inspected; lives as long as the module, which names it.

    Attributes:
        tell: what XLA calls with a tiling.
        address: where XLA finds that.
        now: the compilation that is under way.
        lock: held meanwhile, of the module's first one.
    """

    def __init__(self, inspection: Inspection, aval: ShapedArray) -> None:
        self.tell = lambda tiling: inspection.tell(self.now, tiling, aval)
        self.address = ir.StringAttr.get(_jax.encode_inspect_sharding_callback(self.tell))
        self.now: Any = None
        self.lock = threading.RLock()


@contextlib.contextmanager
def compiling(jaxpr: Jaxpr, plan: CallPlan, inspected: Sequence[Inspected]) -> Iterator[None]:
    """Compilation of a program: what its inspections need to know.

    Args:
        jaxpr: the program.
        plan: where and how it will run.
        inspected: the values of its module that are inspected.

    Raises:
        BaseException: what a user's function has raised.
    """
    now = _Compilation(plan)
    with inspected[0].lock if inspected else contextlib.nullcontext():
        for value in inspected:
            value.now = now
        if effect in jaxpr.effects and len(plan.devices) == 1:
            _tell_of_one_device(jaxpr, now)
        try:
            yield
        except RuntimeError:
            if now.failure is None:
                raise
    if now.failure is not None:
        raise now.failure


def _tell_of_one_device(jaxpr: Jaxpr, now: _Compilation) -> None:
    """Programs of one device are not partitioned, and all their values are whole."""
    for eqn in jaxpr.eqns:
        inspection = eqn.params.get("callback")
        if isinstance(inspection, Inspection):
            inspection.tell(now, hlo.REPLICATED, physical_aval(eqn.invars[0].aval))
    for inner in subjaxprs(jaxpr):
        _tell_of_one_device(inner, now)
