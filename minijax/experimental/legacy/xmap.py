"""`xmap`: a function over named axes, which a batch and the axes of a mesh carry together.

Input: a function of one position along logical axes, and names for dimensions of its arguments and
results.  Output: a function of whole arrays.  The function is staged once, with the logical axes in
scope; then each of their names is replaced by those of what carries it: axes of the mesh, over
which `shard_map` splits it, and the rest, over which it is mapped as `vmap` does.

How a program is cut over axes of a mesh is in `tiling.py`.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from minijax.core import axes as core_axes
from minijax.core import config, meshes, tree
from minijax.core.errors import ResourceTypingError, error
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.meshes import AxisType, MeshAxes
from minijax.experimental.legacy import tiling
from minijax.experimental.legacy.tiling import Flat, TileManual
from minijax.interpreters import flattening, passes, staging
from minijax.lowering import eager
from minijax.sharding import contexts
from minijax.transforms.jit import jit


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


def is_entry(node: object) -> bool:
    """Whether a node of `in_axes` or `out_axes` names the dimensions of leaves."""
    if isinstance(node, dict):
        return all(
            isinstance(a, int) != isinstance(b, int) and _is_name(a) and _is_name(b)
            for a, b in node.items()
        )
    return isinstance(node, list) and all(map(_is_name, node))


def _is_name(item: object) -> bool:
    return isinstance(item, Hashable) and not isinstance(item, tuple)


def entries(argument: str, given: object, full: object) -> list[Entry]:
    """One entry for each leaf of `full`.

    Raises:
        TypeError: a leaf of `given` is not an entry.
        ValueError: it is not a tree prefix, or names a dimension or an axis twice.
    """
    for leaf in tree.leaves(given, is_leaf=is_entry):
        if not is_entry(leaf):
            problem = f"{argument} must hold dicts and lists that name dimensions."
            got = f"{leaf!r} of type {type(leaf).__name__}"
            expected = "{0: 'batch'}, or ['batch', None], or ['batch', ...]"
            error(TypeError, "xmap", problem, got=got, expected=expected)
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
            problem = f"{argument} has ... in the midst of a list."
            expected = "... at the end, for the dimensions that follow, or not at all"
            fix = "{-1: 'name'} counts dimensions from the end"
            error(ValueError, "xmap", problem, got=repr(node), expected=expected, fix=fix)
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
        problem = f"{argument} lists {entry.rank} dimension(s) for {what}, which has {rank}."
        fix = "end the list with ... where more dimensions follow"
        error(ValueError, "xmap", problem, got=str([name for name, _ in entry.dims]), fix=fix)
    found: dict[Any, int] = {}
    for name, dim in entry.dims:
        if not -rank <= dim < rank:
            problem = f"{argument} names dimension {dim} of {what}, which has {rank} dimension(s)."
            error(ValueError, "xmap", problem, got=f"axis {name!r}")
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
        ValueError: sizes disagree, a resource is not an axis of the mesh, or does not divide the
            size; or resources are given for an axis that nothing has.
    """
    sizes: dict[Any, tuple[int, str]] = {
        name: (int(size), "axis_sizes") for name, size in axis_sizes.items()
    }
    for of_leaf, shape, path in zip(dims, shapes, paths, strict=True):
        for name, dim in of_leaf.items():
            size, where = shape[dim], f"dimension {dim} of {path}"
            known, first = sizes.setdefault(name, (size, where))
            if known != size:
                problem = f"the axis {name!r} has two sizes."
                error(ValueError, "xmap", problem, got={first: known, where: size})
    unknown = [name for name in axis_resources if name not in sizes]
    if unknown:
        problem = f"axis_resources names {unknown[0]!r}, which is no axis of the call."
        fix = "name it in in_axes, or give its size in axis_sizes"
        error(ValueError, "xmap", problem, got=f"axes {sorted(sizes, key=str)}", fix=fix)
    return [
        _logical(name, size, axis_resources.get(name, ()), mesh)
        for name, (size, _) in sizes.items()
    ]


