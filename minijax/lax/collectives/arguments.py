"""The arguments that collectives share: names of axes, groups, permutations, kinds of operands.

Input: what users write.  Output: canonical tuples, or an error at the call.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from minijax.core import axes as core_axes
from minijax.core import config, tree, vma
from minijax.core.aval import aval_of
from minijax.core.errors import error, message
from minijax.core.trace import Params, current
from minijax.interpreters import casts
from minijax.lax.shape import squeeze

Axes = tuple[Any, ...]
Groups = tuple[tuple[int, ...], ...] | None
KIND_NAMES = {"V": "varying", "I": "invarying", "R": "reduced", "U": "unreduced"}
GPUS = ("cuda", "rocm", "gpu")
Tree = TypeVar("Tree")


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
    operand: Any
    params: Params
    squeezed: tuple[int, ...] = ()

    def now(self) -> Any:
        """The result."""
        return without_dims(self.primitive.bind(self.operand, **self.params), self.squeezed)


def without_dims(x: Any, dims: tuple[int, ...]) -> Any:
    """`x` without some dimensions of size 1; unchanged where there are none."""
    return squeeze(x, dims) if dims else x


def results(applications: Any) -> Any:
    """A tree of results, of a tree of applications; what is a value already stays."""
    return map_leaves(lambda a: a.now() if isinstance(a, Application) else a, applications)


def canonical_axes(name: str, axis_name: Any) -> Axes:
    """Names of axes as a tuple.

    Raises:
        TypeError: they are a set, whose order means nothing.
        ValueError: one is named twice.
    """
    if isinstance(axis_name, (set, frozenset)):
        error(
            TypeError,
            name,
            "axis_name must be one name, or a tuple of names: their order matters.",
            got=repr(axis_name),
            fix=f"tuple({axis_name!r}) in the order you mean",
        )
    if not isinstance(axis_name, (tuple, list)):
        return (axis_name,)
    axes = tuple(axis_name)
    if len(set(axes)) < len(axes):
        error(
            ValueError,
            name,
            "axis_name names an axis twice.",
            got=repr(axis_name),
            expected="once each",
        )
    return axes


def as_given(axis_name: Any) -> Any:
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
        NotImplementedError: vma is checked, which knows no groups.
    """
    if groups is None:
        return None
    if any(isinstance(axis, int) for axis in axes):
        error(
            ValueError,
            name,
            "axis_index_groups cannot be combined with axes that are dimensions.",
            got=f"axes {axes}",
            expected="names of axes",
        )
    found = tuple(tuple(map(operator.index, group)) for group in groups)
    size = axes_size(name, axes)
    positions = sorted(i for group in found for i in group)
    if positions != list(range(size)):
        error(
            ValueError,
            name,
            "axis_index_groups must hold each position along the axis once.",
            got=f"{[list(g) for g in found]} along {axes} of size {size}",
            expected=f"each of 0 … {size - 1} in one group",
        )
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
        error(
            ValueError,
            name,
            "axis_index_groups must be of one size here.",
            got=f"{[list(g) for g in groups]}, of sizes {[len(g) for g in groups]}",
        )


def group_size(name: str, axes: Axes, groups: Groups) -> int:
    """How many devices communicate with each other."""
    return axes_size(name, axes) if groups is None else len(groups[0])


def canonical_dim(name: str, argument: str, dim: Any, ndim: int) -> int:
    """A dimension of an array as an int that is not negative.

    Raises:
        ValueError: it is out of range.
        TypeError: it is no integer.
    """
    found = operator.index(dim)
    if not -ndim <= found < ndim:
        error(
            ValueError,
            name,
            f"{argument} is out of range.",
            got=str(dim),
            expected=f"a dimension of an array with {ndim} dimension(s)",
        )
    return found % ndim if ndim else found


def check_block(name: str, argument: str, x: Any, dim: int, size: int, *, tiled: bool) -> None:
    """Refuses dimensions that cannot be cut into one block for each device.

    Raises:
        ValueError: untiled the dimension is not as long as the axis, tiled no multiple of it.
    """
    length = x.shape[dim]
    if tiled and length % size:
        error(
            ValueError,
            name,
            f"{argument} {dim} has size {length}, which {size} devices cannot share equally.",
            got=str(x),
            expected=f"a multiple of {size}",
            fix="pad the dimension",
        )
    if not tiled and length != size:
        error(
            ValueError,
            name,
            f"{argument} {dim} has size {length}, but there are {size} devices.",
            got=str(x),
            expected=f"a dimension of size {size}, one entry for each device",
            fix="tiled=True for several entries for each device",
        )


