"""The arguments of `xmap`: entries that name dimensions, sizes of logical axes, and resources.

Input: what users write.  Output: for each leaf which dimension each name is, and for each name its
size and the mesh axes that carry it; or an error at the call.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from minijax.core import tree
from minijax.core.errors import error
from minijax.core.meshes import MeshAxes


class Entry(NamedTuple):
    """Which dimensions of one leaf are named: pairs of a name and a dimension.

    Attributes:
        dims: the pairs.
        rank: the rank that the leaf must have, where the user has listed all dimensions.
    """

    dims: tuple[tuple[Any, int], ...]
    rank: int | None

    @property
    def names(self) -> frozenset[Any]:
        """The names alone."""
        return frozenset(name for name, _ in self.dims)


class Vectorized(NamedTuple):
    """The name of the part of a logical axis that is a batch on each device."""

    logical: Any

    def __repr__(self) -> str:
        return f"{self.logical}@vmap"


class LogicalAxis(NamedTuple):
    """A logical axis: `resources` cut it into parts, and each part is a batch of size `local`."""

    name: Any
    size: int
    resources: tuple[Any, ...]
    parts: int

    @property
    def local(self) -> int:
        """How many positions one device has."""
        return self.size // self.parts

    @property
    def batch_name(self) -> Any:
        """The name of the batch; None where each device has one position."""
        return None if self.local == 1 and self.resources else Vectorized(self.name)

    @property
    def bound_to(self) -> tuple[Any, ...]:
        """The names that stand for the axis inside, the slowest first."""
        batch = self.batch_name
        return self.resources if batch is None else (*self.resources, batch)


def is_entry(node: Any) -> bool:
    """Whether a node of `in_axes` or `out_axes` names the dimensions of leaves."""
    if isinstance(node, dict):
        return all(
            isinstance(a, int) != isinstance(b, int) and _is_name(a) and _is_name(b)
            for a, b in node.items()
        )
    return isinstance(node, list) and all(map(_is_name, node))


def _is_name(item: Any) -> bool:
    return isinstance(item, Hashable) and not isinstance(item, tuple)


def entries(argument: str, given: Any, full: Any) -> list[Entry]:
    """One entry for each leaf of `full`.

    Raises:
        TypeError: a leaf of `given` is no entry.
        ValueError: it is no tree prefix, or names a dimension or an axis twice.
    """
    for leaf in tree.leaves(given, is_leaf=is_entry):
        if not is_entry(leaf):
            error(
                TypeError,
                "xmap",
                f"{argument} must hold dicts and lists that name dimensions.",
                got=f"{leaf!r} of type {type(leaf).__name__}",
                expected="{0: 'batch'}, or ['batch', None], or ['batch', ...]",
            )
    found = tree.broadcast_prefix(
        given,
        full,
        is_leaf=is_entry,
        user="xmap",
        first=argument,
        second="the arguments" if argument == "in_axes" else "the results",
    )
    return [_entry(argument, node) for node in found]


def _entry(argument: str, node: Any) -> Entry:
    rank = None
    if isinstance(node, dict):
        dims = [(b, a) if isinstance(a, int) else (a, b) for a, b in node.items()]
    else:
        is_open = bool(node) and node[-1] is Ellipsis
        names = node[:-1] if is_open else node
        if ... in names:
            error(
                ValueError,
                "xmap",
                f"{argument} has ... in the midst of a list.",
                got=repr(node),
                expected="... at the end, for the dimensions that follow, or not at all",
                fix="{-1: 'name'} counts dimensions from the end",
            )
        rank = None if is_open else len(names)
        dims = [(name, dim) for dim, name in enumerate(names) if name is not None]
    for what, items in (("axis", [n for n, _ in dims]), ("dimension", [d for _, d in dims])):
        twice = [item for item in items if items.count(item) > 1]
        if twice:
            text = f"{argument} names the {what} {twice[0]!r} twice for one value."
            error(ValueError, "xmap", text, got=repr(node))
    return Entry(tuple(dims), rank)


def placed(argument: str, entry: Entry, rank: int, what: str) -> dict[Any, int]:
    """For each name of an entry, the dimension of a value of this rank.

    Raises:
        ValueError: the value has another rank, or no such dimension.
    """
    if entry.rank is not None and entry.rank != rank:
        error(
            ValueError,
            "xmap",
            f"{argument} lists {entry.rank} dimension(s) for {what}, which has {rank}.",
            got=str([name for name, _ in entry.dims]),
            fix="end the list with ... where more dimensions follow",
        )
    found: dict[Any, int] = {}
    for name, dim in entry.dims:
        if not -rank <= dim < rank:
            error(
                ValueError,
                "xmap",
                f"{argument} names dimension {dim} of {what}, which has {rank} dimension(s).",
                got=f"axis {name!r}",
            )
        found[name] = dim % rank
    if len(set(found.values())) < len(found):
        error(ValueError, "xmap", f"{argument} names a dimension of {what} twice.", got=str(found))
    return found


def logical_axes(
    dims: Sequence[Mapping[Any, int]],
    shapes: Sequence[Sequence[int]],
    paths: Sequence[str],
    axis_sizes: Mapping[Any, int],
    axis_resources: Mapping[Any, Any],
    mesh: MeshAxes | None,
) -> list[LogicalAxis]:
    """The logical axes of a call, in the order in which arguments name them.

    Raises:
        ValueError: sizes disagree, a resource is no axis of the mesh, or does not divide the size;
            or resources are given for an axis that nothing has.
    """
    sizes: dict[Any, tuple[int, str]] = {
        name: (int(size), "axis_sizes") for name, size in axis_sizes.items()
    }
    for of_leaf, shape, path in zip(dims, shapes, paths, strict=True):
        for name, dim in of_leaf.items():
            size, where = shape[dim], f"dimension {dim} of {path}"
            known, first = sizes.setdefault(name, (size, where))
            if known != size:
                error(
                    ValueError,
                    "xmap",
                    f"the axis {name!r} has two sizes.",
                    got={first: known, where: size},
                )
    unknown = [name for name in axis_resources if name not in sizes]
    if unknown:
        error(
            ValueError,
            "xmap",
            f"axis_resources names {unknown[0]!r}, which is no axis of the call.",
            got=f"axes {sorted(sizes, key=str)}",
            fix="name it in in_axes, or give its size in axis_sizes",
        )
    return [
        _logical(name, size, axis_resources.get(name, ()), mesh)
        for name, (size, _) in sizes.items()
    ]


def _logical(name: Any, size: int, given: Any, mesh: MeshAxes | None) -> LogicalAxis:
    resources = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    if not resources:
        return LogicalAxis(name, size, (), 1)
    known = () if mesh is None else mesh.axis_names
    strange = [r for r in resources if r not in known]
    if strange:
        error(
            ValueError,
            "xmap",
            f"axis_resources gives {name!r} the resource {strange[0]!r}, which is no axis of "
            "the mesh.",
            got=str(mesh) if mesh is not None else "no mesh",
            expected="" if mesh is None else f"one of {', '.join(map(repr, known))}",
            fix="call it inside `with minijax.set_mesh(mesh):`" if mesh is None else "",
        )
    assert mesh is not None
    if len(set(resources)) < len(resources):
        error(ValueError, "xmap", f"a resource of {name!r} is named twice.", got=str(resources))
    parts = math.prod(map(mesh.axis_size, resources))
    if size % parts:
        error(
            ValueError,
            "xmap",
            f"the axis {name!r} of size {size} cannot be split over {parts} devices.",
            got=f"resources {resources} of {mesh}",
            expected=f"a size that {parts} divides",
        )
    return LogicalAxis(name, size, resources, parts)
