"""Shardings in types: how they pass from operands to results where mesh axes are Explicit.

Input: the types of an operation's operands.  Output: the shardings of its results, as each
primitive's rule `shard` gives them.  The rules here are shared by many primitives: they say for
each dimension of the result which mesh axes split it, or raise `ShardingTypeError`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import dtypes, meshes, vma
from minijax.core.aval import AbstractValue, Shape, ShapedArray
from minijax.core.cache import cached
from minijax.core.errors import ShardingTypeError, error, message
from minijax.core.meshes import AbstractMesh, PartitionSpec, names_of
from minijax.core.operators import AxisName
from minijax.core.primitive import Primitive
from minijax.core.rules import Facts
from minijax.core.trace import Params
from minijax.sharding import contexts
from minijax.sharding.named import NamedSharding, named

sharding_param: Facts[str] = Facts("sharding_param", "")
"""The parameter that says how results are split, of operations that users may tell."""

changes_mesh: Facts[bool] = Facts("changes_mesh", False)
"""Whether operands may be on other meshes than the results."""

constrains_results: Facts[bool] = Facts("constrains_results", True)
"""Whether programs constrain results to their shardings; equations inside may have done so."""

tells_memory: Facts[bool] = Facts("tells_memory", False)
"""Whether `abstract_eval` says in which memory the result is; else that is where operands are."""

knows_sums: Facts[bool] = Facts("knows_sums", False)
"""Whether the rule `shard` itself gives the axes over which results are unreduced or reduced."""

RESHARD = "reshard(x, spec) first"
OUT_SHARDING = "say how the result shall be split: out_sharding=spec"


def typed_aval(aval: AbstractValue, sharding: NamedSharding) -> Any:
    """`aval` with the part of a placement that types show."""
    found = shown(sharding, aval.ndim)
    return aval if found == aval.split else aval.update(sharding=found)


@cached("shown shardings", key="sharding, rank", most=4096, emptied=True)
def shown(sharding: NamedSharding, ndim: int) -> NamedSharding | None:
    """The part of a placement that types show; None where no Explicit axis splits the value.

    The mesh is abstract, the spec has an entry for each dimension, other axes are left out.
    """
    mesh = sharding.mesh.abstract_mesh
    explicit = frozenset(mesh.explicit_axes)
    spec = sharding.spec
    entries = [tuple(n for n in names if n in explicit) for names in spec.dims(ndim)]
    unreduced, reduced = spec.unreduced & explicit, spec.reduced & explicit
    if not (any(entries) or unreduced or reduced):
        return None
    return named(mesh, PartitionSpec(*entries, unreduced=unreduced, reduced=reduced))


def spec_of(aval: AbstractValue) -> PartitionSpec:
    """The spec of a type, with an entry for each dimension."""
    if aval.split is None:
        return unsharded(aval.ndim)
    spec: PartitionSpec = aval.split.spec
    return spec


@cached("unsharded specs", key="rank")
def unsharded(ndim: int) -> PartitionSpec:
    """The spec of a value that nothing splits."""
    return PartitionSpec(*[None] * ndim)


def replicated_sharding(ndim: int) -> NamedSharding:
    """Returns the sharding of an array that is not partitioned, on the current mesh."""
    return named(meshes.get_abstract_mesh(), unsharded(ndim))


def cotangent_spec(spec: PartitionSpec) -> PartitionSpec:
    """The spec of cotangents: those of a reduced value are unreduced, and the other way round."""
    if not (spec.unreduced or spec.reduced):
        return spec
    return PartitionSpec(*spec, unreduced=spec.reduced, reduced=spec.unreduced)


def resolve(sharding: object, name: str, argument: str = "out_sharding") -> NamedSharding | None:
    """The placement that a user asks for a result, on an abstract mesh; None for None.

    Args:
        sharding: a `NamedSharding`, a `PartitionSpec` for the mesh in force, or None.
        name: the public function, for messages.
        argument: what the function calls it.

    Raises:
        TypeError: it is neither of these.
        NoMeshError: it is a spec, and no mesh is in force.
    """
    if sharding is None:
        return None
    if isinstance(sharding, NamedSharding):
        return named(sharding.mesh.abstract_mesh, sharding.spec, sharding.memory_kind)
    if isinstance(sharding, PartitionSpec):
        found = contexts.resolve_for_tracing(sharding, name)
        return named(found.mesh.abstract_mesh, sharding)
    problem = f"{argument} must be a NamedSharding or a PartitionSpec."
    error(TypeError, name, problem, got=f"{sharding!r} of type {type(sharding).__name__}")


def typed_results(primitive: Any, avals: Sequence[Any], out: Any, params: Mapping[str, Any]) -> Any:
    """The result type, or types, of an operation with the shardings that its rule gives.

    Args:
        primitive: the operation.
        avals: the types of its operands.
        out: what `abstract_eval` returns.
        params: its parameters.

    Raises:
        ShardingTypeError: the operands' shardings do not fit together.
        ValueError: the operands are on different meshes.
    """
    given = params.get(sharding_param.of(primitive))
    mesh = _common_mesh(primitive, avals, given)
    if mesh is None:
        return out
    outs = out if primitive.multiple_results else (out,)
    if getattr(primitive.shard, "__func__", None) is Primitive.shard:
        specs: Sequence[PartitionSpec] = _specs_of_same_types(primitive, avals, outs, params)
    else:
        found = primitive.shard(avals, outs, **params)
        specs = found if primitive.multiple_results else (found,)
    # What jaxprs tell about results, they tell about sums too.
    if not (knows_sums.of(primitive) or vma.told_by_types(primitive)):
        sums = _sums(primitive, avals)
        if sums is not None:
            specs = [s.update(unreduced=sums.unreduced, reduced=sums.reduced) for s in specs]
    typed = [
        _typed_result(primitive, avals, aval, mesh, spec)
        for aval, spec in zip(outs, specs, strict=True)
    ]
    return typed if primitive.multiple_results else typed[0]


def _specs_of_same_types(
    primitive: Primitive, avals: Sequence[Any], outs: Sequence[Any], params: Params
) -> list[PartitionSpec]:
    """Returns the specs of results for a primitive without a rule `shard`.

    `abstract_eval` then decides: a result to which it gave an operand's shape and sharding is
    partitioned as the operands are.  The package's own primitives all have the rule.

    Raises:
        MissingRule: a result has a type of its own.
        ShardingTypeError: the operands are partitioned differently.
    """
    operand_types = [(a.shape, a.split) for a in avals if getattr(a, "split", None) is not None]
    if not all((getattr(out, "shape", None), out.split) in operand_types for out in outs):
        primitive.shard(avals, outs, **params)
    return [join(primitive, avals, out.ndim) for out in outs]


def _common_mesh(primitive: Primitive, avals: Sequence[Any], given: object) -> AbstractMesh | None:
    mesh = given.mesh.abstract_mesh if isinstance(given, NamedSharding) else None
    for aval in avals:
        if aval.split is None or changes_mesh.of(primitive):
            if aval.split is not None and mesh is None:
                mesh = aval.split.mesh
        elif mesh is None:
            mesh = aval.split.mesh
        elif mesh is not aval.split.mesh:
            problem = "the operands are on different meshes."
            got = _operands(avals) + "".join(f"\n{m}" for m in (mesh, aval.split.mesh))
            fix = "bring them onto one mesh with device_put, or with reshard"
            error(ValueError, primitive.name, problem, got=got, fix=fix)
    return mesh


def _typed_result(
    primitive: Primitive,
    avals: Sequence[Any],
    aval: ShapedArray,
    mesh: AbstractMesh,
    spec: PartitionSpec,
) -> Any:
    seen: set[Any] = set()
    for names in spec.dims(0):
        twice = seen.intersection(names)
        if twice:
            raise refusal(
                primitive.name,
                f"the result would be split over {_names(twice)} in two dimensions.",
                avals,
                got=f"the result {spec}",
                fix=RESHARD,
            )
        seen.update(names)
    for dim, (size, names) in enumerate(zip(getattr(aval, "shape", ()), spec.dims(0), strict=True)):
        parts = math.prod(map(mesh.axis_size, names))
        if size % parts:
            raise refusal(
                primitive.name,
                f"dimension {dim} of the result has size {size}, "
                f"which cannot be split over {_names(names)} into {parts} equal parts.",
                avals,
                fix=f"unshard the dimension: {RESHARD}",
            )
    if not hasattr(aval, "ndim"):
        return aval
    return typed_aval(aval, named(mesh, spec))


def _sums(primitive: Primitive, avals: Sequence[Any]) -> PartitionSpec | None:
    """The axes over which results are unreduced or reduced; None where there are none."""
    specs = [spec_of(a) if hasattr(a, "ndim") else PartitionSpec() for a in avals]
    first = next((s for s in specs if s.unreduced or s.reduced), None)
    if first is None:
        return None
    # What nothing is differentiated by, such as a predicate, fits to both.
    numbers = [
        i
        for i, (aval, spec) in enumerate(zip(avals, specs, strict=True))
        if spec.unreduced or spec.reduced or dtypes.issubdtype(aval.dtype, np.inexact)
    ]
    summed = next((s.unreduced for s in specs if s.unreduced), None)
    if summed is not None:
        owners = {i for i in numbers if specs[i].unreduced}
        together = vma.linear_together(primitive, len(avals))
        members = next((own for own in together if owners <= own), set())
        if not members or any(
            summed != (specs[i].unreduced if i in members else specs[i].reduced) for i in numbers
        ):
            raise refusal(
                primitive.name,
                f"an operand is unreduced over {_names(summed)}: "
                "devices hold summands of it, which the operation cannot work on.",
                avals,
                fix="add them up: reshard(x, spec) with a spec without unreduced",
            )
        return PartitionSpec(unreduced=summed)
    if any(specs[i].reduced != first.reduced for i in numbers if avals[i].ndim):
        raise refusal(
            primitive.name,
            f"an operand is reduced over {_names(first.reduced)} and another is not.",
            avals,
            fix=RESHARD,
        )
    return first


def refusal(
    name: str, problem: str, avals: Sequence[Any], *, fix: str, got: str = ""
) -> ShardingTypeError:
    """The error for operands whose shardings do not fit the operation."""
    return ShardingTypeError(
        message(name, problem, got=_operands(avals) + (f"; {got}" if got else ""), fix=fix)
    )


def _operands(avals: Sequence[Any]) -> str:
    return ", ".join(map(str, avals))


def _names(names: Iterable[Any]) -> str:
    return meshes.names_text(sorted(names, key=str))


def join_entries(
    primitive: Primitive, avals: Sequence[Any], dim: int, entries: Sequence[Any]
) -> Any:
    """The entry of a dimension in which operands meet: equal, or None where they are unsharded."""
    found = None
    for entry in entries:
        if entry is None or entry == found:
            continue
        if found is not None:
            raise refusal(
                primitive.name,
                f"operands are split differently in dimension {dim}: {found!r} and {entry!r}.",
                avals,
                fix=RESHARD,
            )
        found = entry
    return found


def join_leading(primitive: Primitive, avals: Sequence[Any], count: int) -> list[Any]:
    """The entries of the leading dimensions that operands share, such as those of a batch."""
    columns = zip(*(tuple(spec_of(aval))[:count] for aval in avals), strict=True)
    return [join_entries(primitive, avals, dim, column) for dim, column in enumerate(columns)]


def join(primitive: Primitive, avals: Sequence[Any], ndim: int) -> PartitionSpec:
    """The spec of elementwise results; scalars, and dimensions of size 1, have no part in it."""
    full = [a for a in avals if a.ndim == ndim]
    if len(full) == 1:
        return PartitionSpec(*spec_of(full[0]))
    specs = [tuple(spec_of(a)) for a in full]
    if specs and all(s == specs[0] for s in specs):
        return PartitionSpec(*specs[0])
    columns = zip(*specs, strict=True)
    return PartitionSpec(
        *[join_entries(primitive, avals, dim, column) for dim, column in enumerate(columns)]
    )


def elementwise(
    primitive: Primitive, avals: Sequence[Any], outs: Sequence[Any], **params: Any
) -> PartitionSpec | list[PartitionSpec]:
    """Rule: each result has the dimensions of the operands."""
    spec = join(primitive, avals, outs[0].ndim)
    return [spec] * len(outs) if primitive.multiple_results else spec


def each_for_itself(
    primitive: Primitive, avals: Sequence[Any], outs: Sequence[Any], **params: Any
) -> list[PartitionSpec]:
    """Rule: result i has the dimensions of operand i."""
    return [spec_of(aval) for aval in avals]


def from_types(
    primitive: Primitive, avals: Sequence[Any], outs: Sequence[Any], **params: Any
) -> list[PartitionSpec] | PartitionSpec:
    """Rule: the types that `abstract_eval` gives tell, such as those of a jaxpr's results."""
    specs = [spec_of(aval) if hasattr(aval, "ndim") else PartitionSpec() for aval in outs]
    return specs if primitive.multiple_results else specs[0]


