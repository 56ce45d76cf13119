"""Shardings as earlier versions of JAX described them: `ShardingSpec` and `PositionalSharding`.

An array mapping tells for each mesh axis which dimension it splits, the other way round than a
`PartitionSpec`; with these are the shapes that arrays have within one process of many.

A `ShardingSpec` is the description of the time of `pmap`.  It says for each dimension of an array
how it is split, and for each dimension of an array of devices which of these splits it carries.  It
is plain data on plain numbers: devices come in elsewhere.

A `PositionalSharding` is a grid of groups of devices, with as many dimensions as the array.
"""

from __future__ import annotations

import itertools
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax.core import source
from minijax.core.aval import ShapedArray, abstract_token
from minijax.core.errors import IndivisibleError, error
from minijax.core.meshes import PartitionSpec, names_of
from minijax.sharding import hlo
from minijax.sharding.base import Sharding
from minijax.sharding.hlo import Tiling
from minijax.sharding.mesh import Mesh, device_list

ArrayMapping = OrderedDict[Any, int]


def get_array_mapping(spec: PartitionSpec) -> ArrayMapping:
    """The dimension that each mesh axis splits, in order of the spec."""
    return OrderedDict((name, dim) for dim, entry in enumerate(spec) for name in names_of(entry))


def array_mapping_to_spec(mapping: Mapping[Any, int]) -> PartitionSpec:
    """The spec in which each mesh axis splits its dimension; the first is the outermost."""
    entries: list[list[Any]] = [[] for _ in range(1 + max(mapping.values(), default=-1))]
    for name, dim in mapping.items():
        entries[dim].append(name)
    return PartitionSpec(*entries)


def tile_aval(sizes: Mapping[Any, int], axes: Mapping[Any, int], aval: ShapedArray) -> ShapedArray:
    """The type of one piece of an array that mesh axes of these sizes split.

    Raises:
        IndivisibleError: a dimension is not a multiple of its axes.
    """
    shape = list(aval.shape)
    for name, dim in axes.items():
        shape[dim], rest = divmod(shape[dim], sizes[name])
        if rest:
            problem = f"dimension {dim} cannot be split over axis {name!r} of size {sizes[name]}."
            error(IndivisibleError, "tile_aval", problem, got=aval.str_short())
    return aval.with_shape(tuple(shape))


def untile_aval(
    sizes: Mapping[Any, int], axes: Mapping[Any, int], aval: ShapedArray
) -> ShapedArray:
    """The type of the array of which mesh axes of these sizes give pieces of type `aval`."""
    shape = list(aval.shape)
    for name, dim in axes.items():
        shape[dim] *= sizes[name]
    return aval.with_shape(tuple(shape))


def mesh_local_to_global(mesh: Mesh, axes: Mapping[Any, int], aval: ShapedArray) -> ShapedArray:
    """The type of a whole array of which this process holds a part of type `aval`."""
    return untile_aval(mesh.shape, axes, tile_aval(mesh.local_mesh.shape, axes, aval))


def mesh_global_to_local(mesh: Mesh, axes: Mapping[Any, int], aval: ShapedArray) -> ShapedArray:
    """The type of the part that this process holds of an array of type `aval`."""
    return untile_aval(mesh.local_mesh.shape, axes, tile_aval(mesh.shape, axes, aval))


@dataclass(frozen=True)
class NoSharding:
    """The dimension is whole everywhere."""


@dataclass(frozen=True)
class Chunked:
    """The dimension is cut into `prod(chunks)` parts, the first factor being the outermost."""

    chunks: tuple[int, ...]

    def __init__(self, chunks: Iterable[int]) -> None:
        object.__setattr__(self, "chunks", tuple(chunks))


@dataclass(frozen=True)
class Unstacked:
    """The dimension is taken apart into its `size` elements, and pieces do not have it."""

    size: int


@dataclass(frozen=True)
class ShardedAxis:
    """A dimension of the devices carries cut number `axis`, counted over all dimensions."""

    axis: int


@dataclass(frozen=True)
class Replicated:
    """A dimension of the devices holds `replicas` copies."""

    replicas: int


