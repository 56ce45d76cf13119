"""Tilings: a program for parts of arrays becomes one for whole arrays, over the axes of a mesh.

Input: a function of flat local values, and which dimension of each argument and result each mesh
axis splits.  Output: a function of whole values.  The parts are a batch (`TileVectorize`), blocks
of a manual region (`TileManual`), or arguments of replicas.

Resource typing refuses programs in which one mesh axis carries two of the logical axes that a value
varies along: each device would have the value at equal positions along both only.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from minijax.core import axes as core_axes
from minijax.core import effects, source
from minijax.core.aval import ShapedArray, aval_of
from minijax.core.errors import ResourceTypingError, error
from minijax.core.jaxpr import ClosedJaxpr, Eqn
from minijax.core.meshes import MeshAxes, PartitionSpec
from minijax.core.operators import Avals
from minijax.core.primitive import Primitive
from minijax.interpreters import named_batching, staging, uniformity
from minijax.interpreters.structural import to_batch_dim
from minijax.interpreters.uniformity import Names
from minijax.lax.shape import reshape, transpose
from minijax.lax.slicing import index_in_dim
from minijax.lowering import replicas
from minijax.sharding.named import named
from minijax.transforms.jit import jit, stages
from minijax.transforms.per_device import shard_map
from minijax.transforms.pmap import pmap

Resources = Mapping[Any, tuple[Any, ...]]
"""For logical axes, the mesh axes that carry them."""

Rule = Callable[[Eqn, Sequence[Names], Resources], None]

custom_resource_typing_rules: dict[Primitive, Rule] = {}
"""What replaces the check of a primitive's results: `rule(eqn, names of the operands, resources)`,
which raises a `ResourceTypingError` or returns."""


def resource_typecheck(
    closed: ClosedJaxpr, given: Sequence[Names], resources: Resources, origins: Sequence[str] = ()
) -> list[Names]:
    """Refuses programs of which some value varies along two logical axes on one mesh axis.

    Source: mirrors the check of resources in xmap of JAX before 0.4.31.

    Args:
        closed: the program of one position along all logical axes.
        given: along which of them each argument varies.
        resources: the mesh axes that carry each logical axis.
        origins: what messages call the arguments.

    Returns:
        Along which logical axes each result varies.

    Raises:
        ResourceTypingError: there is such a value, here or in a jaxpr inside; a `TypeError`.

    Example:
        >>> from minijax.experimental.maps import resource_typecheck
        >>> closed = jax.make_jaxpr(lambda x, y: x * y)(1.0, 2.0)
        >>> varying = [frozenset({"i"}), frozenset({"j"})]
        >>> resource_typecheck(closed, varying, {"i": ("x",), "j": ("y",)}) == [{"i", "j"}]
        True
    """
    names = origins or [f"argument {i}" for i in range(len(given))]
    for value, origin in zip(given, names, strict=True):
        check_value(value, resources, f"{origin}")

    def check(eqn: Eqn, operands: Sequence[Names], outs: Sequence[Names]) -> None:
        rule = custom_resource_typing_rules.get(eqn.primitive)
        if rule is not None:
            rule(eqn, operands, resources)
            return
        found = list(outs)
        named = uniformity.names_in(eqn)
        if named:
            # What a collective combines varies along its axes, whatever becomes of it.
            found.append(named.union(*operands) & resources.keys())
        for value in found:
            origin = f"the value made by {eqn.primitive} at {source.summarize(eqn.source)}"
            check_value(value, resources, origin)

    return uniformity.follow(closed, given, frozenset(resources), on_equation=check)


def check_value(names: Names, resources: Resources, origin: str) -> None:
    """Refuses a value that varies along two logical axes which one mesh axis carries.

    Raises:
        ResourceTypingError: it does.
    """
    for one, other in itertools.combinations(sorted(names, key=str), 2):
        shared = [r for r in resources[one] if r in resources[other]]
        if shared:
            problem = (
                f"the resource {shared[0]!r} carries both of the axes {one!r} and {other!r} of "
                "one value."
            )
            got = f"{origin}, which varies along {one!r} and {other!r}"
            expected = "at most one of a value's axes on each resource"
            fix = f"another resource for {one!r} or {other!r}, or none"
            error(ResourceTypingError, "xmap", problem, got=got, expected=expected, fix=fix)


AxisDims = Mapping[Any, int]
"""For names of axes, the dimension of a value that each splits; the first name is the slowest."""

Flat = Callable[..., Sequence[Any]]


class NamedAval(NamedTuple):
    """The type of a value of which there is one for each position along some named axes.

    Source:     after the named shapes of types, which JAX has since dropped.

    Example:
        >>> from minijax.experimental import pxla
        >>> aval = pxla.NamedAval(jax.typeof(jnp.zeros((2, 3))), (("x", 4),))
        >>> aval.shape, dict(aval.named_shape)
        ((2, 3), {'x': 4})
    """

    aval: ShapedArray
    names: tuple[tuple[Any, int], ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape at one position."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self.aval.dtype

    @property
    def named_shape(self) -> Mapping[Any, int]:
        """The named axes and their sizes, read-only."""
        return MappingProxyType(dict(self.names))


def named_aval(aval: ShapedArray) -> NamedAval:
    """A type with the named axes along which it says that values vary."""
    if isinstance(aval, NamedAval):
        return aval
    return NamedAval(aval, tuple((n, core_axes.size(n)) for n in sorted(aval.vma, key=str)))


def tile_aval_nd(sizes: Mapping[Any, int], axes: AxisDims, aval: ShapedArray) -> NamedAval:
    """The type of one part of a value, split along named axes.

    Shapes: each dimension in `axes` is as many times shorter as its axis is long; the names are
        added to those of the type.

    Args:
        sizes: how long axes are, by name.
        axes: which dimension each of some axes splits.
        aval: the type of the whole.

    Raises:
        ValueError: a dimension is not divisible, an axis has no size, or the type has it already.

    Source: mirrors jax.interpreters.pxla.tile_aval_nd, which JAX has since dropped.

    Example:
        >>> from minijax.experimental import pxla
        >>> part = pxla.tile_aval_nd({"x": 4}, {"x": 0}, jax.typeof(jnp.zeros((8, 3))))
        >>> part.shape, dict(part.named_shape)
        ((2, 3), {'x': 4})
    """
    whole = named_aval(aval)
    shape = list(whole.shape)
    sizes_of = dict(whole.named_shape)
    for name, dim in axes.items():
        if name in sizes_of:
            problem = f"the type has the axis {name!r} already."
            error(ValueError, "tile_aval_nd", problem, got=f"{whole.aval} with axes {sizes_of}")
        size = sizes_of[name] = _size_of(name, sizes)
        if shape[dim] % size:
            problem = f"dimension {dim} of size {shape[dim]} cannot be cut into {size} equal parts."
            got = f"{whole.aval}, axis {name!r} of size {size}"
            error(ValueError, "tile_aval_nd", problem, got=got)
        shape[dim] //= size
    return NamedAval(whole.aval.update(shape=tuple(shape), sharding=None), tuple(sizes_of.items()))


def untile_aval_nd(sizes: Mapping[Any, int], axes: AxisDims, aval: ShapedArray) -> NamedAval:
    """The type of a whole whose parts along named axes are of a type: undoes `tile_aval_nd`.

    Shapes: each dimension in `axes` is as many times longer as its axis is long.  A part that has
    not the name of an axis is the same for all positions along it, and the whole repeats it.

    Source: mirrors jax.interpreters.pxla.untile_aval_nd, which JAX has since dropped.

    Example:
        >>> from minijax.experimental import pxla
        >>> pxla.untile_aval_nd({"x": 4}, {"x": 0}, jax.typeof(jnp.zeros((2, 3)))).shape
        (8, 3)
    """
    part = named_aval(aval)
    shape = list(part.shape)
    for name, dim in axes.items():
        shape[dim] *= _size_of(name, sizes)
    names = tuple((name, size) for name, size in part.names if name not in axes)
    return NamedAval(part.aval.update(shape=tuple(shape), sharding=None), names)


def _size_of(name: Hashable, sizes: Mapping[Any, int]) -> int:
    if name not in sizes:
        problem = f"the axis {name!r} has no size."
        expected = "a size for each axis that splits a dimension"
        error(ValueError, "tiling", problem, got=f"axes of {dict(sizes)}", expected=expected)
    return sizes[name]


class TileVectorize(NamedTuple):
    """Parts are a batch, along whose mesh axes the compiler splits it.

    Source:     mirrors jax.interpreters.pxla.TileVectorize, which JAX has since dropped.

    Example:
        >>> from minijax.experimental import pxla
        >>> mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        >>> method = pxla.TileVectorize()
        >>> total = lambda x: [lax.psum(x, "x")]
        >>> of_all = pxla.mesh_computation(total, mesh, [{"x": 0}], [{}], tiling_method=method)
        >>> of_all(jnp.arange(8))
        [Array([28], dtype=int32)]
    """


class TileManual(NamedTuple):
    """Parts are blocks of a region that is written per device of some mesh axes.

    Source:     mirrors jax.interpreters.pxla.TileManual, which JAX has since dropped.

    Example:
        >>> from minijax.experimental import pxla
        >>> mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        >>> method = pxla.TileManual(frozenset({"x"}))
        >>> total = lambda x: [lax.psum(x, "x")]
        >>> of_all = pxla.mesh_computation(total, mesh, [{"x": 0}], [{}], tiling_method=method)
        >>> of_all(jnp.arange(8))
        [Array([28], dtype=int32)]
    """

    manual_axes: frozenset[Any]


def vectorized(
    function: Flat,
    size: int,
    in_dims: Sequence[int | None],
    out_dims: Sequence[int | None],
    **names: Any,
) -> Flat:
    """A function of slices becomes one of wholes; results along no dimension are all the same."""

    def mapped(*args: Any) -> list[Any]:
        outs, dims = named_batching.batch_flat(function, size, args, in_dims, **names)
        return [
            _one_of(out, dim) if wanted is None else to_batch_dim(out, dim, wanted, size)
            for out, dim, wanted in zip(outs, dims, out_dims, strict=True)
        ]

    return mapped


def vtile(
    function: Flat,
    in_dims: Sequence[int | None],
    out_dims: Sequence[int | None],
    tile_size: int,
    axis_name: Hashable,
    spmd_axis_name: Hashable = None,
) -> Flat:
    """A function of parts becomes one of wholes, whose parts are a batch.

    Args:
        function: takes and gives flat parts; collectives in it may speak of `axis_name`.
        in_dims: which dimension of each argument is cut into `tile_size` parts; None: each part
            gets the whole.
        out_dims: along which dimension parts of results are joined; None: all are the same.
        tile_size: how many parts there are.
        axis_name: the name of the axis that they form.
        spmd_axis_name: the mesh axis, or axes, that the batch is split over.

    Source:     mirrors jax.interpreters.batching.vtile, which JAX has since dropped.

    Example:
        >>> from minijax.experimental import pxla
        >>> number = pxla.vtile(lambda x: [x + 10 * lax.axis_index("t")], [0], [0], 2, "t")
        >>> number(jnp.arange(4))
        [Array([ 0,  1, 12, 13], dtype=int32)]
    """
    names = {"axis_name": axis_name, "spmd_axis_name": spmd_axis_name, "function_name": "vtile"}
    whole = vectorized(function, tile_size, in_dims, out_dims, **names)

    def tiled(*args: Any) -> list[Any]:
        parts = [_cut(x, d, tile_size) for x, d in zip(args, in_dims, strict=True)]
        outs = zip(whole(*parts), out_dims, strict=True)
        return [x if d is None else _joined(x, d) for x, d in outs]

    return tiled


def vtile_by_mesh(
    function: Flat, mesh: MeshAxes, in_axes: Sequence[AxisDims], out_axes: Sequence[AxisDims]
) -> Flat:
    """A function of local values becomes one of wholes, a batch over all axes of a mesh.

    Args:
        function: takes and gives flat local values.
        mesh: the mesh.
        in_axes: for each argument, which dimension each mesh axis splits.
        out_axes: the same for the results.

    Source:     mirrors jax.interpreters.pxla.vtile_by_mesh, which JAX has since dropped.

    Example:
        >>> from minijax.experimental import pxla
        >>> mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        >>> number = lambda x: [x + 10 * lax.axis_index("x")]
        >>> pxla.vtile_by_mesh(number, mesh, [{"x": 0}], [{"x": 0}])(jnp.zeros(8, int))
        [Array([ 0, 10, 20, 30, 40, 50, 60, 70], dtype=int32)]
    """
    for name in reversed(mesh.axis_names):
        ins, outs = _dims_along(name, in_axes), _dims_along(name, out_axes)
        function = vtile(function, ins, outs, mesh.axis_size(name), name, name)
    return _in_mesh_order(function, mesh, in_axes, out_axes)


def vtile_manual(
    function: Flat,
    manual_axes: Collection[Any],
    mesh: MeshAxes,
    in_axes: Sequence[AxisDims],
    out_axes: Sequence[AxisDims],
) -> Flat:
    """A function of local values becomes one of wholes, written per device of some mesh axes.

    The values go from full to shard before it and back after it; in Shardy's words both borders are
    one operation, so they are made together.

    Args:
        function: takes and gives flat local values.
        manual_axes: the axes of the mesh that it is written per device of.
        mesh: the mesh.
        in_axes: for each argument, which dimension each mesh axis splits.
        out_axes: the same for the results.

    Source:     mirrors jax.interpreters.pxla.vtile_manual, which JAX has since dropped.

    Example:
        >>> from minijax.experimental import pxla
        >>> mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        >>> number = lambda x: [x + 10 * lax.axis_index("x")]
        >>> pxla.vtile_manual(number, {"x"}, mesh, [{"x": 0}], [{"x": 0}])(jnp.zeros(8, int))
        [Array([ 0, 10, 20, 30, 40, 50, 60, 70], dtype=int32)]
    """
    mapped = shard_map.shard_map(
        lambda *blocks: tuple(function(*blocks)),
        mesh=mesh,
        in_specs=tuple(map(spec_of, in_axes)),
        out_specs=tuple(map(spec_of, out_axes)),
        axis_names=frozenset(manual_axes),
        check_vma=False,
    )
    return lambda *args: list(mapped(*args))


def mesh_computation(
    function: Flat,
    mesh: MeshAxes,
    in_axes: Sequence[AxisDims],
    out_axes: Sequence[AxisDims],
    *,
    tiling_method: object,
    spmd_lowering: bool = True,
) -> Flat:
    """A function of local values becomes one of whole values, over all of a mesh.

    Args:
        function: takes and gives flat local values.
        mesh: the mesh.
        in_axes: for each argument, which dimension each mesh axis splits.
        out_axes: the same for the results.
        tiling_method: `TileVectorize()`, `TileManual(axes)`, or None where the function takes
            whole values.
        spmd_lowering: whether the devices are partitions of one program; otherwise they are its
            replicas, and the tiling method does not matter.

    Source:     after jax.interpreters.pxla.lower_mesh_computation, which JAX has since dropped.

    Raises:
        NotImplementedError: there is no such tiling method.
        RuntimeError: a pmap is inside.
        ValueError: a side effect is ordered.

    Example:
        >>> from minijax.experimental import pxla
        >>> mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        >>> double_all = pxla.mesh_computation(
        ...     lambda x: [2 * x], mesh, [{"x": 0}], [{"x": 0}], tiling_method=pxla.TileVectorize()
        ... )
        >>> double_all(jnp.arange(8))
        [Array([ 0,  2,  4,  6,  8, 10, 12, 14], dtype=int32)]
    """
    inner = _checked(function)
    if not spmd_lowering:
        return _by_replicas(inner, mesh, in_axes, out_axes)[0]
    match tiling_method:
        case None:
            return inner
        case TileVectorize():
            return vtile_by_mesh(inner, mesh, in_axes, out_axes)
        case TileManual(manual_axes):
            return vtile_manual(inner, manual_axes, mesh, in_axes, out_axes)
    problem = "unknown tiling method."
    got = f"{tiling_method!r} of type {type(tiling_method).__name__}"
    expected = "TileVectorize(), TileManual(manual_axes), or None"
    error(NotImplementedError, "lower_mesh_computation", problem, got=got, expected=expected)


def lower_mesh_computation(
    function: Flat,
    mesh: MeshAxes,
    in_axes: Sequence[AxisDims],
    out_axes: Sequence[AxisDims],
    avals: Avals,
    *,
    tiling_method: object,
    spmd_lowering: bool = True,
) -> Any:
    """The lowered program of `mesh_computation` for whole arguments of types `avals`.

    Source:     mirrors jax.interpreters.pxla.lower_mesh_computation, which JAX has since dropped.

    Example:
        >>> from minijax.experimental import pxla
        >>> mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        >>> method, avals = pxla.TileVectorize(), [jax.typeof(jnp.arange(8))]
        >>> lowered = pxla.lower_mesh_computation(
        ...     lambda x: [2 * x], mesh, [{"x": 0}], [{"x": 0}], avals, tiling_method=method
        ... )
        >>> lowered.compile()(jnp.arange(8))
        (Array([ 0,  2,  4,  6,  8, 10, 12, 14], dtype=int32),)
    """
    structs = list(map(stages.struct_of, avals))
    if spmd_lowering:
        whole = mesh_computation(function, mesh, in_axes, out_axes, tiling_method=tiling_method)
        named_whole = functools.wraps(function, assigned=("__name__", "__qualname__"))(
            lambda *args: tuple(whole(*args))
        )
        return jit.jit(
            named_whole,
            in_shardings=tuple(named(mesh, spec_of(dims)) for dims in in_axes),
            out_shardings=tuple(named(mesh, spec_of(dims)) for dims in out_axes),
        ).lower(*structs)
    outermost = _by_replicas(_checked(function), mesh, in_axes, out_axes)[1]
    return outermost.mapped.lower(*jit.jit(outermost.parts).eval_shape(*structs))


class _Replicated(NamedTuple):
    """A function whose parts along one axis are arguments of replicas."""

    mapped: Any
    size: int
    ins: Sequence[int | None]
    outs: Sequence[int | None]

    def parts(self, *args: Any) -> list[Any]:
        """The arguments, cut; and one that is there only to be mapped, where none is."""
        found = [_cut(x, d, self.size) for x, d in zip(args, self.ins, strict=True)]
        return found if any(d is not None for d in self.ins) else [*found, np.zeros(self.size)]

    def __call__(self, *args: Any) -> list[Any]:
        outs = self.mapped(*self.parts(*args))
        return [x if d is None else _joined(x, d) for x, d in zip(outs, self.outs, strict=True)]


def _by_replicas(
    function: Flat, mesh: MeshAxes, in_axes: Sequence[AxisDims], out_axes: Sequence[AxisDims]
) -> tuple[Flat, Any]:
    """A function of wholes that runs as replicas, and its outermost map."""
    devices = getattr(mesh, "devices", None)
    outermost: Any = None
    for name in reversed(mesh.axis_names):
        is_first = name == mesh.axis_names[0]
        ins = _dims_along(name, in_axes)
        size = mesh.axis_size(name)
        mapped = pmap(
            _of_tuples(function, len(ins)),
            name,
            in_axes=tuple(ins) if any(d is not None for d in ins) else (*ins, 0),
            out_axes=tuple(_dims_along(name, out_axes)),
            axis_size=size if is_first else None,
            devices=list(devices.flat) if devices is not None and is_first else None,
        )
        outermost = _Replicated(mapped, size, ins, _dims_along(name, out_axes))
        function = outermost
    return _in_mesh_order(function, mesh, in_axes, out_axes), outermost


def _of_tuples(function: Flat, count: int) -> Callable[..., tuple[Any, ...]]:
    return lambda *parts: tuple(function(*parts[:count]))


def _in_mesh_order(
    function: Flat, mesh: MeshAxes, in_axes: Sequence[AxisDims], out_axes: Sequence[AxisDims]
) -> Flat:
    """A function whose arguments' and results' parts lie in the order of the axes as given.

    That of `function` takes axes which split one dimension in the order of the mesh.
    """

    def ordered(*args: Any) -> list[Any]:
        moved = [_reordered(x, dims, mesh, True) for x, dims in zip(args, in_axes, strict=True)]
        outs = zip(function(*moved), out_axes, strict=True)
        return [_reordered(x, dims, mesh, False) for x, dims in outs]

    return ordered


def _reordered(x: Any, dims: AxisDims, mesh: MeshAxes, to_mesh: bool) -> Any:
    for dim in set(dims.values()):
        given = [name for name in dims if dims[name] == dim]
        in_mesh = [name for name in mesh.axis_names if name in given]
        if given == in_mesh:
            continue
        old, new = (given, in_mesh) if to_mesh else (in_mesh, given)
        shape = aval_of(x).shape
        rest = shape[dim] // math.prod(map(mesh.axis_size, given))
        cut = reshape(x, (*shape[:dim], *map(mesh.axis_size, old), rest, *shape[dim + 1 :]))
        count = len(given)
        order = [*range(dim), *(dim + old.index(name) for name in new)]
        order += range(dim + count, len(shape) + count)
        x = reshape(transpose(cut, order), shape)
    return x


def _checked(function: Flat) -> Flat:
    """A function that is staged first, so that what a mesh cannot run is refused."""

    def checked(*args: Any) -> list[Any]:
        jaxpr, consts = staging.stage(function, list(map(aval_of, args)))
        check_fits_mesh("lower_mesh_computation", ClosedJaxpr(jaxpr, consts))
        return staging.eval_jaxpr(jaxpr, consts, *args)

    return checked


def check_fits_mesh(user: str, closed: ClosedJaxpr) -> None:
    """Refuses programs that a mesh as a whole cannot run.

    Raises:
        RuntimeError: a pmap is inside.
        ValueError: a side effect is ordered.
    """
    if replicas.maps_devices(closed.jaxpr):
        problem = "pmap cannot be inside: the devices of the mesh are all taken."
        error(RuntimeError, user, problem, fix="vmap, or an axis of the mesh")
    ordered = effects.ordered_among(closed.effects)
    if ordered:
        problem = "ordered side effects are impossible where many devices run the program at once."
        error(ValueError, user, problem, got=", ".join(map(str, ordered)), fix="ordered=False")


def _dims_along(name: Hashable, axes: Sequence[AxisDims]) -> list[int | None]:
    return [dims.get(name) for dims in axes]


def spec_of(axes: AxisDims) -> PartitionSpec:
    """The spec that splits dimensions over these axes, the first name of a dimension slowest."""
    entries: list[list[Any]] = [[] for _ in range(max(axes.values(), default=-1) + 1)]
    for name, dim in axes.items():
        entries[dim].append(name)
    return PartitionSpec(*(tuple(names) or None for names in entries))


def _cut(x: Any, dim: int | None, size: int) -> Any:
    """A value with a new dimension at `dim` that runs over its `size` parts along it."""
    if dim is None:
        return x
    shape = aval_of(x).shape
    if shape[dim] % size:
        problem = f"dimension {dim} of size {shape[dim]} cannot be cut into {size} equal parts."
        error(ValueError, "vtile", problem, got=str(aval_of(x)))
    return reshape(x, (*shape[:dim], size, shape[dim] // size, *shape[dim + 1 :]))


def _joined(x: Any, dim: int) -> Any:
    shape = aval_of(x).shape
    return reshape(x, (*shape[:dim], math.prod(shape[dim : dim + 2]), *shape[dim + 2 :]))


def _one_of(x: Any, dim: int | None) -> Any:
    """One of equal values along a dimension; the value itself where it has none such."""
    return x if dim is None else index_in_dim(x, 0, dim, keepdims=False)