def nothing_sharded(
    primitive: Primitive, avals: Sequence[Any], outs: Sequence[Any], **params: Any
) -> list[PartitionSpec] | PartitionSpec:
    """Rule: the operation takes no sharded operands, and its results are split as asked for."""
    check_unsharded(primitive, avals)
    given = params.get(sharding_param.of(primitive))
    specs = [
        given_spec(primitive, aval, given) if given is not None else unsharded(aval.ndim)
        for aval in outs
    ]
    return specs if primitive.multiple_results else specs[0]


def check_unsharded(
    primitive: Primitive, avals: Sequence[Any], dims: Sequence[int] | None = None, instead: str = ""
) -> None:
    """Refuses operands that are split in one of `dims`; in any dimension where that is None.

    Raises:
        ShardingTypeError: one is.
    """
    for aval in avals:
        if aval.split is None:
            continue
        for dim, entry in enumerate(aval.split.spec):
            if entry is not None and (dims is None or dim in dims):
                raise refusal(
                    primitive.name,
                    f"dimension {dim} of an operand is split over {_names(names_of(entry))}, "
                    "but the operation needs it whole on every device.",
                    avals,
                    fix=f"unshard the dimension: {RESHARD}{instead}",
                )


def whole_along(*names: str) -> Callable[..., Any]:
    """Rule: elementwise, and whole on every device along the dimensions that parameters name."""

    def shard(
        primitive: Primitive, avals: Sequence[Any], outs: Sequence[Any], **params: Any
    ) -> PartitionSpec | list[PartitionSpec]:
        for name in names:
            dims = params[name]
            check_unsharded(primitive, avals, (dims,) if isinstance(dims, int) else dims)
        return elementwise(primitive, avals, outs)

    return shard