def _logical(name: Hashable, size: int, given: object, mesh: MeshAxes | None) -> LogicalAxis:
    resources = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    if not resources:
        return LogicalAxis(name, size, (), 1)
    known = () if mesh is None else mesh.axis_names
    strange = [r for r in resources if r not in known]
    if strange:
        problem = (
            f"axis_resources gives {name!r} the resource {strange[0]!r}, which is no axis of "
            "the mesh."
        )
        got = str(mesh) if mesh is not None else "no mesh"
        expected = "" if mesh is None else f"one of {', '.join(map(repr, known))}"
        fix = "call it inside `with minijax.set_mesh(mesh):`" if mesh is None else ""
        error(ValueError, "xmap", problem, got=got, expected=expected, fix=fix)
    assert mesh is not None
    if len(set(resources)) < len(resources):
        error(ValueError, "xmap", f"a resource of {name!r} is named twice.", got=str(resources))
    parts = math.prod(map(mesh.axis_size, resources))
    if size % parts:
        problem = f"the axis {name!r} of size {size} cannot be split over {parts} devices."
        got = f"resources {resources} of {mesh}"
        error(ValueError, "xmap", problem, got=got, expected=f"a size that {parts} divides")
    return LogicalAxis(name, size, resources, parts)


def xmap(
    fun: Callable[..., Any],
    in_axes: object,
    out_axes: object,
    *,
    axis_sizes: Mapping[Any, int] | None = None,
    axis_resources: Mapping[Any, Any] | None = None,
    donate_argnums: int | Sequence[int] = (),
    backend: str | None = None,
) -> Callable[..., Any]:
    """Maps `fun` over named axes of its arguments, which may be split over a mesh.

    Inside, named dimensions are gone; collectives such as `lax.psum` refer to them by name, and act
    on all positions, wherever they are.

    Shapes: an argument leaf is seen by `fun` without its named dimensions; a result leaf gets a
        dimension for each name of its entry.
    Source: mirrors jax.experimental.maps.xmap of JAX before 0.4.31.

    Args:
        fun: a function of trees of arrays.
        in_axes: a tree prefix of the arguments, whose leaves name dimensions: `{0: "batch"}` or
            `["batch", None, ...]`, where None is a dimension without a name and `...` stands for
            any more of these.
        out_axes: the same for the results; each must have the axes along which it varies.
        axis_sizes: sizes of axes, needed for those that no argument has.
        axis_resources: for axes, the mesh axis, or a tuple of them, that they are split over; what
            is left is a batch.  The mesh is the one in force.
        donate_argnums: positions of arguments whose memory results may take.
        backend: the platform to run on.

    Returns:
        A function like `fun`, of positional arguments.

    Raises:
        TypeError: `fun` cannot be called, an entry names no dimensions, or one mesh axis carries
            two axes of one value.
        ValueError: sizes disagree or do not divide, names are unknown, a result varies along an
            axis that its entry does not have, or a side effect is ordered.
        RuntimeError: a pmap is inside.

    Example:
        >>> from minijax.experimental.maps import xmap
        >>> center = xmap(lambda x: x - lax.pmean(x, "i"), in_axes=["i", ...], out_axes=["i", ...])
        >>> center(jnp.array([[1.0, 2.0], [3.0, 6.0]]))
        Array([[-1., -2.],
               [ 1.,  2.]], dtype=float32)
    """
    eager.check_callable("xmap", fun)
    # A list of entries is one for each argument; a list of names is an entry.
    ins = tuple(in_axes) if isinstance(in_axes, list) and not is_entry(in_axes) else in_axes
    mapped = _Mapped(fun, ins, out_axes, dict(axis_sizes or {}), dict(axis_resources or {}))

    named = functools.wraps(fun, assigned=("__module__", "__name__", "__qualname__", "__doc__"))

    @named
    def call(*args: Any) -> Any:
        return mapped.call(args)

    compiled = jit.jit(call, donate_argnums=donate_argnums or None, backend=backend)

    @named
    def run(*args: Any) -> Any:
        is_spmd = config.experimental_xmap_spmd_lowering.value
        return (compiled if is_spmd else call)(*args)

    run.lower = compiled.lower  # type: ignore[attr-defined]
    run.trace = compiled.trace  # type: ignore[attr-defined]
    return run


