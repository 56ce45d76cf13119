"""Calls of exported programs: one operation, which brings their modules into that of the caller.

Input: an `Exported` and arguments.  Output: results.  Sizes that are symbols become those of the
arguments, and of several platforms one is chosen, before the modules are joined, so that the caller
never sees a symbol of another program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.core import dtypes, tree, vma
from minijax.core.aval import ShapedArray
from minijax.core.errors import error
from minijax.core.primitive import Primitive
from minijax.core.tree_errors import differences, mismatch_error
from minijax.export import artifacts, solving, symbols
from minijax.export.checks import DisabledSafetyCheck
from minijax.lowering.stablehlo import LoweringContext, symbol
from minijax.runtime import call_targets
from minijax.runtime.array import physical_aval
from minijax.sharding import rules
from minijax.sharding.named import NamedSharding
from minijax.transforms.autodiff.custom_vjp import custom_vjp


class CallExported(Primitive):
    """Calls a program that was exported, or read from a file.

    Shapes:     those of the program, whose symbols are solved for the sizes of the operands.
    Varying:    results vary wherever an operand does.
    Derivative: none of its own; `call` has the program's rule of reverse mode.
    """

    name = "call_exported"
    multiple_results = True
    has_effects = True
    shard = rules.from_types

    def abstract_eval(self, *avals: Any, exported: Any) -> list[Any]:
        names = names_of_arguments(exported)
        for expected, actual, name in zip(exported.in_avals, avals, names, strict=True):
            _check_type(exported, expected, actual, name)
        shapes = [aval.shape for aval in avals]
        sizes = solving.solve(exported.fun_name, exported.in_avals, shapes, names)
        placed = zip(exported.out_avals, exported._out_named_shardings, strict=True)
        return [
            _typed(
                ShapedArray(sizes.of(aval.shape), aval.dtype, memory_kind=aval.memory_kind), place
            )
            for aval, place in placed
        ]

    def effects(self, *avals: Any, exported: Any) -> frozenset[Any]:
        return frozenset(exported.ordered_effects + exported.unordered_effects)

    def lower(self, ctx: LoweringContext, *values: Any, exported: Any) -> list[Any]:
        platform = _platform(exported, ctx.platform)
        _check_devices(exported, ctx.module.devices)
        constrained = [
            _constrained(ctx, x, place, aval)
            for x, place, aval in zip(
                values, exported._in_named_shardings, ctx.avals_in, strict=True
            )
        ]
        kept = [constrained[i] for i in exported.module_kept_var_idx]
        tokens = [ctx.tokens[effect] for effect in exported.ordered_effects]
        operands = tokens + kept
        several = len(exported.platforms) > 1
        module = artifacts.specialized(
            exported.mlir_module_serialized,
            [x.type for x in operands],
            platform if several else None,
            has_symbols=exported.uses_global_constants,
        )
        if any(target in artifacts.STABLE_TARGETS for target in artifacts.targets(module)):
            call_targets.provide_linear_algebra(ctx.platform)
        name, signature = artifacts.merged(ctx, module, f"call_exported_{exported.fun_name}")
        attributes = {"callee": symbol(name)}
        outs = list(
            ctx.operation("func.call", operands, attributes, list(signature.results)).results
        )
        ctx.tokens.update(zip(exported.ordered_effects, outs[: len(tokens)], strict=True))
        placed = zip(outs[len(tokens) :], exported._out_named_shardings, ctx.avals_out, strict=True)
        return [_constrained(ctx, x, place, aval) for x, place, aval in placed]

    def batch(self, *args: Any, exported: Any, **params: Any) -> Any:
        problem = "exported programs cannot be batched, as their code is fixed."
        fix = "export vmap(f), with a symbol for the batch, or call it in lax.map"
        error(NotImplementedError, "Exported.call", problem, got=exported.fun_name, fix=fix)


call_exported_p = CallExported()
vma.vary.rule(CallExported)(vma.from_types)
dtypes.knows_extended.set(True, CallExported)
rules.constrains_results.set(False, CallExported)


def names_of_arguments(exported: Any) -> Sequence[str]:
    """What messages call the flat arguments of a program: `args[0]`, `kwargs['x'][1]`."""
    return [
        f"{'args' if path[0].idx == 0 else 'kwargs'}{''.join(map(str, path[1:]))}"
        for path in argument_paths_of(exported)
    ]


def argument_paths_of(exported: Any) -> list[Any]:
    """The paths of the flat arguments in (args, kwargs)."""
    example = tree.unflatten(exported.in_tree, [0] * exported.in_tree.num_leaves)
    return [path for path, _ in tree.leaves_with_path(example)]


def call(exported: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls an exported program.

    Raises:
        ValueError: arguments have another structure or other types than it was exported for.
    """
    leaves, in_tree = tree.flatten((args, kwargs))
    if in_tree != exported.in_tree:
        problem = f"{exported.fun_name} was exported for arguments of another structure."
        found = differences(in_tree, exported.in_tree, prefix=False)
        raise mismatch_error(
            "Exported.call", problem, found, first="(args, kwargs)", second="exported"
        )

    def flat(*values: Any) -> tuple[Any, ...]:
        return tuple(call_exported_p.bind(*values, exported=exported))

    flat.__name__ = exported.fun_name
    return tree.unflatten(exported.out_tree, _differentiable(exported, flat)(*leaves))