def resized(
    primitive: Primitive, avals: Sequence[Any], outs: Sequence[Any], **params: Any
) -> PartitionSpec | list[PartitionSpec]:
    """Rule: the dimensions of the first operand, in other sizes; other operands are unsharded."""
    check_unsharded(primitive, avals[1:])
    spec = spec_of(avals[0])
    return [spec] * len(outs) if primitive.multiple_results else spec


def reduction(
    primitive: Primitive, avals: Sequence[Any], outs: Sequence[Any], *, axes: Shape, **params: Any
) -> PartitionSpec | list[PartitionSpec]:
    """Rule: the dimensions `axes` disappear."""
    return dropped(spec_of(avals[0]), axes)


def dropped(spec: PartitionSpec, dims: Sequence[int]) -> PartitionSpec:
    """The spec without some dimensions."""
    return spec.with_entries(e for d, e in enumerate(spec) if d not in dims)


def permuted(spec: PartitionSpec, permutation: Sequence[int]) -> PartitionSpec:
    """The spec with its dimensions in another order."""
    return spec.with_entries(spec[d] for d in permutation)


def given_spec(primitive: Primitive, aval: AbstractValue, sharding: NamedSharding) -> PartitionSpec:
    """The spec that a user asks for a result.

    Raises:
        ValueError: it has more entries than the result has dimensions, or does not divide them.
    """
    if len(sharding.spec) > aval.ndim:
        problem = "out_sharding has more entries than the result has dimensions."
        error(ValueError, primitive.name, problem, got=f"{sharding.spec} for {aval.str_short()}")
    for dim, factor in enumerate(sharding.factors(aval.ndim)):
        if getattr(aval, "shape", ())[dim] % factor:
            problem = f"dimension {dim} cannot be split into {factor} equal parts."
            got = f"{aval.str_short()} with {sharding.spec}"
            expected = f"a size that is a multiple of {factor}"
            error(ValueError, primitive.name, problem, got=got, expected=expected)
    found = shown(sharding, aval.ndim)
    return unsharded(aval.ndim) if found is None else found.spec