_WHOLE = NoSharding()


def _cuts(dim: object) -> tuple[int, ...]:
    """The factors by which one dimension of the array is cut."""
    if isinstance(dim, Chunked):
        return dim.chunks
    return (dim.size,) if isinstance(dim, Unstacked) else ()


@dataclass(frozen=True)
class ShardingSpec:
    """How an array is cut over a box of devices.

    Args:
        sharding: for each dimension of the array `NoSharding`, `Chunked` or `Unstacked`.
        mesh_mapping: for each dimension of the box `ShardedAxis` or `Replicated`.

    Raises:
        ValueError: a cut is carried by no dimension of the box, or by several.
    """

    sharding: tuple[Any, ...]
    mesh_mapping: tuple[Any, ...]

    def __init__(self, sharding: Iterable[Any], mesh_mapping: Iterable[Any]) -> None:
        object.__setattr__(self, "sharding", tuple(sharding))
        object.__setattr__(self, "mesh_mapping", tuple(mesh_mapping))
        carried = sorted(m.axis for m in self.mesh_mapping if isinstance(m, ShardedAxis))
        if carried != list(range(len(self._factors))):
            problem = "each cut must be carried by one dimension of the devices."
            got = f"{len(self._factors)} cut(s), of which {carried} are carried"
            error(ValueError, "ShardingSpec", problem, got=got)

    @property
    def _factors(self) -> tuple[int, ...]:
        return tuple(itertools.chain.from_iterable(map(_cuts, self.sharding)))

    @property
    def mesh_shape(self) -> tuple[int, ...]:
        """The shape of the box of devices."""
        factors = self._factors
        return tuple(
            factors[m.axis] if isinstance(m, ShardedAxis) else m.replicas for m in self.mesh_mapping
        )

    @property
    def unstacked_dims(self) -> tuple[int, ...]:
        """The dimensions that pieces do not have."""
        return tuple(d for d, dim in enumerate(self.sharding) if isinstance(dim, Unstacked))

    def tiling(self) -> Tiling:
        """Which part of each dimension each device holds, in row-major order of the box."""
        count = math.prod(self.mesh_shape)
        places = np.indices(self.mesh_shape).reshape(len(self.mesh_mapping), count)
        along = {
            m.axis: place
            for m, place in zip(self.mesh_mapping, places, strict=True)
            if isinstance(m, ShardedAxis)
        }
        coordinates = np.zeros((count, len(self.sharding)), np.int64)
        cut = itertools.count()
        for d, dim in enumerate(self.sharding):
            for size in _cuts(dim):
                coordinates[:, d] = coordinates[:, d] * size + along[next(cut)]
        return Tiling(tuple(math.prod(_cuts(dim)) for dim in self.sharding), coordinates)

    def indices(self, shape: Sequence[int]) -> np.ndarray[Any, Any]:
        """The index that each device's piece has in an array of this shape, in a box of objects.

        Raises:
            ValueError: the rank differs, or a dimension cannot be cut so.
        """
        sizes = self.piece_sizes(shape)
        tiling = self.tiling()
        found = np.empty(len(tiling.coordinates), object)
        for device, parts in enumerate(tiling.coordinates.tolist()):
            found[device] = tuple(
                _index(dim, part, size)
                for dim, part, size in zip(self.sharding, parts, sizes, strict=True)
            )
        return found.reshape(self.mesh_shape)

    def piece_sizes(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The sizes of pieces of an array of this shape; 1 for dimensions they do not have.

        Raises:
            ValueError: the rank differs, or a dimension cannot be cut so.
        """
        if len(shape) != len(self.sharding):
            got = f"shape {tuple(shape)}, {len(self.sharding)} dimension(s) in the spec"
            error(ValueError, "ShardingSpec", "the spec and the array differ in rank.", got=got)
        return tuple(map(_piece_size, range(len(shape)), shape, self.sharding))

    def sharding_proto(self) -> Any:
        """The same in XLA's terms.

        Raises:
            RuntimeError: a dimension is taken apart, for which XLA has no word.
        """
        if self.unstacked_dims:
            problem = "an unstacked dimension cannot be expressed in XLA's terms."
            expected = "dimensions that are Chunked or not sharded"
            error(RuntimeError, "ShardingSpec", problem, got=repr(self), expected=expected)
        return hlo.of_tiling(self.tiling())


def _index(dim: object, part: int, size: int) -> slice | int:
    if isinstance(dim, Unstacked):
        return part
    return slice(part * size, (part + 1) * size) if isinstance(dim, Chunked) else slice(None)


def _piece_size(d: int, size: int, dim: object) -> int:
    factor = math.prod(_cuts(dim))
    multiple = "a size of" if isinstance(dim, Unstacked) else "a multiple of"
    if size % factor or (isinstance(dim, Unstacked) and size != factor):
        problem = f"dimension {d} of size {size} cannot be cut as {dim} says."
        error(ValueError, "ShardingSpec", problem, expected=f"{multiple} {factor}")
    return size // factor


def spec_to_indices(shape: Sequence[int], spec: ShardingSpec) -> tuple[Any, ...]:
    """The index of each device's piece, in row-major order of the devices."""
    return tuple(spec.indices(shape).flat)


def make_sharding_spec(
    axis_sizes: Mapping[Any, int],
    mesh_axis_pos: Mapping[Any, int],
    num_dimensions: int,
    aval_axes: Mapping[Any, int],
) -> ShardingSpec:
    """The spec of an array whose dimensions named axes of a mesh cut.

    Args:
        axis_sizes: the sizes of the mesh's axes, in order.
        mesh_axis_pos: where each axis stands in the mesh.
        num_dimensions: the rank of the array.
        aval_axes: the dimension that each axis cuts; the first of several is the outermost.
    """
    mapping: list[Any] = [Replicated(size) for size in axis_sizes.values()]
    chunks: list[list[int]] = [[] for _ in range(num_dimensions)]
    by_dim = sorted(aval_axes.items(), key=lambda pair: pair[1])
    for cut, (name, dim) in enumerate(by_dim):
        chunks[dim].append(axis_sizes[name])
        mapping[mesh_axis_pos[name]] = ShardedAxis(cut)
    return ShardingSpec((Chunked(c) if c else _WHOLE for c in chunks), mapping)


def pmap_sharding_spec(
    nrep: int, axis_size: int, inner_shape: Sequence[int], map_axis: int | None
) -> ShardingSpec:
    """The spec of what `pmap` splits over `nrep` devices.

    Replica `k * r + j` holds slice `k`, where `r` is the number of replicas of each slice.

    Args:
        nrep: the number of devices.
        axis_size: the number of slices.
        inner_shape: the shape of one slice.
        map_axis: where the array has the dimension of slices; None if every device has it all.

    Raises:
        ValueError: the slices cannot have equally many devices.
    """
    copies, rest = divmod(nrep, axis_size)
    if rest:
        problem = "the number of replicas is no multiple of the number of slices."
        error(ValueError, "pmap_sharding_spec", problem, got=f"{nrep} replicas, {axis_size} slices")
    more = [Replicated(copies)] if copies > 1 else []
    dims: list[Any] = [_WHOLE] * len(inner_shape)
    if map_axis is None:
        return ShardingSpec(dims, [Replicated(axis_size), *more])
    dims.insert(map_axis, Unstacked(axis_size))
    return ShardingSpec(dims, [ShardedAxis(0), *more])


def create_pmap_sharding_spec(
    shape: Sequence[int], sharded_dim: int | None = 0, sharded_dim_size: int | None = None
) -> ShardingSpec:
    """The spec that gives each device one slice of an array along `sharded_dim`.

    Raises:
        ValueError: neither a dimension nor a size is given.
    """
    inner = list(shape)
    if sharded_dim is not None:
        size = inner.pop(sharded_dim)
        sharded_dim %= len(shape)
        sharded_dim_size = size if sharded_dim_size is None else sharded_dim_size
    if sharded_dim_size is None:
        problem = "a spec without a sharded dimension needs the number of devices."
        error(ValueError, "create_pmap_sharding_spec", problem, fix="give sharded_dim_size")
    return pmap_sharding_spec(sharded_dim_size, sharded_dim_size, inner, sharded_dim)


def mesh_sharding_specs(
    axis_sizes: Mapping[Any, int], axis_names: Sequence[Any], allow_uneven_axes: bool = False
) -> Callable[[Any, Any], ShardingSpec]:
    """A function from an aval, and the dimension each mesh axis cuts, to a spec.

    The function takes the dimensions as a mapping or as pairs, and raises `ValueError` where a
    dimension is not a multiple of an axis, or a name appears twice.
    """
    positions = {name: place for place, name in enumerate(axis_names)}
    sizes = {name: axis_sizes[name] for name in axis_names}

    def spec_of(aval: Any, aval_axes: Any) -> ShardingSpec:
        if aval is abstract_token:
            return ShardingSpec((), map(Replicated, sizes.values()))
        pairs = list(aval_axes.items() if isinstance(aval_axes, Mapping) else aval_axes)
        _check_names(pairs)
        if not allow_uneven_axes:
            _check_divisible(pairs, aval.shape, sizes)
        return make_sharding_spec(sizes, positions, len(aval.shape), dict(pairs))

    return spec_of


def _check_names(pairs: Sequence[tuple[Any, int]]) -> None:
    names = [name for name, _ in pairs]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        problem = f"a mesh axis cuts one dimension at most; named twice: {sorted(map(str, twice))}."
        error(ValueError, "mesh_sharding_specs", problem, got=str(list(pairs)))


def _check_divisible(
    pairs: Sequence[tuple[Any, int]], shape: Sequence[int], sizes: Mapping[Any, int]
) -> None:
    rest = list(shape)
    for name, dim in sorted(pairs, key=lambda pair: pair[1]):
        rest[dim], remainder = divmod(rest[dim], sizes[name])
        if remainder:
            error(
                ValueError,
                "mesh_sharding_specs",
                f"dimension {dim} of size {shape[dim]} is no multiple of axis {name!r}.",
                got=f"shape {tuple(shape)}, axis {name!r} of size {sizes[name]}, "
                f"remainder {remainder}",
                fix="pad the array, or allow_uneven_axes=True",
            )


def _create_pmap_sharding_spec(
    aval: ShapedArray, sharded_dim: int | None = 0, sharded_dim_size: int | None = None
) -> ShardingSpec:
    """The form of `create_pmap_sharding_spec` that takes an aval."""
    return create_pmap_sharding_spec(aval.shape, sharded_dim, sharded_dim_size)


def _pmap_sharding_spec(
    nrep: int, axis_size: int, npart: int, parts: None, sharded_aval: Any, map_axis: int | None
) -> ShardingSpec:
    """The form of `pmap_sharding_spec` that took parts of slices, of which there is one now."""
    if npart != 1 or parts is not None:
        problem = "slices are not cut any further."
        got = f"npart={npart}, parts={parts}"
        error(ValueError, "pmap_sharding_spec", problem, got=got, expected="npart=1, parts=None")
    return pmap_sharding_spec(nrep, axis_size, sharded_aval.shape, map_axis)


Groups = np.ndarray[Any, Any]


@source.boundaries("__init__", "reshape", "transpose", "replicate", "with_memory_kind")
class PositionalSharding(Sharding):
    """An array cut like a grid of devices: cell by cell, each tile lives on one group of them.

    The grid starts with a device in each cell; `replicate` unites cells, and all devices of a
    cell hold the same tile.  No axis has a name.

    Args:
        devices: the devices, in a box or a sequence.
        memory_kind: a kind of memory of the devices; None for their default.

    Source: mirrors jax.sharding.PositionalSharding, which JAX has since dropped.

    Raises:
        ValueError: the devices have no memory of that kind.

    Example:
        >>> grid = jax.sharding.PositionalSharding(jax.devices()).reshape(4, 2)
        >>> grid.shard_shape((8, 8)), grid.replicate(axis=1).shard_shape((8, 8))
        ((2, 4), (2, 8))
    """

    __slots__ = ("_devices", "_groups", "_memory_kind")

    def __init__(
        self, devices: Sequence[Any] | np.ndarray[Any, Any], *, memory_kind: str | None = None
    ) -> None:
        box = np.asarray(devices, dtype=object)
        groups = np.empty(box.size, object)
        groups[:] = [frozenset((place,)) for place in range(box.size)]
        self._devices = tuple(box.flat)
        self._groups = groups.reshape(box.shape)
        self._memory_kind = device_list(self._devices).special_memory_kind(memory_kind)

    @classmethod
    def of_tiling(
        cls, devices: Sequence[Any], tiling: Tiling, *, memory_kind: str | None = None
    ) -> PositionalSharding:
        """The grid that gives each device the tile that `tiling` gives it."""
        groups = np.empty(tiling.factors, object)
        for cell, group in zip(
            np.ndindex(*tiling.factors),
            tiling.devices_by_tile().reshape(groups.size, -1).tolist(),
            strict=True,
        ):
            groups[cell] = frozenset(group)
        return cls(devices, memory_kind=memory_kind)._with(groups)

    def _with(self, groups: Groups) -> PositionalSharding:
        made = PositionalSharding(self._devices, memory_kind=self._memory_kind)
        made._groups = groups
        return made

    @property
    def shape(self) -> tuple[int, ...]:
        """Into how many parts each dimension is cut."""
        return self._groups.shape

    @property
    def ndim(self) -> int:
        """The rank of the arrays that this cuts."""
        return self._groups.ndim

    def reshape(self, *shape: Any) -> PositionalSharding:
        """The same groups in a grid of another shape."""
        return self._with(self._groups.reshape(*shape))

    def transpose(self, *axes: Any) -> PositionalSharding:
        """The grid with its dimensions in another order."""
        return self._with(self._groups.transpose(*axes))

    T = property(transpose)

    def replicate(self, axis: int | None = None, keepdims: bool = True) -> PositionalSharding:
        """Unites the cells of each line along `axis`, or all: they hold the same tile."""
        axes = range(self.ndim) if axis is None else [range(self.ndim)[axis]]
        groups = self._groups
        for each in sorted(axes, reverse=True):
            united: Any = np.frompyfunc(frozenset.union, 2, 1).reduce(groups, axis=each)
            groups = np.expand_dims(united, each) if keepdims else np.asarray(united, object)
        return self._with(groups)

    @property
    def device_assignment(self) -> tuple[Any, ...]:
        return self._devices

    def check_rank(self, ndim: int) -> None:
        if ndim != self.ndim and not self.is_fully_replicated:
            problem = "the grid of devices and the array differ in rank."
            got = f"a grid of shape {self.shape} for an array of rank {ndim}"
            fix = f"reshape the sharding to {ndim} dimension(s)"
            error(ValueError, "PositionalSharding", problem, got=got, fix=fix)

    def tiling(self, ndim: int) -> Tiling:
        self.check_rank(ndim)
        if self.is_fully_replicated:
            return hlo.whole(ndim, len(self._devices))
        coordinates = np.zeros((len(self._devices), ndim), np.int64)
        for cell, group in np.ndenumerate(self._groups):
            coordinates[list(group)] = cell
        return Tiling(self.shape, coordinates)

    def with_memory_kind(self, kind: str | None) -> PositionalSharding:
        made = PositionalSharding(self._devices, memory_kind=kind)
        made._groups = self._groups
        return made

    @property
    def is_fully_replicated(self) -> bool:
        return self._groups.size == 1

    def _facts(self) -> tuple[Any, ...]:
        return self._devices, self._memory_kind, self.shape, tuple(self._groups.flat)

    def __repr__(self) -> str:
        names = np.empty(self._groups.size, object)
        names[:] = [self._cell_text(group) for group in self._groups.flat]
        grid = np.array2string(names.reshape(self.shape), separator=" ", formatter={"object": str})
        return f"PositionalSharding({grid}{self._memory_text()}, shape={self.shape})"

    def _cell_text(self, group: frozenset[int]) -> str:
        devices = [self._devices[place] for place in sorted(group)]
        platform = str(getattr(devices[0], "platform", "device")).upper()
        return f"{{{platform} {', '.join(str(getattr(d, 'id', d)) for d in devices)}}}"
