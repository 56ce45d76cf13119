"""Hooks of users into lowering and compilation: shape refinement, outfeeds, inspected shardings.

Some programs need a partner outside of this package: those with symbolic shapes one who knows the
sizes, those with outfeeds one who reads what they send.  Such a partner installs a step of
lowering.  Input: a closed jaxpr or a module.  Output: another one, which takes its place.

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
from typing import Any, cast

from jaxlib import _jax
from jaxlib.mlir import ir

from minijax.core import effects
from minijax.core.aval import AbstractValue
from minijax.core.cache import Cache
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, subjaxprs
from minijax.lowering import program_shardings
from minijax.lowering.call_plan import CallPlan
from minijax.lowering.stablehlo import LoweringContext, boolean
from minijax.runtime.array import physical_aval
from minijax.sharding import hlo
from minijax.sharding.base import Sharding
from minijax.sharding.named import SingleDeviceSharding

Refinement = Callable[[Any], Any]
OutfeedRewriter = Callable[[ClosedJaxpr], ClosedJaxpr]


def _no_refinement(module: ir.Module) -> Any:
    error(
        NotImplementedError,
        "compile",
        "the module has dimensions of unknown size, which XLA cannot compile.",
        got="a function of tensors with dimensions '?'",
        expected="sizes that are numbers",
        fix="lower the program for fixed shapes, or install what puts numbers for the "
        "dimensions with minijax.extend.hooks.set_shape_refinement",
    )


class _Hooks:
    """What users have installed."""

    refine: Refinement = staticmethod(_no_refinement)
    rewrite_outfeed: OutfeedRewriter | None = None


def set_shape_refinement(refine: Refinement | None) -> None:
    """Installs what puts numbers for dimensions of unknown size, before a module is compiled.

    Args:
        refine: takes an MLIR module some of whose functions have such dimensions, and returns a
            module, or its bytes, without; None for the default, which raises NotImplementedError.

    Source:     own.

    Example:
        >>> jax.extend.hooks.set_shape_refinement(lambda module: module)
        >>> jax.extend.hooks.set_shape_refinement(None)
    """
    _Hooks.refine = staticmethod(_no_refinement if refine is None else refine)


def set_outfeed_rewriter(rewrite: OutfeedRewriter | None) -> None:
    """Installs what puts the tokens of outfeeds into programs, before they are lowered.

    Programs that are there already are not rewritten: see `minijax.clear_caches`.

    Args:
        rewrite: takes a closed jaxpr and returns one of the same inputs and results; None for
            none, which is the default.

    Source:     own.

    Example:
        >>> def rewrite(closed):
        ...     print(closed)
        ...     return closed
        >>> jax.extend.hooks.set_outfeed_rewriter(rewrite)
        >>> _ = jax.jit(lambda x: x + 1).lower(2)
        { lambda ; a:i32[]. let b:i32[] = add a 1:i32[] in (b,) }
        >>> jax.extend.hooks.set_outfeed_rewriter(None)
    """
    _Hooks.rewrite_outfeed = rewrite


_rewritten = Cache(
    "outfeeds", "programs as the outfeed rewriter wants them", key="the rewriter", owner="jaxpr"
)


def with_outfeeds(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A program as the outfeed rewriter wants it: itself, if there is no rewriter."""
    rewrite = _Hooks.rewrite_outfeed
    if rewrite is None:
        return closed
    return _rewritten.of(closed, rewrite, lambda: rewrite(closed))


def refined(module: ir.Module) -> Any:
    """A module whose dimensions are all known: itself, if they are."""
    return _Hooks.refine(module) if uses_dimension_variables(module) else module


def uses_dimension_variables(module: ir.Module) -> bool:
    """Whether a function of a module takes or returns tensors with dimensions of unknown size."""
    for operation in module.body.operations:
        if operation.operation.name != "func.func":
            continue
        signature = cast("Any", operation.attributes["function_type"]).value
        for kind in (*signature.inputs, *signature.results):
            if isinstance(kind, ir.RankedTensorType) and not kind.has_static_shape:
                return True
    return False


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

    def public_sharding(self, tiling: object, aval: AbstractValue) -> Sharding:
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

    def tell(self, now: _Compilation, tiling: object, aval: AbstractValue) -> None:
        """Calls the user's function for a tiling that the compiler has chosen."""
        try:
            self.callback(now.public_sharding(tiling, aval))
        except BaseException as error:  # XLA must not see it: `compiling` raises it
            now.failure = now.failure or error

    def lower(self, ctx: LoweringContext, value: ir.Value[Any], aval: AbstractValue) -> None:
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

    def __init__(self, inspection: Inspection, aval: AbstractValue) -> None:
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
