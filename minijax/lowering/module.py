"""Lowering: from a jaxpr to a StableHLO module.  Step 5 of a call.

Input: a closed jaxpr and what is known about its arguments.  Output: an MLIR module.  Each
equation asks its primitive for the operations it stands for.

`docs/reading.md`: read after `interpreters/batching.py`; `lowering/program.py` is next.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Sequence
from types import CodeType
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext

from minijax.core import config, dtypes, effects, source
from minijax.core.aval import AbstractTodo, AbstractValue, abstract_token
from minijax.core.dtypes import DType
from minijax.core.errors import InternalError, error
from minijax.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from minijax.core.operators import Function, HostArray, Values
from minijax.core.primitive import Primitive
from minijax.core.trace import Params
from minijax.interpreters import batching, staging
from minijax.interpreters.structural import to_batch_dim
from minijax.lowering import regions, stablehlo
from minijax.lowering.call_plan import ONE_DEVICE, AbstractPlan, PlanShape
from minijax.lowering.module_placement import (
    Attributes,
    PlacedModule,
    annotate_memory,
)
from minijax.lowering.stablehlo import LoweringContext, string, symbol, type_of
from minijax.runtime.array import is_array, physical_aval, to_numpy
from minijax.runtime.callbacks import HostCallback

_create = ir.Operation.create
_name_location = ir.Location.name
_FRAMES_IN_LOCATIONS = 10


class Lowering(PlacedModule):
    """A module under construction: its functions, names and source locations."""

    def __init__(self, name: str, platform: str, shape: PlanShape = ONE_DEVICE) -> None:
        context = stablehlo.context()
        self.platform = platform
        self.unknown = ir.Location.unknown(context)
        self.module = ir.Module.create(loc=self.unknown)
        self.module.operation.attributes["sym_name"] = string(sanitize(name))
        self.point = ir.InsertionPoint(self.module.body)
        self.host_callbacks: list[HostCallback] = []
        # A symbol of the module not taken yet; no method, which would be a cycle.
        self.fresh_name = functools.partial(_fresh_name, Counter())
        super().__init__(self.module, shape, self.fresh_name)
        self._context = context
        self._op_names: dict[tuple[object, ...], str] = {}
        self._functions: dict[int, str] = {}
        self._kept_alive: list[ClosedJaxpr] = []
        self._locations = _jax_mlir_ext.TracebackToLocationCache(
            code_to_filename=_user_file, frame_limit=_FRAMES_IN_LOCATIONS, context=context
        )

    scalar_of_region = staticmethod(regions.scalar)

    def location(self, eqn: Eqn, scope: tuple[str, ...]) -> ir.Location:
        """Where an equation comes from: its scope, its primitive, the user's lines."""
        key = (scope, eqn.scope, eqn.primitive)
        name = self._op_names.get(key)
        if name is None:
            name = self._op_names[key] = "/".join((*scope, *eqn.scope, eqn.primitive.name))
        try:
            child = self.unknown if eqn.source is None else self._locations.get(eqn.source)
        except RuntimeError:  # The path of a file need not be text.
            child = self.unknown
        return _name_location(name, child, self._context)

    def function(
        self,
        name: str,
        jaxpr: Jaxpr,
        consts: Values,
        *,
        scope: tuple[str, ...] = (),
        public: bool = False,
        arg_attributes: Sequence[Attributes] = (),
        result_attributes: Sequence[Attributes] = (),
        arg_names: Sequence[str] | None = None,
    ) -> None:
        """Adds a function that computes `jaxpr`.

        The tokens of its ordered effects are its first arguments and its first results.
        """
        ordered = effects.ordered_among(jaxpr.effects)
        tokens = [type_of(abstract_token)] * len(ordered)
        in_types = tokens + [type_of(v.aval) for v in jaxpr.invars]
        out_types = tokens + [type_of(v.aval) for v in jaxpr.outvars]
        context = stablehlo.context()
        attributes = {
            "sym_name": string(name),
            "function_type": ir.TypeAttr.get(
                ir.FunctionType.get(in_types, out_types, context), context
            ),
            "sym_visibility": string("public" if public else "private"),
        }
        of_tokens: list[Attributes] = [{} for _ in tokens]
        for key, per_value in (("arg_attrs", arg_attributes), ("res_attrs", result_attributes)):
            if any(per_value):
                attributes[key] = ir.ArrayAttr.get(
                    [ir.DictAttr.get(a, context) for a in [*of_tokens, *per_value]], context
                )
        operation = _create(
            "func.func", [], [], attributes, regions=1, loc=self.unknown, ip=self.point
        )
        locations: list[ir.Location] = [self.unknown for _ in in_types]
        if arg_names is not None and len(arg_names) == len(jaxpr.invars):
            readable = map(source.readable, arg_names)
            names = [ir.Location.name(n, self.unknown, context) for n in readable]
            locations = [*locations[: len(tokens)], *names]
        block = operation.regions[0].blocks.append(*in_types, arg_locs=locations)
        ctx = LoweringContext(self, self.platform, ir.InsertionPoint(block), self.unknown)
        outs = lower_region(ctx, ClosedJaxpr(jaxpr, consts), ordered, list(block.arguments), scope)
        if result_attributes:
            outs[len(tokens) :] = annotate_memory(ctx, outs[len(tokens) :], result_attributes)
        _create("func.return", [], outs, loc=self.unknown, ip=ctx.point)

    def call(
        self, ctx: LoweringContext, closed: ClosedJaxpr, name: str, args: Sequence[Any]
    ) -> list[ir.Value[Any]]:
        """Calls `closed` as a private function, which is added once however often it is called.

        What has started must be done in the same function, so such calls are written out.
        """
        if any(
            isinstance(v.aval, AbstractTodo) for v in closed.jaxpr.invars + closed.jaxpr.outvars
        ):
            return lower_jaxpr(ctx, closed.jaxpr, closed.consts, args, (f"jit({name})",))
        function_name = self._functions.get(id(closed))
        if function_name is None:
            function_name = self.fresh_name(name)
            self._functions[id(closed)] = function_name
            self._kept_alive.append(closed)
            self.function(function_name, closed.jaxpr, closed.consts, scope=(f"jit({name})",))
        ordered = effects.ordered_among(closed.effects)
        tokens = [ctx.tokens[effect] for effect in ordered]
        types = [t.type for t in tokens] + [type_of(v.aval) for v in closed.jaxpr.outvars]
        callee = {"callee": symbol(function_name)}
        outs = ctx.ops("func.call", [*tokens, *args], callee, types)
        ctx.tokens.update(zip(ordered, outs[: len(ordered)], strict=True))
        return outs[len(ordered) :]