def with_pvary(x: Any, axes: Axes) -> Any:
    """A value that varies over all of the mesh axes among `axes`; cast where it does not."""
    typed = core_axes.typed_among(axes)
    if not typed:
        return x
    return casts.varied(current.value, x, frozenset(typed))


def check_no_sums(name: str, x: Any, axes: Axes, fix: str = "") -> None:
    """Refuses operands that are unreduced or reduced over one of the axes.

    Raises:
        ValueError: one is.
    """
    aval = aval_of(x)
    given, wanted = vma.of(aval), frozenset(axes)
    expected = "a value that varies, or is the same everywhere"
    casts.refuse_kind(name, aval, wanted & given.unreduced, "unreduced", expected, fix)
    casts.refuse_kind(name, aval, wanted & given.reduced, "reduced", expected, fix)


def check_varying(name: str, aval: Any, axes: Axes) -> None:
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


def kind_over(x: Any, axis: Any) -> str:
    """Of which kind a value is over one mesh axis: "V", "I", "U" or "R"."""
    given = vma.of(aval_of(x))
    kinds = {"V": given.varying, "U": given.unreduced, "R": given.reduced}
    return next((kind for kind, over in kinds.items() if axis in over), "I")


def states(name: str, x: Any, axes: Axes) -> str:
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


def permutation(name: str, perm: Any, size: int) -> tuple[tuple[int, int], ...]:
    """Pairs of source and destination, none of them negative.

    Raises:
        TypeError: there is something else than pairs of ints.
        ValueError: one is out of range, or a source or a destination is named twice.
    """
    try:
        pairs = tuple((operator.index(s), operator.index(d)) for s, d in perm)
    except (TypeError, ValueError) as caught:
        error(
            TypeError,
            name,
            "perm must hold pairs of positions: (source, destination).",
            got=repr(perm),
            expected=f"pairs of ints, such as [(i, (i + 1) % {size}) for i in range({size})]",
            fix="lax.pshuffle takes a list of sources",
            cause=caught,
        )
    if any(not -size <= i < size for pair in pairs for i in pair):
        error(
            ValueError,
            name,
            "perm names a position that is out of range.",
            got=str(list(pairs)),
            expected=f"positions from 0 to {size - 1} along an axis of size {size}",
        )
    found = tuple((s % size, d % size) for s, d in pairs)
    for what, members in (
        ("source", [s for s, _ in found]),
        ("destination", [d for _, d in found]),
    ):
        if len(set(members)) < len(members):
            twice = sorted({m for m in members if members.count(m) > 1})
            error(
                ValueError,
                name,
                f"perm names the {what} {twice[0]} twice.",
                got=str(list(pairs)),
                expected="each source and each destination once",
            )
    return found


def pairs_of_devices(devices: Any, axes: Axes, perm: Any) -> np.ndarray[Any, Any]:
    """Pairs of device numbers for pairs of positions along axes."""
    pairs = [(group[s], group[d]) for group in devices.groups(axes) for s, d in perm]
    return np.array(pairs, np.int64).reshape(-1, 2)


def check_summable(name: str, x: Any, *, bools: bool) -> None:
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
        error(
            TypeError,
            name,
            f"cannot combine arrays of {aval.dtype}.",
            got=str(aval),
            expected="numbers or bools" if bools else "numbers",
            fix="" if aval.is_extended else "x.astype(int) first",
        )


def map_leaves(function: Callable[..., Any], x: Any) -> Any:
    """`function` of each leaf of a tree of arrays."""
    leaves, treedef = tree.flatten(x)
    return tree.unflatten(treedef, [function(leaf) for leaf in leaves])


def in_mesh_order(axes: Axes) -> Axes:
    """Names of axes in the order in which they are bound: of the mesh, or of nesting."""
    bound = [axis.name for axis in core_axes.in_scope()]
    last = {name: i for i, name in enumerate(bound)}
    return tuple(sorted(axes, key=lambda axis: last.get(axis, -1)))


def refuse_groups_of_batch(name: str, axis: Any, groups: Groups) -> None:
    """Refuses groups along an axis that is a batch.

    Raises:
        NotImplementedError: there are groups.
    """
    if groups is not None:
        error(
            NotImplementedError,
            name,
            "axis_index_groups are not implemented for axes of vmap.",
            got=f"groups {[list(g) for g in groups]} along {axis!r}",
            fix="reshape the batch into (groups, members) and use a vmap for each",
        )


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


def around_batch(name: str, axis: Any, axes: Axes) -> AroundBatch:
    """The axes before and after the one that is a batch."""
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
