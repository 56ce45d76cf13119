"""What a worker sees of one library's programs written per device: how devices communicate.

Of jaxprs it reports the collectives and casts, with the types of what they take and give; of the
StableHLO, the collectives with their groups of devices, and how values are cut where a manual
region begins and ends; of the optimized HLO, the collectives.  Casts of constants are left out:
minijax's literals need none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import observe
import observe_sharded
import parity_device_programs

_CASTS = ("pvary", "preduced", "reduced_vary_cast", "vary_unreduced_cast")
_COLLECTIVES = (
    "psum",
    "pmax",
    "pmin",
    "psum_invariant",
    "unreduced_psum",
    "ppermute",
    "pbroadcast",
    "all_gather",
    "all_gather_invariant",
    "all_gather_reduced",
    "reduce_scatter",
    "unreduced_reduce_scatter",
    "all_to_all",
    "ragged_all_to_all",
    "axis_index",
)
# Parameters that follow from others.
_IMPLIED = frozenset({"axis_size", "tiled"})

_COMMUNICATION = frozenset(
    f"stablehlo.{name}"
    for name in (
        "all_reduce",
        "all_gather",
        "all_to_all",
        "collective_permute",
        "reduce_scatter",
        "collective_broadcast",
        "partition_id",
        "replica_id",
    )
)
_SHOWN = ("replica_groups", "source_target_pairs", "split_dimension", "concat_dimension")


def observe_per_device(jax: Any, names: list[str]) -> dict[str, Any]:
    """What each program gives, or the class of the error that it raises."""
    jax.config.update("jax_num_cpu_devices", 8)
    programs = parity_device_programs.build(jax)
    return {
        name: _observe_one(jax, programs[name]) for name in programs if name in (names or programs)
    }


def _observe_one(jax: Any, program: parity_device_programs.PerDevice) -> dict[str, Any]:
    compiled_by = program.function if program.is_compiled else jax.jit(program.function)
    try:
        lowered = compiled_by.lower(*program.args)
        compiled = lowered.compile()
        results, tree = jax.tree.flatten(compiled_by(*program.args))
        jaxpr = None if program.is_compiled else jax.make_jaxpr(program.function)(*program.args)
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)[:300]}
    module = lowered.compiler_ir()
    return {
        "tree": str(tree),
        "types": [observe.type_text(jax, each) for each in results],
        "values": [observe.values(jax, each) for each in results],
        "equations": _counted(_communicating(jaxpr.jaxpr)) if jaxpr else [],
        "communication": _counted(_communication(module)),
        "borders": _counted(_borders(module)) if program.shows_borders else [],
        "collectives": observe_sharded.collectives(compiled.as_text()),
    }


def _counted(lines: Iterator[str]) -> list[str]:
    return [f"{count} {line}" for line, count in sorted(Counter(lines).items())]


def _communicating(jaxpr: Any, constants: frozenset[Any] = frozenset()) -> Iterator[str]:
    """The collectives and casts of a jaxpr and of those inside it."""
    known = set(constants)
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name.removesuffix("_p")
        nested = [each for value in eqn.params.values() for each in _jaxprs(value)]
        is_constant = all(hasattr(x, "val") or x in known for x in eqn.invars)
        if is_constant and not eqn.effects and not nested:
            known.update(eqn.outvars)
        if name in _COLLECTIVES or (name in _CASTS and not is_constant):
            yield _line(name, eqn)
        for inner in nested:
            pairs = zip(inner.invars, eqn.invars, strict=False)
            same = len(inner.invars) == len(eqn.invars)
            passed = {v for v, x in pairs if same and (hasattr(x, "val") or x in known)}
            yield from _communicating(inner, frozenset(passed))


def _jaxprs(value: Any) -> Iterator[Any]:
    for each in value if isinstance(value, (tuple, list)) else (value,):
        inner = getattr(each, "jaxpr", each)
        if hasattr(inner, "eqns"):
            yield inner


def _line(name: str, eqn: Any) -> str:
    params = ", ".join(
        f"{key}={_param(value)}"
        for key, value in sorted(eqn.params.items())
        if value is not None and key not in _IMPLIED
    )
    types = [" ".join(_type(x.aval) for x in side) for side in (eqn.invars, eqn.outvars)]
    return f"{name}[{params}] {types[0]} -> {types[1]}"


def _param(value: Any) -> str:
    value = value if isinstance(value, (tuple, list)) else (value,)
    return re.sub(r"[()\[\]' ]", "", str(tuple(value)))


def _type(aval: Any) -> str:
    kind = aval.manual_axis_type
    states = {"V": kind.varying, "U": kind.unreduced, "R": kind.reduced}
    shown = [f"{state}:{','.join(sorted(axes))}" for state, axes in states.items() if axes]
    return f"{aval.dtype}{list(aval.shape)}{''.join(shown)}"


def _operations(module: Any) -> Iterator[Any]:
    """Every operation of a module, however deep."""
    pending = [module.operation]
    while pending:
        operation = pending.pop()
        yield operation
        for region in operation.regions:
            for block in region.blocks:
                pending += [each.operation for each in block.operations]


def _communication(module: Any) -> Iterator[str]:
    for operation in _operations(module):
        if operation.name in _COMMUNICATION:
            attributes = {each.name: each.attr for each in _pairs(operation.attributes)}
            shown = " ".join(str(attributes[key]) for key in _SHOWN if key in attributes)
            types = " ".join(str(each.type) for each in operation.results)
            yield f"{operation.name.removeprefix('stablehlo.')} {shown} {types}"


def _pairs(attributes: Any) -> list[Any]:
    return [attributes[i] for i in range(len(attributes))]


def _borders(module: Any) -> Iterator[str]:
    for operation in _operations(module):
        if operation.name == "sdy.manual_computation":
            attributes = operation.attributes
            keys = ("in_shardings", "out_shardings", "manual_axes")
            yield re.sub(r"@\w+", "mesh", " ".join(str(attributes[key]) for key in keys))