def _fresh_name(taken: Counter[str], name: str) -> str:
    base = sanitize(name)
    taken[base] += 1
    return base if taken[base] == 1 else f"{base}_{taken[base] - 2}"


def _user_file(code: CodeType) -> str | None:
    return None if source.is_internal(code.co_filename) else str(code.co_filename)


def sanitize(name: str) -> str:
    """A name fit for a symbol: what is not a letter, digit, dot or dash becomes an underscore."""
    return re.sub(r"[^\w.-]", "_", name).rstrip("_")


def host_value(value: Any) -> HostArray:
    """A constant of a jaxpr as a NumPy array, of the dtype that XLA computes with."""
    if is_array(value):
        return to_numpy(value.buffer)
    return np.asarray(value)


def lower_jaxpr(
    ctx: LoweringContext,
    jaxpr: Jaxpr,
    consts: Values,
    args: Sequence[Any],
    scope: tuple[str, ...] = (),
    location: ir.Location | None = None,
) -> list[ir.Value[Any]]:
    """Builds the equations of `jaxpr` where `ctx` points; the MLIR values of its results.

    Args:
        ctx: a context that builds there.
        jaxpr: the equations.
        consts: values of its constants.
        args: MLIR values of its arguments.
        scope: names that the operations' locations begin with.
        location: the location of all operations; that of each equation where absent.
    """
    values: dict[Atom, ir.Value[Any]] = dict(zip(jaxpr.invars, args, strict=True))
    for var, const in zip(jaxpr.constvars, consts, strict=True):
        values[var] = ctx.constant(host_value(const), _physical_dtype(var.aval))

    def read(atom: Atom) -> ir.Value[Any]:
        if type(atom) is Literal:
            return ctx.constant(atom.value, atom.aval.dtype)
        return values[atom]

    locate = ctx.module.location
    is_partitioned = ctx.module.is_partitioned
    for eqn in jaxpr.eqns:
        primitive = eqn.primitive
        invars, outvars = eqn.invars, eqn.outvars
        operands = [values[v] if type(v) is Var else read(v) for v in invars]
        ctx.location = location or locate(eqn, scope)
        ctx.avals_in = avals = [v.aval for v in invars]
        ctx.avals_out = [v.aval for v in outvars]
        for aval in avals:
            if aval.is_extended and not dtypes.knows_extended.of(primitive):
                outs = _lower_physically(ctx, primitive, operands, eqn.params)
                values.update(zip(outvars, outs, strict=True))
                break
        else:
            outs = primitive.lower(ctx, *operands, **eqn.params)
            if primitive.multiple_results:
                values.update(zip(outvars, outs, strict=True))
            else:
                values[outvars[0]] = outs
        if is_partitioned:
            ctx.module.constrain_results(ctx, eqn, values)
    return [read(atom) for atom in jaxpr.outvars]