def free_entry(sharding: NamedSharding | None, aval: AbstractValue, dim: int) -> Any:
    """How `aval` is split in a batch dimension, without the axes that `sharding` uses itself."""
    if sharding is None or aval.split is None:
        return None
    used = {*sharding.spec.names(), *sharding.spec.unreduced, *sharding.spec.reduced}
    return tuple(n for n in names_of(aval.split.spec[dim]) if n not in used)


def of_cotangent(primal: Any, mesh: AbstractMesh | None = None) -> NamedSharding | None:
    """The sharding of cotangents of a value; None for an unsharded one of which no mesh is told."""
    if primal.split is None:
        return None if mesh is None else named(mesh, unsharded(primal.ndim))
    return named(primal.split.mesh, cotangent_spec(primal.split.spec))


def mesh_of(avals: Iterable[Any]) -> AbstractMesh | None:
    """The mesh of the first type that shows a sharding."""
    return next((a.split.mesh for a in avals if a.split is not None), None)


class DimPlacement(NamedTuple):
    """The axes of a mesh that split one dimension; no mesh where types do not show it."""

    mesh: AbstractMesh | None
    names: tuple[AxisName, ...]


def placement_of_dim(aval: AbstractValue, dim: int) -> DimPlacement | None:
    """What splits one dimension of a value whose type shows a sharding."""
    names = names_of(aval.split.spec[dim])
    return DimPlacement(aval.split.mesh, names) if names else None


