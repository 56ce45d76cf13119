"""Telling the user how the compiler places a value inside a program.

XLA's partitioner meets a custom call that names a Python function, tells it the tiling of the
call's operand, and drops the call.  That happens during compilation in a thread of XLA's own, so
such programs are compiled one at a time, and who compiles says here for which devices.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jaxlib import _jax
from jaxlib.mlir import ir

from minijax.core import effects
from minijax.core.jaxpr import Jaxpr, subjaxprs
from minijax.interpreters import assignment
from minijax.interpreters.assignment import Assignment
from minijax.interpreters.hlo_build import LoweringContext, boolean
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

    __slots__ = ("failure", "originals", "where")

    def __init__(self, where: Assignment, originals: Sequence[Any]) -> None:
        self.where = where
        self.originals = originals
        self.failure: BaseException | None = None

    def public_sharding(self, tiling: Any, aval: Any) -> Sharding:
        """A tiling in the terms of the program's inputs."""
        if len(self.where.devices) == 1 and self.where.mesh is None:
            return SingleDeviceSharding(self.where.devices[0])
        return assignment.public_sharding(tiling, aval, self.where, self.originals)


_one_at_a_time = threading.RLock()
_under_way: list[_Compilation] = []


class Inspection:
    """A user's function that is told how a value is placed; a parameter of equations.

    Attributes:
        callback: the function, which takes a `Sharding`.
    """

    __slots__ = ("_encoded", "callback")

    def __init__(self, callback: Callable[[Any], Any]) -> None:
        self.callback = callback
        # For each type the function that XLA calls and its address: both must live on.
        self._encoded: dict[Any, tuple[Callable[[Any], None], Any]] = {}

    def __repr__(self) -> str:
        return f"Inspection({getattr(self.callback, '__name__', self.callback)})"

    def tell(self, tiling: Any, aval: Any) -> None:
        """Calls the user's function for a tiling that the compiler has chosen."""
        now = _under_way[-1]
        try:
            self.callback(now.public_sharding(tiling, aval))
        except BaseException as error:  # XLA must not see it: `compiling` raises it
            now.failure = now.failure or error

    def lower(self, ctx: LoweringContext, value: Any, aval: Any) -> None:
        """Adds the custom call that XLA's partitioner answers."""
        found = self._encoded.get(aval)
        if found is None:

            def told(tiling: Any) -> None:
                self.tell(tiling, aval)

            address = ir.StringAttr.get(_jax.encode_inspect_sharding_callback(told))
            found = self._encoded.setdefault(aval, (told, address))
        attributes = {
            "call_target_name": ctx.string(TARGET),
            "has_side_effect": boolean(True),
            "backend_config": found[1],
        }
        ctx.op("stablehlo.custom_call", [value], attributes, ctx.type_of(aval))


@contextlib.contextmanager
def compiling(jaxpr: Jaxpr, where: Assignment, originals: Sequence[Any]) -> Iterator[None]:
    """Compilation of a program: what its inspections need to know.

    Args:
        jaxpr: the program.
        where: where it will run.
        originals: the placements of its inputs as users have written them.

    Raises:
        BaseException: what a user's function has raised.
    """
    if effect not in jaxpr.effects:
        yield
        return
    with _one_at_a_time:
        now = _Compilation(where, originals)
        _under_way.append(now)
        try:
            if len(where.devices) == 1:
                _tell_of_one_device(jaxpr)
            yield
        finally:
            _under_way.pop()
    if now.failure is not None:
        raise now.failure


def _tell_of_one_device(jaxpr: Jaxpr) -> None:
    """Programs of one device are not partitioned, and all their values are whole."""
    for eqn in jaxpr.eqns:
        inspection = eqn.params.get("callback")
        if isinstance(inspection, Inspection):
            inspection.tell(hlo.REPLICATED, physical_aval(eqn.invars[0].aval))
    for inner in subjaxprs(jaxpr):
        _tell_of_one_device(inner)