def lower_region(
    ctx: LoweringContext,
    closed: ClosedJaxpr,
    ordered: Sequence[effects.Effect],
    args: Sequence[Any],
    scope: tuple[str, ...] = (),
) -> list[ir.Value[Any]]:
    """Builds a jaxpr inside a region that takes and returns the tokens of `ordered` effects first.

    Args:
        ctx: a context that builds in the region.
        closed: what the region computes.
        ordered: the effects whose tokens are the first of `args` and of the results.
        args: values of the tokens, then of the arguments of `closed`.
        scope: names that the operations' locations begin with.
    """
    count = len(ordered)
    ctx.tokens.update(zip(ordered, args[:count], strict=True))
    outs = lower_jaxpr(ctx, closed.jaxpr, closed.consts, args[count:], scope)
    return [ctx.tokens[effect] for effect in ordered] + outs


def _lower_physically(
    ctx: LoweringContext, primitive: Primitive, operands: Sequence[Any], params: Params
) -> list[ir.Value[Any]]:
    """Lowers an operation on extended dtypes: their physical dimension is a batch dimension."""
    size = next(a.dtype.physical_shape[0] for a in ctx.avals_in if a.is_extended)
    dims = [a.ndim if a.is_extended else None for a in ctx.avals_in]

    def function(*args: Any) -> list[Any]:
        outs, out_dims = batching.batch_flat(
            lambda *xs: primitive.bind_all(*xs, **params), size, args, dims
        )
        return [
            to_batch_dim(x, d, aval.ndim, size)
            if aval.is_extended
            else dtypes.over_words.of(primitive)(x, d)
            for x, d, aval in zip(outs, out_dims, ctx.avals_out, strict=True)
        ]

    jaxpr, consts = staging.stage(function, list(map(physical_aval, ctx.avals_in)))
    return lower_jaxpr(ctx, jaxpr, consts, operands, location=ctx.location)


def _physical_dtype(aval: AbstractValue) -> DType:
    return getattr(aval.dtype, "physical_dtype", aval.dtype)


def lower_function(
    ctx: LoweringContext, function: Function, *values: ir.Value[Any]
) -> list[ir.Value[Any]]:
    """Lowers an equation as the composition of other primitives that `function` calls.

    `function` takes values of the equation's argument types and returns a sequence of results.
    """
    jaxpr, consts = staging.stage(function, ctx.avals_in)
    # Staging has seen the line of the lowering, not that of the equation.
    return lower_jaxpr(ctx, jaxpr, consts, values, location=ctx.location)


def lower_physical_function(
    ctx: LoweringContext, function: Function, *values: ir.Value[Any]
) -> list[ir.Value[Any]]:
    """As `lower_function`, for a function of what XLA computes with in place of extended dtypes."""
    jaxpr, consts = staging.stage(function, list(map(physical_aval, ctx.avals_in)))
    return lower_jaxpr(ctx, jaxpr, consts, values, location=ctx.location)


def lower_to_module(
    closed: ClosedJaxpr,
    name: str,
    plan: AbstractPlan,
    *,
    arg_names: Sequence[str] | None = None,
    result_names: Sequence[str] | None = None,
) -> Lowering:
    """The module of a whole program; its function `main` computes `closed`.

    Args:
        closed: the program.
        name: the module is called `jit_<name>`, or `pmap_<name>` if it is mapped as a whole.
        plan: how it will run, with one entry for each argument of `closed`.
        arg_names: names of the arguments, for locations.
        result_names: paths of the results, shown as `jax.result_info`.
    """
    transformation = plan.transformation
    lowering = Lowering(f"{transformation}_{sanitize(name)}", plan.platform, plan.shape)
    lowering.fresh_name("main")
    jaxpr = closed.jaxpr
    arg_attributes, result_attributes = lowering.main_attributes(jaxpr, plan)
    for attributes, path in zip(result_attributes, result_names or (), strict=False):
        attributes["jax.result_info"] = string(path)
    with stablehlo.context(), lowering.unknown:
        lowering.function(
            "main",
            jaxpr,
            closed.consts,
            scope=(f"{transformation}({name})",),
            public=True,
            arg_attributes=arg_attributes,
            result_attributes=result_attributes,
            arg_names=arg_names,
        )
    if config.enable_checks.value:
        verify(lowering.module, closed)
    return lowering


def verify(module: ir.Module, closed: ClosedJaxpr | Jaxpr) -> None:
    """Checks that a module is valid: after every lowering in tests, and when XLA refuses one.

    Raises:
        InternalError: a lowering rule has built something that StableHLO does not allow.
    """
    try:
        module.operation.verify()
    except ir.MLIRError as caught:
        problem = "the module is not valid StableHLO."
        error(InternalError, "lowering", problem, got=f"{caught}\n{closed}", cause=None)