class _Mapped(NamedTuple):
    """A function to map over named axes, and how."""

    function: Callable[..., Any]
    in_axes: Any
    out_axes: Any
    axis_sizes: dict[Any, int]
    axis_resources: dict[Any, Any]

    def call(self, args: tuple[Any, ...]) -> Any:
        """Runs the function on whole arrays."""
        leaves, in_tree = tree.flatten((args, {}))
        info = flattening.debug_info("xmap", self.function, in_tree)
        avals = flattening.avals_of(leaves, lambda: info.arg_names or (), "xmap")
        paths = [f"argument {name}" for name in info.arg_names or ()]
        ins = [
            placed("in_axes", entry, aval.ndim, path)
            for entry, aval, path in zip(self._entries_in(args), avals, paths, strict=True)
        ]
        mesh = _mesh()
        logical = logical_axes(
            ins, [aval.shape for aval in avals], paths, self.axis_sizes, self.axis_resources, mesh
        )
        _check_around(logical)
        flat = flattening.FlatFunction(self.function, in_tree, info.func_name)
        examples = [_without_dims(a, d.values()) for a, d in zip(avals, ins, strict=True)]
        with _inside(logical, mesh):
            jaxpr, consts = staging.stage(flat, examples, info)
        closed = ClosedJaxpr(passes.close_over_constants(jaxpr))
        tiling.check_fits_mesh("xmap", closed)
        ins = [{} for _ in consts] + ins
        outs = self._outs(flat, closed, logical, ins, ["a value closed over"] * len(consts) + paths)
        whole = _over_all(closed, logical, mesh, ins, outs)
        return tree.unflatten(flat.out_tree, whole(*consts, *leaves))

    def _entries_in(self, args: tuple[Any, ...]) -> list[Entry]:
        given = self.in_axes
        if is_entry(given):
            given = (given,) * len(args)
        # A list of names is an entry; another list has one item for each argument.
        given = tuple(given) if isinstance(given, list) else given
        return entries("in_axes", given, args)

    def _outs(
        self,
        flat: flattening.FlatFunction,
        closed: ClosedJaxpr,
        logical: Sequence[LogicalAxis],
        ins: Sequence[Mapping[Any, int]],
        origins: Sequence[str],
    ) -> list[dict[Any, int]]:
        """Where each result has its named dimensions.

        Raises:
            ResourceTypingError: one mesh axis carries two axes of one value.
            ValueError: a result varies along an axis that its entry does not have, or the entry
                has one that there is not.
        """
        carried = {axis.name: axis.resources for axis in logical}
        varying = tiling.resource_typecheck(
            closed, [frozenset(dims) for dims in ins], carried, origins
        )
        count = len(closed.out_avals)
        full = tree.unflatten(flat.out_tree, [0] * count)
        found = []
        for entry, aval, names, path in zip(
            entries("out_axes", self.out_axes, full),
            closed.out_avals,
            varying,
            flattening.result_paths(flat.out_tree),
            strict=True,
        ):
            _check_names(entry, names, carried, path)
            tiling.check_value(entry.names, carried, path)
            rank = aval.ndim + len(entry.dims)
            found.append(placed("out_axes", entry, rank, path))
        return found


def _check_names(
    entry: Entry, varying: frozenset[Any], known: Mapping[Any, Any], path: str
) -> None:
    strange = [name for name in entry.names if name not in known]
    if strange:
        problem = f"out_axes names {strange[0]!r}, which is no axis of the call."
        fix = "name it in in_axes, or give its size in axis_sizes"
        error(ValueError, "xmap", problem, got=f"axes {sorted(known, key=str)}", fix=fix)
    left = sorted(varying - entry.names, key=str)
    if left:
        problem = f"{path} varies along {left[0]!r}, which its out_axes do not have."
        got = (
            f"out_axes with {sorted(entry.names, key=str)}, a value that varies along "
            f"{sorted(varying, key=str)}"
        )
        fix = f"name {left[0]!r} in out_axes, or reduce over it: lax.psum(x, {left[0]!r})"
        error(ValueError, "xmap", problem, got=got, fix=fix)


