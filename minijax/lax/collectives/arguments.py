"""What collectives share: names of axes and groups, where a device is, and kinds of values.

Input: what users write.  Output: canonical tuples, or an error at the call.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np

from minijax.core import axes as core_axes
from minijax.core import config, tree, vma
from minijax.core.aval import AbstractValue, ShapedArray, aval_of, shaped_array
from minijax.core.errors import error, message
from minijax.core.meshes import PartitionSpec
from minijax.core.primitive import Batched, Primitive
from minijax.core.trace import current
from minijax.core.value_placement import NOT_MANUAL, ManualAxisType, manual_type
from minijax.interpreters import casts
from minijax.interpreters.jvp import jvp_of_constant
from minijax.lax.creation import iota
from minijax.lax.families import Avals, BatchDims, Params, Values
from minijax.lax.shape import squeeze
from minijax.lowering import module
from minijax.lowering.device_axes import DeviceAxes
from minijax.lowering.stablehlo import LoweringContext
from minijax.runtime.array import Array

Axes = tuple[Any, ...]
Groups = tuple[tuple[int, ...], ...] | None
KIND_NAMES = {"V": "varying", "I": "invarying", "R": "reduced", "U": "unreduced"}
GPUS = ("cuda", "rocm", "gpu")
Tree = TypeVar("Tree")
Function = TypeVar("Function", bound=Callable[..., Any])

AxisName: TypeAlias = Hashable | Sequence[Hashable]
"""A name of an axis, or several names."""

GroupsLike: TypeAlias = Sequence[Sequence[int]] | None
"""What functions take for `axis_index_groups`: lists of positions along the axis."""

PermutationLike: TypeAlias = Iterable[tuple[int, int]]
"""What functions take for `perm`: pairs of source and destination."""


@dataclass(frozen=True, eq=False, slots=True)
class Application:
    """A collective with an operand that fits, which is applied at once, or started only.

    Attributes:
        primitive: the collective.
        operand: what it is applied to.
        params: its parameters.
        squeezed: dimensions of size 1 that the result loses afterwards.
    """

    primitive: Any
    operand: Array
    params: dict[str, Any]
    squeezed: tuple[int, ...] = ()

    def now(self) -> Any:
        """The result."""
        return without_dims(self.primitive.bind(self.operand, **self.params), self.squeezed)


class Collective:
    """What operations over named axes share, which devices, or examples, do together.

    Types: a value that varies over the axes to one that does.

    Attributes:
        name: the primitive's.
        axis_param: the parameter that names the axes.
    """

    name: str
    has_effects: ClassVar[bool] = True
    axis_param: ClassVar[str] = "axis_name"

    def effects(self, *avals: Any, **params: Any) -> frozenset[Any]:
        if not self.has_effects:
            return frozenset()
        return casts.named_effects(canonical_axes(self.name, params[self.axis_param]))


core_axes.communicates.set(True, Collective)
core_axes.axis_params.derive(Collective)(lambda primitive: (primitive.axis_param,))


@vma.vary.rule(Collective)
def _vary_of_collective(
    primitive: Collective, avals: Avals, outs: Avals, **params: Any
) -> ManualAxisType:
    axes = canonical_axes(primitive.name, params[primitive.axis_param])
    check_varying(primitive.name, avals[0], axes)
    return vma.of(avals[0])


def applied(function: Function) -> Function:
    """A public function, from one that returns applications for the leaves of a tree.

    The form that only starts a collective asks for the applications, by `applications_of`.
    """

    @functools.wraps(function)
    def collective(*args: Any, **options: Any) -> Any:
        return results(function(*args, **options))

    return cast(Function, collective)


def applications_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """What a function gives that was decorated by `applied`: a tree of applications."""
    return inspect.unwrap(function)


def without_dims(x: Array, dims: tuple[int, ...]) -> Any:
    """`x` without some dimensions of size 1; unchanged where there are none."""
    return squeeze(x, dims) if dims else x


def results(applications: object) -> Any:
    """A tree of results, of a tree of applications; what is a value already stays."""
    return map_leaves(lambda a: a.now() if isinstance(a, Application) else a, applications)


def canonical_axes(name: str, axis_name: AxisName) -> Axes:
    """Names of axes as a tuple.

    Raises:
        TypeError: they are a set, whose order means nothing.
        ValueError: one is named twice.
    """
    if isinstance(axis_name, (set, frozenset)):
        problem = "axis_name must be one name, or a tuple of names: their order matters."
        fix = f"tuple({axis_name!r}) in the order you mean"
        error(TypeError, name, problem, got=repr(axis_name), fix=fix)
    if not isinstance(axis_name, (tuple, list)):
        return (axis_name,)
    axes = tuple(axis_name)
    if len(set(axes)) < len(axes):
        problem = "axis_name names an axis twice."
        error(ValueError, name, problem, got=repr(axis_name), expected="once each")
    return axes


def as_given(axis_name: AxisName) -> Any:
    """A name as it is, several names as a tuple."""
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else axis_name


def axes_size(name: str, axes: Axes) -> int:
    """How many devices, or examples, the axes have together.

    Raises:
        NameError: an axis is not in scope.
    """
    total = 1
    for axis in axes:
        total *= core_axes.size(axis, name)
    return total


def named(axes: Axes) -> Axes:
    """The names among axes; ints are dimensions of the array."""
    return tuple(axis for axis in axes if not isinstance(axis, int))


def canonical_groups(name: str, groups: Any, axes: Axes) -> Groups:
    """`axis_index_groups` as tuples.

    Raises:
        ValueError: they do not hold each position along the axes once, or axes are dimensions.
        NotImplementedError: variance is checked, which knows no groups.
    """
    if groups is None:
        return None
    if any(isinstance(axis, int) for axis in axes):
        problem = "axis_index_groups cannot be combined with axes that are dimensions."
        error(ValueError, name, problem, got=f"axes {axes}", expected="names of axes")
    found = tuple(tuple(map(operator.index, group)) for group in groups)
    size = axes_size(name, axes)
    positions = sorted(i for group in found for i in group)
    if positions != list(range(size)):
        problem = "axis_index_groups must hold each position along the axis once."
        got = f"{[list(g) for g in found]} along {axes} of size {size}"
        error(ValueError, name, problem, got=got, expected=f"each of 0 … {size - 1} in one group")
    return found


def check_untyped_groups(name: str, groups: Groups, axes: Axes) -> None:
    """Refuses groups where types speak of the axes: members of different groups differ.

    Raises:
        NotImplementedError: there are groups, and types speak of an axis.
    """
    if groups is not None and core_axes.typed_among(axes):
        error(
            NotImplementedError,
            name,
            "axis_index_groups give results that are the same within a group only, which types "
            "cannot say.",
            got=f"{[list(g) for g in groups]}, axes {axes}",
            fix="shard_map(..., check_vma=False), or a mesh with one axis for the groups and "
            "one for their members",
        )


def check_equal_groups(name: str, groups: Groups) -> None:
    """Refuses groups of different sizes.

    Raises:
        ValueError: they have them.
    """
    if groups is not None and len(set(map(len, groups))) > 1:
        got = f"{[list(g) for g in groups]}, of sizes {[len(g) for g in groups]}"
        error(ValueError, name, "axis_index_groups must be of one size here.", got=got)


def group_size(name: str, axes: Axes, groups: Groups) -> int:
    """How many devices communicate with each other.

    Raises:
        ValueError: that differs from group to group.
    """
    check_equal_groups(name, groups)
    return axes_size(name, axes) if groups is None else len(groups[0])


def canonical_dim(name: str, argument: str, dim: Any, ndim: int) -> int:
    """A dimension of an array as an int that is not negative.

    Raises:
        ValueError: it is out of range.
        TypeError: it is not an integer.
    """
    found = operator.index(dim)
    if not -ndim <= found < ndim:
        expected = f"a dimension of an array with {ndim} dimension(s)"
        error(ValueError, name, f"{argument} is out of range.", got=str(dim), expected=expected)
    return found % ndim if ndim else found


def check_block(
    name: str, argument: str, x: AbstractValue, dim: int, size: int, *, tiled: bool
) -> None:
    """Refuses dimensions that cannot be cut into one block for each device.

    Raises:
        ValueError: untiled the dimension is not as long as the axis, tiled no multiple of it.
    """
    length = x.shape[dim]
    if tiled and length % size:
        problem = f"{argument} {dim} has size {length}, which {size} devices cannot share equally."
        expected = f"a multiple of {size}"
        error(ValueError, name, problem, got=str(x), expected=expected, fix="pad the dimension")
    if not tiled and length != size:
        problem = f"{argument} {dim} has size {length}, but there are {size} devices."
        expected = f"a dimension of size {size}, one entry for each device"
        fix = "tiled=True for several entries for each device"
        error(ValueError, name, problem, got=str(x), expected=expected, fix=fix)


def with_pvary(x: Array, axes: Axes) -> Any:
    """A value that varies over all of the mesh axes among `axes`; cast where it does not."""
    typed = core_axes.typed_among(axes)
    if not typed:
        return x
    return casts.varied(current.value, x, frozenset(typed))


def check_no_sums(name: str, x: Array, axes: Axes, fix: str = "") -> None:
    """Refuses operands that are unreduced or reduced over one of the axes.

    Raises:
        ValueError: one is.
    """
    aval = aval_of(x)
    given, wanted = vma.of(aval), frozenset(axes)
    expected = "a value that varies, or is the same everywhere"
    casts.refuse_kind(name, aval, wanted & given.unreduced, "unreduced", expected, fix)
    casts.refuse_kind(name, aval, wanted & given.reduced, "reduced", expected, fix)


def check_varying(name: str, aval: AbstractValue, axes: Axes) -> None:
    """Refuses operands of a primitive that do not vary over all of the mesh axes.

    Raises:
        ValueError: one does not.
    """
    given = vma.of(aval)
    expected = f"a value that varies over {casts.axes_text(axes)}"
    typed = frozenset(core_axes.typed_among(axes))
    casts.refuse_kind(name, aval, typed & given.unreduced, "unreduced", expected)
    casts.refuse_kind(name, aval, typed & given.reduced, "reduced", expected)
    casts.refuse_kind(
        name, aval, typed - given.varying, "not varying", expected, "lax.pvary(x, axis) first"
    )


def kind_over(x: Array, axis: object) -> str:
    """Of which kind a value is over one mesh axis: "V", "I", "U" or "R"."""
    given = vma.of(aval_of(x))
    kinds = {"V": given.varying, "U": given.unreduced, "R": given.reduced}
    return next((kind for kind, over in kinds.items() if axis in over), "I")


def states(name: str, x: Array, axes: Axes) -> str:
    """The one kind that a value is of over all mesh axes among `axes`: "V", "I", "U" or "R".

    Raises:
        ValueError: it is of several.
    """
    kinds = {axis: kind_over(x, axis) for axis in core_axes.typed_among(axes)}
    if len(set(kinds.values())) > 1:
        invarying = tuple(axis for axis, kind in kinds.items() if kind == "I")
        same = f"lax.pcast(x, {invarying}, to='varying') first, or " if invarying else ""
        error(
            ValueError,
            name,
            "the operand is of different kinds over the axes.",
            got=f"{aval_of(x)}: "
            + ", ".join(f"{KIND_NAMES[k]} over {axis!r}" for axis, k in kinds.items()),
            expected="one kind over all of them",
            fix=f"{same}{name} over one axis after the other",
        )
    return next(iter(kinds.values()), "V")


def without_small(axes: Axes) -> Axes:
    """Axes without those of size 1, along which devices have nobody to speak to, if so configured.

    Source: mirrors the setting jax_remove_size_one_mesh_axis_from_type.
    """
    if not config.remove_size_one_mesh_axis_from_type.value:
        return axes
    found = {a: None if isinstance(a, int) else core_axes.find(a) for a in axes}
    return tuple(a for a, f in found.items() if f is None or f.kind != "mesh" or f.size > 1)


def permutation(name: str, perm: PermutationLike, size: int) -> tuple[tuple[int, int], ...]:
    """Pairs of source and destination, none of them negative.

    Raises:
        TypeError: there is something else than pairs of ints.
        ValueError: one is out of range, or a source or a destination is named twice.
    """
    try:
        pairs = tuple((operator.index(s), operator.index(d)) for s, d in perm)
    except (TypeError, ValueError) as caught:
        problem = "perm must hold pairs of positions: (source, destination)."
        expected = f"pairs of ints, such as [(i, (i + 1) % {size}) for i in range({size})]"
        fix = "lax.pshuffle takes a list of sources"
        error(TypeError, name, problem, got=repr(perm), expected=expected, fix=fix, cause=caught)
    if any(not -size <= i < size for pair in pairs for i in pair):
        problem = "perm names a position that is out of range."
        expected = f"positions from 0 to {size - 1} along an axis of size {size}"
        error(ValueError, name, problem, got=str(list(pairs)), expected=expected)
    found = tuple((s % size, d % size) for s, d in pairs)
    for what, members in (
        ("source", [s for s, _ in found]),
        ("destination", [d for _, d in found]),
    ):
        if len(set(members)) < len(members):
            twice = sorted({m for m in members if members.count(m) > 1})
            problem = f"perm names the {what} {twice[0]} twice."
            expected = "each source and each destination once"
            error(ValueError, name, problem, got=str(list(pairs)), expected=expected)
    return found


def pairs_of_devices(
    devices: DeviceAxes, axes: Axes, perm: PermutationLike
) -> np.ndarray[Any, Any]:
    """Pairs of device numbers for pairs of positions along axes."""
    pairs = [(group[s], group[d]) for group in devices.groups(axes) for s, d in perm]
    return np.array(pairs, np.int64).reshape(-1, 2)


def check_summable(name: str, x: Array, *, bools: bool) -> None:
    """Refuses operands whose elements cannot be added, or compared.

    Args:
        name: the public function.
        x: the operand.
        bools: whether it takes bools.

    Raises:
        TypeError: the operand is of such a dtype.
    """
    aval = aval_of(x)
    if aval.is_extended or (aval.dtype == np.bool_ and not bools):
        problem = f"cannot combine arrays of {aval.dtype}."
        expected = "numbers or bools" if bools else "numbers"
        fix = "" if aval.is_extended else "x.astype(int) first"
        error(TypeError, name, problem, got=str(aval), expected=expected, fix=fix)


def map_leaves(function: Callable[..., Any], x: Tree) -> Any:
    """`function` of each leaf of a tree of arrays."""
    leaves, treedef = tree.flatten(x)
    return tree.unflatten(treedef, [function(leaf) for leaf in leaves])


def in_mesh_order(axes: Axes) -> Axes:
    """Names of axes in the order in which they are bound: of the mesh, or of nesting."""
    bound = [axis.name for axis in core_axes.in_scope()]
    last = {name: i for i, name in enumerate(bound)}
    return tuple(sorted(axes, key=lambda axis: last.get(axis, -1)))


def refuse_groups_of_batch(name: str, axis: object, groups: Groups) -> None:
    """Refuses groups along an axis that is a batch.

    Raises:
        NotImplementedError: there are groups.
    """
    if groups is not None:
        problem = "axis_index_groups are not implemented for axes of vmap."
        got = f"groups {[list(g) for g in groups]} along {axis!r}"
        fix = "reshape the batch into (groups, members) and use a vmap for each"
        error(NotImplementedError, name, problem, got=got, fix=fix)


class AroundBatch(NamedTuple):
    """Several named axes of which one is a batch.

    Attributes:
        before: those that are more significant than the batch.
        after: those that are less.
        outer: how many positions `before` has.
        inner: how many `after` has.
    """

    before: Axes
    after: Axes
    outer: int
    inner: int

    @property
    def others(self) -> Axes:
        """All but the batch."""
        return (*self.before, *self.after)

    @property
    def params(self) -> dict[str, Any]:
        """What an operation among the devices of the other axes says of them."""
        return {"axis_name": self.others, "axis_size": self.outer * self.inner}


def around_batch(name: str, axis: object, params: Params) -> AroundBatch:
    """The axes before and after the one that is a batch, of an operation with `params`.

    Raises:
        NotImplementedError: the operation is one among groups.
    """
    refuse_groups_of_batch(name, axis, params.get("axis_index_groups"))
    axes = canonical_axes(name, params["axis_name"])
    at = axes.index(axis)
    before, after = axes[:at], axes[at + 1 :]
    return AroundBatch(before, after, axes_size(name, before), axes_size(name, after))


def outside_text(name: str) -> str:
    """The message for an operation that is applied where there is no axis at all."""
    return message(
        name,
        "there is nobody to speak to outside of a map over devices.",
        fix="call it inside shard_map, pmap, or vmap(..., axis_name=...)",
    )


class AxisIndex(Primitive):
    """The position of a device, or an example, along one named axis.

    Shapes: -> int32[].  Where a name is put in place of another it may be several, of which the
    first is the most significant.
    """

    name = "axis_index"
    has_effects: ClassVar[bool] = True
    jvp = jvp_of_constant

    def abstract_eval(self, *, axis_name: AxisName) -> ShapedArray:
        return shaped_array((), np.dtype(np.int32))

    def effects(self, *, axis_name: AxisName) -> frozenset[Any]:
        return casts.named_effects(_names(axis_name))

    def shard(self, avals: Avals, outs: Avals, *, axis_name: AxisName) -> PartitionSpec:
        return PartitionSpec()

    def lower(self, ctx: LoweringContext, *, axis_name: AxisName) -> Any:
        if isinstance(axis_name, tuple):
            return module.lower_function(ctx, lambda: [axis_index(axis_name)])[0]
        return ctx.module.device_axes.index(ctx, axis_name)

    def batch(self, size: int, args: Values, dims: BatchDims, *, axis_name: AxisName) -> Batched:
        return self.bind(axis_name=axis_name), None


@vma.vary.rule(AxisIndex)
def _vary_of_axis_index(
    primitive: AxisIndex, avals: Avals, outs: Avals, *, axis_name: AxisName
) -> ManualAxisType:
    typed = core_axes.typed_among(_names(axis_name))
    return manual_type(typed) if typed else NOT_MANUAL


core_axes.axis_params.set(("axis_name",), AxisIndex)


@core_axes.batch_axis.rule(AxisIndex)
def _batch_axis_of_axis_index(
    primitive: AxisIndex,
    size: int,
    name: Hashable,
    args: Values,
    dims: BatchDims,
    *,
    axis_name: AxisName,
) -> tuple[Any, int]:
    if not isinstance(axis_name, tuple):
        return iota(np.int32, size), 0
    inner = axis_name[axis_name.index(name) + 1 :]
    stride = np.int32(math.prod(map(core_axes.size, inner)))
    rest = axis_index(tuple(n for n in axis_name if n != name))
    return iota(np.int32, size) * stride + _without_digit(rest, stride, size), 0


axis_index_p = AxisIndex()


def _without_digit(rest: Array, stride: np.integer[Any], size: int) -> Any:
    """The number of the other digits, with a place left for one of `size` values."""
    low = rest % stride
    return (rest - low) * np.int32(size) + low


def _names(axis_name: AxisName) -> tuple[Any, ...]:
    return axis_name if isinstance(axis_name, tuple) else (axis_name,)


def axis_index(axis_name: AxisName) -> Array:
    """The position of this device, or example, along a named axis.

    Shapes: -> int32[]; of several axes the number that their positions are the digits of, the first
        name being the most significant.
    Types:  inside `shard_map` it varies over the axes.

    Args:
        axis_name: a name, or a tuple of names, of axes of vmap, pmap or shard_map.

    Raises:
        NameError: a name is not in scope.

    Example:
        >>> jax.vmap(lambda x: x + lax.axis_index("i"), axis_name="i")(jnp.array([10, 20, 30]))
        Array([10, 21, 32], dtype=int32)
    """
    axes = canonical_axes("lax.axis_index", axis_name)
    if not isinstance(axis_name, (tuple, list)):
        return _position(axis_name)
    axes_size("lax.axis_index", axes)
    total: Any = None
    stride = 1
    for axis in reversed(axes):
        own = _position(axis)
        if stride != 1:
            own = own * np.int32(stride)
        total = own if total is None else total + own
        stride *= core_axes.size(axis)
    if total is None:
        total = np.int32(0)
    return total


def _position(axis_name: AxisName) -> Any:
    if core_axes.axis(axis_name, "lax.axis_index").kind == "core":
        return core_axes.core_index()
    return axis_index_p.bind(axis_name=axis_name)


def axis_size(axis_name: AxisName) -> int:
    """How many devices, or examples, named axes have together; a Python int.

    Args:
        axis_name: a name, or a tuple of names, of axes of vmap, pmap or shard_map.

    Raises:
        NameError: a name is not in scope.

    Example:
        >>> jax.vmap(lambda x: x * lax.axis_size("i"), axis_name="i")(jnp.array([10, 20, 30]))
        Array([30, 60, 90], dtype=int32)
    """
    axes = canonical_axes("lax.axis_size", axis_name)
    return axes_size("lax.axis_size", axes)


_KINDS = ("varying", "reduced", "unreduced")
_CASTS = {
    ("I", "varying"): casts.pvary_p,
    ("I", "reduced"): casts.preduced_p,
    ("V", "unreduced"): casts.vary_unreduced_cast_p,
    ("R", "varying"): casts.reduced_vary_cast_p,
}


def pcast(x: Tree, axis_name: AxisName, *, to: str) -> Tree:
    """Casts arrays to varying, reduced or unreduced over mesh axes; elements stay the same.

    Types:  invarying to varying or reduced, varying to unreduced, reduced to varying.

    Args:
        x: a tree of arrays.
        axis_name: a name, or a tuple of names, of mesh axes of shard_map.
        to: "varying", "reduced" or "unreduced".

    Raises:
        NameError: a name is not in scope.
        TypeError: `axis_name` is a set.
        ValueError: an unknown `to`, an operand of several kinds, or no such cast.

    Example:
        >>> def f(x):
        ...     print(jax.typeof(x), "->", jax.typeof(lax.pcast(x, "x", to="varying")))
        ...     return x
        >>> mesh, P = jax.make_mesh((8,), ("x",)), jax.P
        >>> jax.shard_map(f, mesh=mesh, in_specs=P(), out_specs=P())(1.0)
        ~f32[] -> ~f32[]{V:x}
        Array(1., dtype=float32, weak_type=True)
    """
    name = "lax.pcast"
    axes = canonical_axes(name, axis_name)
    if not axes:
        return x
    if to not in _KINDS:
        expected = f"one of {', '.join(map(repr, _KINDS))}"
        error(ValueError, name, "an unknown kind.", got=f"to={to!r}", expected=expected)
    if not core_axes.in_scope():
        problem = "there is no mesh axis over which a value could be of some kind."
        error(ValueError, name, problem, got=f"axes {axes}", fix="call it inside shard_map")
    axes_size(name, axes)
    typed = core_axes.typed_among(axes)
    if not typed and to != "unreduced":
        return x
    return map_leaves(lambda leaf: _cast(leaf, axes, typed, to), x)


def _cast(x: Array, axes: Any, typed: Any, to: str) -> Any:
    kind = states("lax.pcast", x, axes) if typed else "I"
    cast = _CASTS.get((kind, to))
    if cast is None:
        able = ", ".join(f"{KIND_NAMES[a]} to {b}" for a, b in _CASTS)
        problem = f"there is no cast from {KIND_NAMES[kind]} to {to}."
        got = f"{aval_of(x)}, axes {axes}"
        fix = "a reduction changes kinds too: lax.psum, lax.psum_scatter, lax.all_gather"
        error(ValueError, "lax.pcast", problem, got=got, expected=f"one of these: {able}", fix=fix)
    return cast.bind(x, axes=casts.ordered(typed))


def pvary(x: Tree, axis_name: AxisName) -> Tree:
    """Casts arrays from invarying to varying over mesh axes; elements stay the same.

    Source: mirrors jax.lax.pvary, which JAX has since dropped for `pcast`.

    Raises:
        NameError: a name is not in scope.
        ValueError: an operand varies over an axis already, or is reduced or unreduced.

    Example:
        >>> mesh, P = jax.make_mesh((8,), ("x",)), jax.P
        >>> copy = lambda w: lax.pvary(w, "x")
        >>> jax.shard_map(copy, mesh=mesh, in_specs=P(), out_specs=P("x"))(jnp.array([5]))
        Array([5, 5, 5, 5, 5, 5, 5, 5], dtype=int32)
    """
    return pcast(x, axis_name, to="varying")