def with_batch_dim(aval: AbstractValue, dim: int, size: int, placement: DimPlacement | None) -> Any:
    """The type of a batch of values, split as other batches are."""
    if placement is None or placement.mesh is None or not hasattr(aval, "ndim"):
        return aval.with_dim(dim, size)
    spec = spec_of(aval)
    used = {*spec.names(), *spec.unreduced, *spec.reduced}
    names = tuple(n for n in placement.names if n not in used)
    wide = aval.with_dim(dim, size)
    return typed_aval(wide, named(placement.mesh, spec.inserted(dim, names)))


def mesh_of_arguments(avals: Sequence[Any], function: str) -> AbstractMesh:
    """The mesh to trace a function with that is given values of these types, some of them split.

    Raises:
        ValueError: they are on different meshes.
    """
    found = {aval.split.mesh: None for aval in avals if aval.split is not None}
    if len(found) > 1:
        problem = "the arguments are on different meshes."
        fix = "bring them onto one mesh with device_put"
        error(ValueError, function, problem, got="\n".join(map(str, found)), fix=fix)
    return next(iter(found), meshes.EMPTY)


def batched(sharding: NamedSharding | None, dim: int, entry: object = None) -> NamedSharding | None:
    """The placement for a batch whose dimension is inserted at `dim`."""
    return None if sharding is None else sharding.with_spec(sharding.spec.inserted(dim, entry))


def reshaped(primitive: Primitive, aval: AbstractValue, sizes: Shape) -> PartitionSpec:
    """The spec of `aval` in another shape: within each group of dimensions that become each other
    the axes move to the leading ones.

    Raises:
        ShardingTypeError: axes split a dimension that is not a leading one, or do not divide one.
    """
    if aval.split is None:
        return unsharded(len(sizes))
    spec, axis_size = aval.split.spec, aval.split.mesh.axis_size
    entries: list[Any] = []
    for before, after in _groups(aval.shape, sizes):
        names = _leading_names([spec[d] for d in before], [aval.shape[d] for d in before])
        found = None if names is None else _spread(names, [sizes[d] for d in after], axis_size)
        if found is None:
            raise refusal(
                primitive.name,
                "it does not follow from the operand's sharding how the result is split.",
                [aval],
                got=f"new shape {sizes}",
                fix=f"{OUT_SHARDING}; or {RESHARD}",
            )
        entries += found
    found_spec: PartitionSpec = spec.with_entries(entries)
    return found_spec


def _leading_names(entries: Sequence[Any], sizes: Sequence[int]) -> list[Any] | None:
    """The axes of some dimensions taken together; None if a whole one stands before a split one."""
    names: list[Any] = []
    is_over = False
    for entry, size in zip(entries, sizes, strict=True):
        if entry is not None:
            if is_over:
                return None
            names += names_of(entry)
        elif size != 1:
            is_over = True
    return names


def _spread(
    names: list[Any], sizes: Sequence[int], axis_size: Callable[[Any], int]
) -> list[Any] | None:
    """Entries of dimensions that together are split over `names`; None where they do not fit."""
    entries: list[Any] = []
    rest = list(names)
    for size in sizes:
        taken: list[Any] = []
        parts = 1
        while rest and size % (parts * axis_size(rest[0])) == 0:
            parts *= axis_size(rest[0])
            taken.append(rest.pop(0))
        entries.append(tuple(taken))
        if rest and parts != size:
            return None
    return None if rest else entries


def _groups(before: Shape, after: Shape) -> list[tuple[list[int], list[int]]]:
    """Runs of dimensions of two shapes of one size, of which each has as many elements."""
    if 0 in before:
        return [(list(range(len(before))), list(range(len(after))))]
    groups = []
    i = j = 0
    while i < len(before) or j < len(after):
        olds: list[int] = []
        news: list[int] = []
        left = right = 1
        while True:
            if left <= right and i < len(before) and (left < right or not olds):
                left *= before[i]
                olds.append(i)
                i += 1
            elif right <= left and j < len(after) and (right < left or not news):
                right *= after[j]
                news.append(j)
                j += 1
            elif left != right:
                raise AssertionError((before, after))
            else:
                break
        groups.append((olds, news))
    return groups