def _differentiable(exported: Any, flat: Any) -> Any:
    """A function of flat arguments with the derivative that the program may bring along."""
    rule = custom_vjp(flat)

    def forward(*values: Any) -> tuple[Any, Any]:
        return rule(*values), values

    def backward(values: Any, cts: Any) -> tuple[Any, ...]:
        return tuple(call(exported.vjp(), (*values, *cts), {}))

    rule.defvjp(forward, backward)
    return rule


def _check_type(exported: Any, expected: ShapedArray, actual: Any, name: str) -> None:
    """Refuses an argument of another rank or dtype, or of another size where that is a number."""
    problem = None
    if not isinstance(actual, ShapedArray):
        problem = "is no array"
    elif expected.ndim != actual.ndim:
        problem = "Rank mismatch"
    elif expected.dtype != actual.dtype:
        problem = "Dtype mismatch"
    else:
        for d, (known, given) in enumerate(zip(expected.shape, actual.shape, strict=True)):
            if not symbols.is_symbolic_dim(known) and known != given:
                problem, name = "Shape mismatch", f"{name}.shape[{d}]"
                break
    if problem is not None:
        error(
            ValueError,
            "Exported.call",
            f"{problem} for {name}: {exported.fun_name} was exported for another type.",
            got=str(actual),
            expected=str(expected),
            fix="convert the argument, or export the function for its type",
        )


def _typed(aval: ShapedArray, place: NamedSharding | None) -> Any:
    is_shown = place is not None and place.mesh.explicit_axes
    return rules.typed_aval(aval, place) if is_shown and place is not None else aval


def _constrained(
    ctx: LoweringContext, value: Any, place: NamedSharding | None, aval: ShapedArray
) -> Any:
    if place is None or place.mesh.empty or place.mesh.size != ctx.module.partitioning.devices:
        return value
    return ctx.module.partitioning.constrained(ctx, value, place, physical_aval(aval).ndim)


def _platform(exported: Any, platform: str) -> int:
    """The number of a platform among those of a program.

    Raises:
        ValueError: the program is not for it.
    """
    if platform in exported.platforms:
        return exported.platforms.index(platform)
    if DisabledSafetyCheck.platform() in exported.disabled_safety_checks:
        return 0
    error(
        ValueError,
        "Exported.call",
        f"Function '{exported.fun_name}' was exported for platforms '{exported.platforms}' but it "
        f"is used on '{(platform,)}'.",
        fix="export it with platforms=[...], or with disabled_checks="
        "[DisabledSafetyCheck.platform()]",
    )


def _check_devices(exported: Any, devices: int) -> None:
    """Refuses a program for another number of devices than the caller runs on.

    Raises:
        ValueError: it is.
    """
    if exported.nr_devices not in (1, devices):
        error(
            ValueError,
            "Exported.call",
            f"Function {exported.fun_name} was exported for {exported.nr_devices} devices and is "
            f"called in a context with {devices} devices, which is not allowed.",
            fix="place the arguments on a mesh of as many devices: "
            "device_put(x, exported.in_shardings_jax(mesh)[0])",
        )
