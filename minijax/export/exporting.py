"""`export`: from a jitted function to a program that leaves the process.

Input: a jitted function and types of arguments.  Output: an `Exported`.  The function is traced and
lowered as for a call, once for each platform.  What a module for this process keeps outside, large
constants, comes inside; what cannot leave, calls of Python, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

from jaxlib.mlir import ir

from minijax.core import effects, source
from minijax.core.aval import AbstractValue, aval_of
from minijax.core.errors import error
from minijax.export import artifacts, generalization, symbols
from minijax.export.checks import DisabledSafetyCheck
from minijax.export.exported import Exported
from minijax.interpreters import staging
from minijax.lowering import stablehlo
from minijax.lowering.call_plan import Partitioned, Replicated
from minijax.lowering.lowered import LoweredProgram
from minijax.lowering.module import host_value
from minijax.lowering.stablehlo import LoweringContext
from minijax.runtime import client
from minijax.sharding.base import Sharding
from minijax.sharding.named import NamedSharding
from minijax.transforms.autodiff import grad
from minijax.transforms.jit import jit
from minijax.transforms.jit.stages import ShapeDtypeStruct, Traced

minimum_supported_calling_convention_version = 9
maximum_supported_calling_convention_version = 10


def default_export_platform() -> str:
    """The platform that functions are exported for where nobody says another one.

    Example:
        >>> jax.export.default_export_platform()
        'cpu'
    """
    return str(client.default_device().platform)


@source.boundary
def export(
    fun_jit: Callable[..., Any],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
) -> Callable[..., Exported]:
    """Makes of a jitted function a program that can be written to a file and run elsewhere.

    Args:
        fun_jit: what `jit` returns.
        platforms: what it shall run on, among cpu, cuda, rocm and tpu; of several it takes the one
            where it is called.  By default that of the default device.
        disabled_checks: what shall not be checked.

    Returns:
        A function of arguments, or of `ShapeDtypeStruct`s, that gives an `Exported`.  Sizes may be
        symbols, see `symbolic_shape`.

    Raises:
        ValueError: `fun_jit` is not jitted; or, when arguments are given, it calls functions by
            name that other versions need not have.
        NotImplementedError: it calls Python, or is mapped by `pmap`.

    Example:
        >>> exported = jax.export.export(jax.jit(lambda x: 2 * x))(jnp.ones(3))
        >>> file = exported.serialize(vjp_order=1)
        >>> jax.grad(lambda x: jax.export.deserialize(file).call(x).sum())(jnp.ones(3))
        Array([2., 2., 2.], dtype=float32)
    """
    if not jit.is_jitted(fun_jit):
        problem = "Function to be exported must be the result of `jit`."
        fix = "export.export(jax.jit(f))"
        error(ValueError, "export.export", problem, got=repr(fun_jit), fix=fix)
    wanted = (platforms,) if isinstance(platforms, str) else platforms

    @source.boundary
    def exported(*args: Any, **kwargs: Any) -> Exported:
        names = tuple(wanted) if wanted is not None else (default_export_platform(),)
        if not names:
            error(ValueError, "export.export", "there is no platform to export for.")
        return _export(fun_jit, args, kwargs, names, tuple(disabled_checks))

    return exported


class _Module(NamedTuple):
    """A function as a module, for one platform.

    Attributes:
        module: with the constants inside.
        kept: which arguments it takes.
        lowered: what lowering says beyond.
    """

    module: ir.Module
    kept: tuple[int, ...]
    lowered: LoweredProgram


def _export(
    fun: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    platforms: tuple[str, ...],
    checks: tuple[DisabledSafetyCheck, ...],
) -> Exported:
    traced: Traced = fun.trace(*args, **kwargs)
    avals = traced._in_avals
    scope = symbols.common_scope(traced.fun_name, avals)
    if scope is None:
        module, made = _joined([_module(traced, name) for name in platforms])
        out_avals = traced._closed.out_avals
    else:
        module, probes, shape_of = generalization.generalized(
            lambda probe: _at_probe(fun, traced, args, kwargs, probe, platforms),
            traced.fun_name,
            avals,
            scope,
            has_platform=len(platforms) > 1,
        )
        made = probes[0]
        results = zip(*(one.lowered.jaxpr.outvars for one in probes), strict=True)
        out_avals = [
            values[0].aval.update(shape=shape_of([v.aval.shape for v in values]))
            for values in results
        ]
    uses_constants = scope is not None or len(platforms) > 1
    with stablehlo.context():
        flag = ir.BoolAttr.get(uses_constants)
        module.operation.attributes["jax.uses_shape_polymorphism"] = flag
    targets = [t for check in checks if (t := check.is_custom_call()) is not None]
    artifacts.check_targets(module, traced.fun_name, targets)
    found = made.lowered.jaxpr.effects
    ordered = effects.ordered_among(found)
    ins, outs = _placements(made, len(avals), out_avals)
    return Exported(
        fun_name=traced.fun_name,
        in_tree=traced.in_tree,
        in_avals=tuple(avals),
        out_tree=traced.out_tree,
        out_avals=tuple(out_avals),
        _has_named_shardings=True,
        _in_named_shardings=ins,
        _out_named_shardings=outs,
        in_shardings_hlo=(None,) * len(ins),
        out_shardings_hlo=(None,) * len(outs),
        nr_devices=_devices(made.lowered),
        platforms=platforms,
        ordered_effects=tuple(ordered),
        unordered_effects=tuple(effect for effect in found if effect not in ordered),
        disabled_safety_checks=checks,
        mlir_module_serialized=artifacts.serialized(module),
        calling_convention_version=maximum_supported_calling_convention_version,
        module_kept_var_idx=made.kept,
        uses_global_constants=uses_constants,
        _get_vjp=lambda exported: _vjp(exported, _function_at(fun, traced, args, kwargs)),
    )


def _at_probe(
    fun: Any,
    traced: Traced,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    probe: int,
    platforms: Sequence[str],
) -> tuple[ir.Module, _Module]:
    """The module for one choice of numbers for the symbols."""
    if probe:
        args, kwargs = symbols.at_probe((args, kwargs), probe)
        traced = fun.trace(*args, **kwargs)
    # Sizes follow from arguments, also from those that are used for nothing else.
    traced._options = traced._options._replace(keep_unused=True)
    return _joined([_module(traced, name) for name in platforms])


def _module(traced: Traced, platform: str) -> _Module:
    """The module of a function for one platform; it takes its arguments and nothing else."""
    lowered = traced.lower(lowering_platforms=(platform,))
    if lowered._written:
        problem = "a program that leaves the process has no references."
        error(NotImplementedError, "export.export", problem, fix="return the new values")
    made = lowered._lowered
    name = traced.fun_name
    if made.host_callbacks:
        problem = f"{name} calls Python, which stays in this process."
        got = "a callback, such as debug.print, pure_callback or io_callback"
        error(NotImplementedError, "export.export", problem, got=got, fix="leave it out")
    if isinstance(made.plan.shape, Replicated):
        problem = f"{name} is mapped over devices by pmap."
        fix = "use shard_map, or jit with shardings"
        error(NotImplementedError, "export.export", problem, fix=fix)
    module = artifacts.copied(made.module)
    if made.large_consts:
        _with_constants(module, made)
    kept = made.used
    if kept is None:
        kept = tuple(range(len(traced._closed.in_avals)))
    return _Module(module, tuple(kept), made)


def _with_constants(module: ir.Module, made: LoweredProgram) -> None:
    """Puts large constants, which a module takes as its first arguments, into the module."""
    main = artifacts.functions(module)["main"]
    types = list(artifacts.value_of(main, "function_type").inputs)
    tokens = len(effects.ordered_among(made.jaxpr.effects))
    count = len(made.large_consts)
    attributes = [stablehlo.dictionary({}) for _ in types]
    if "arg_attrs" in main.attributes:
        attributes = list(ir.ArrayAttr(main.attributes["arg_attrs"]))

    def arguments(ctx: LoweringContext, given: Sequence[ir.Value[Any]]) -> list[ir.Value[Any]]:
        consts = [ctx.constant(host_value(c)) for c in made.large_consts]
        return [*given[:tokens], *consts, *given[tokens:]]

    def rest(items: list[Any]) -> list[Any]:
        return items[:tokens] + items[tokens + count :]

    artifacts.wrap_main(module, rest(types), arguments, rest(attributes))


def _joined(made: Sequence[_Module]) -> tuple[ir.Module, _Module]:
    """One module for several platforms: it takes the number of the platform first."""
    first = made[0]
    if len(made) == 1:
        return first.module, first
    if any(one.kept != first.kept for one in made):
        problem = "the function uses other arguments on other platforms."
        error(NotImplementedError, "export.export", problem, fix="jit(f, keep_unused=True)")
    module = first.module
    with stablehlo.context(), ir.Location.unknown():
        return _with_choice(module, made), first


def _with_choice(module: ir.Module, made: Sequence[_Module]) -> ir.Module:
    types = list(artifacts.value_of(artifacts.functions(module)["main"], "function_type").inputs)
    names = [_added(module, one.module, i) for i, one in enumerate(made)]
    number = ir.RankedTensorType.get([], ir.IntegerType.get_signless(32, stablehlo.context()))
    _choose(module, names, [number, *types])
    return module


def _added(module: ir.Module, other: ir.Module, number: int) -> str:
    """Adds the functions of another module; what its `main` is called there."""
    tops = [op.operation for op in other.body.operations]
    renamed = f"platform_{number}."
    for op in tops:
        old = artifacts.value_of(op, "sym_name")
        if op.name == "func.func":
            ir.SymbolTable.replace_all_symbol_uses(old, renamed + old, other.operation)
            op.attributes["sym_name"] = stablehlo.string(renamed + old)
            op.attributes["sym_visibility"] = stablehlo.string("private")
            if other is not module:
                op.clone(ir.InsertionPoint(module.body))
    return f"{renamed}main"


def _choose(module: ir.Module, names: Sequence[str], types: Sequence[ir.Type]) -> None:
    """Adds the function that calls one of several, by the number that is its first argument."""
    context = stablehlo.context()
    with context, ir.Location.unknown() as unknown:
        callees = artifacts.functions(module)
        inner = callees[names[0]]
        out_types = list(artifacts.value_of(inner, "function_type").results)
        attributes = {
            "sym_name": stablehlo.string("main"),
            "sym_visibility": stablehlo.string("public"),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get(list(types), out_types)),
        }
        index = stablehlo.dictionary({"jax.global_constant": stablehlo.string("_platform_index")})
        given = [stablehlo.dictionary({})] * (len(types) - 1)
        if "arg_attrs" in inner.attributes:
            given = list(ir.ArrayAttr(inner.attributes["arg_attrs"]))
        attributes["arg_attrs"] = ir.ArrayAttr.get([index, *given])
        if "res_attrs" in inner.attributes:
            attributes["res_attrs"] = inner.attributes["res_attrs"]
        point = ir.InsertionPoint(inner)
        main = ir.Operation.create("func.func", [], [], attributes, regions=1, ip=point)
        block = main.regions[0].blocks.append(*types, arg_locs=[unknown] * len(types))
        ctx = LoweringContext(cast("Any", module), "", ir.InsertionPoint(block), unknown)
        number, *values = block.arguments

        def branch(name: str) -> Any:
            callee = {"callee": stablehlo.symbol(name)}
            return lambda inner: inner.ops("func.call", values, callee, out_types)

        regions: list[tuple[list[ir.Type], Any]] = [([], branch(name)) for name in names]
        outs = ctx.ops("stablehlo.case", [number], types=out_types, regions=regions)
        ir.Operation.create("func.return", [], outs, ip=ctx.point)


def _devices(lowered: LoweredProgram) -> int:
    return lowered.plan.shape.num_devices


def _placements(
    made: _Module, arguments: int, outs: Sequence[AbstractValue]
) -> tuple[tuple[NamedSharding | None, ...], tuple[NamedSharding | None, ...]]:
    """Where arguments and results are placed, on meshes without devices."""
    shape = made.lowered.plan.shape
    if not isinstance(shape, Partitioned):
        return (None,) * arguments, (None,) * len(outs)
    ins: list[NamedSharding | None] = [None] * arguments
    for i in made.kept:
        ins[i] = _abstract(shape.in_shardings[i])
    return tuple(ins), tuple(map(_abstract, shape.out_shardings))


def _abstract(sharding: Sharding | None) -> NamedSharding | None:
    return sharding.abstract if isinstance(sharding, NamedSharding) else None


def _function_at(
    fun: Any, traced: Traced, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Callable[..., list[Any]]:
    """The function of flat arguments; sizes that are symbols have the arguments' probe."""

    def flat(*values: Any) -> list[Any]:
        probe = symbols.probe_of([aval_of(x) for x in values])
        closed = traced._closed
        if probe:
            moved, named = symbols.at_probe((args, kwargs), probe)
            closed = fun.trace(*moved, **named)._closed
        return list(staging.eval_closed_jaxpr(closed, *values))

    return flat


def _vjp(exported: Exported, function: Callable[..., list[Any]]) -> Exported:
    """The derivative of an exported program in reverse mode, exported for the same platforms."""
    count = len(exported.in_avals)

    def backward(*values: Any) -> Any:
        _, pull_back = grad.vjp(function, *values[:count])
        return pull_back(list(values[count:]))

    cotangents = [aval.tangent_aval() for aval in exported.out_avals]
    ins = exported._in_named_shardings
    placed: dict[str, Any] = {}
    if any(s is not None for s in (*ins, *exported._out_named_shardings)):
        placed = {"in_shardings": (*ins, *exported._out_named_shardings), "out_shardings": ins}
    backward.__name__ = f"{exported.fun_name}_vjp"
    jitted = jit.jit(backward, **placed)
    given = [ShapeDtypeStruct(a.shape, a.dtype) for a in (*exported.in_avals, *cotangents)]
    checks = exported.disabled_safety_checks
    return export(jitted, platforms=exported.platforms, disabled_checks=checks)(*given)