def _mesh() -> Any:
    """The mesh in force, with devices where it has them; None where there is none."""
    around = meshes.get_abstract_mesh()
    concrete = contexts.mesh_of_arrays()
    if around.empty or (concrete is not None and concrete.abstract_mesh is around):
        return concrete
    return around


def _check_around(logical: Sequence[LogicalAxis]) -> None:
    """Refuses resources that an `xmap` around has taken: all values inside vary along its axes."""
    for outer in core_axes.in_scope():
        for axis in logical:
            shared = [r for r in axis.resources if r in outer.carriers]
            if shared:
                problem = (
                    f"the resource {shared[0]!r} carries the axis {outer.name!r} of the xmap "
                    f"around already, and cannot carry {axis.name!r} too."
                )
                fix = f"another resource for {axis.name!r}, or none"
                error(ResourceTypingError, "xmap", problem, fix=fix)


@contextlib.contextmanager
def _inside(logical: Sequence[LogicalAxis], mesh: Any) -> Iterator[None]:
    """While this is entered, the logical axes are in scope, and their resources are taken."""
    manual = {r: AxisType.Manual for axis in logical for r in axis.resources}
    inner = meshes.get_abstract_mesh()
    if mesh is not None and manual:
        inner = mesh.abstract_mesh.update_axis_types(manual)
    scope = (core_axes.Axis(axis.name, axis.size, "xmap", axis.resources) for axis in logical)
    with (
        config.override(meshes.abstract_mesh, inner),
        config.override(core_axes.check_vma, False),
        core_axes.extend_all(scope),
    ):
        yield


def _without_dims(aval: Any, dims: Any) -> Any:
    shape = tuple(n for d, n in enumerate(aval.shape) if d not in dims)
    return aval.update(shape=shape, sharding=None)


def _over_all(
    closed: ClosedJaxpr,
    logical: Sequence[LogicalAxis],
    mesh: MeshAxes,
    ins: Sequence[Mapping[Any, int]],
    outs: Sequence[Mapping[Any, int]],
) -> Flat:
    """A function of one position as one of whole arrays."""
    names = {axis.name: axis.bound_to for axis in logical}
    renamed = closed.replace(jaxpr=core_axes.substitute(closed.jaxpr, names))

    def function(*args: Any) -> Sequence[Any]:
        return staging.eval_closed_jaxpr(renamed, *args)

    for i in reversed(range(len(logical))):
        outer = {axis.name for axis in logical[:i]}
        own, size = logical[i].name, logical[i].local
        dims = [_dim_inside(own, outer, d) for d in ins], [_dim_inside(own, outer, d) for d in outs]
        called = {"axis_name": logical[i].batch_name, "function_name": "xmap"}
        function = tiling.vectorized(function, size, *dims, **called)
    carriers = frozenset(r for axis in logical for r in axis.resources)
    if not carriers:
        return function
    by_name = {axis.name: axis.resources for axis in logical}
    return tiling.mesh_computation(
        function,
        mesh,
        [_over_resources(dims, by_name) for dims in ins],
        [_over_resources(dims, by_name) for dims in outs],
        tiling_method=TileManual(carriers),
        spmd_lowering=config.experimental_xmap_spmd_lowering.value,
    )


def _dim_inside(name: Hashable, outer: set[Any], dims: Mapping[Any, int]) -> int | None:
    """The dimension of an axis in what is left once the dimensions of the outer ones are gone."""
    if name not in dims:
        return None
    return dims[name] - sum(dims[other] < dims[name] for other in outer if other in dims)


def _over_resources(
    dims: Mapping[Any, int], carriers: Mapping[Any, tuple[Any, ...]]
) -> dict[Any, int]:
    return {resource: dim for name, dim in dims.items() for resource in carriers[name]}
