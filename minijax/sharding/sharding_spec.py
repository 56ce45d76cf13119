"""`ShardingSpec`: how arrays are cut, in the words of the time of `pmap`.

A spec says for each dimension of an array how it is cut, and for each dimension of a box of
devices which of these cuts it carries.  Plain data on plain numbers: devices come in elsewhere.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax.core.aval import abstract_token
from minijax.core.errors import error
from minijax.sharding import hlo
from minijax.sharding.tiling import Tiling


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


def _cuts(dim: Any) -> tuple[int, ...]:
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
            error(
                ValueError,
                "ShardingSpec",
                "each cut must be carried by one dimension of the devices.",
                got=f"{len(self._factors)} cut(s), of which {carried} are carried",
            )

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
            error(
                ValueError,
                "ShardingSpec",
                "the spec and the array differ in rank.",
                got=f"shape {tuple(shape)}, {len(self.sharding)} dimension(s) in the spec",
            )
        return tuple(map(_piece_size, range(len(shape)), shape, self.sharding))

    def sharding_proto(self) -> Any:
        """The same in XLA's terms.

        Raises:
            RuntimeError: a dimension is taken apart, for which XLA has no word.
        """
        if self.unstacked_dims:
            error(
                RuntimeError,
                "ShardingSpec",
                "an unstacked dimension cannot be expressed in XLA's terms.",
                got=repr(self),
                expected="dimensions that are Chunked or not sharded",
            )
        return hlo.of_tiling(self.tiling())


def _index(dim: Any, part: int, size: int) -> slice | int:
    if isinstance(dim, Unstacked):
        return part
    return slice(part * size, (part + 1) * size) if isinstance(dim, Chunked) else slice(None)


def _piece_size(d: int, size: int, dim: Any) -> int:
    factor = math.prod(_cuts(dim))
    multiple = "a size of" if isinstance(dim, Unstacked) else "a multiple of"
    if size % factor or (isinstance(dim, Unstacked) and size != factor):
        error(
            ValueError,
            "ShardingSpec",
            f"dimension {d} of size {size} cannot be cut as {dim} says.",
            expected=f"{multiple} {factor}",
        )
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
        error(
            ValueError,
            "pmap_sharding_spec",
            "the number of replicas is no multiple of the number of slices.",
            got=f"{nrep} replicas, {axis_size} slices",
        )
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
        error(
            ValueError,
            "create_pmap_sharding_spec",
            "a spec without a sharded dimension needs the number of devices.",
            fix="give sharded_dim_size",
        )
    return pmap_sharding_spec(sharded_dim_size, sharded_dim_size, inner, sharded_dim)


def mesh_sharding_specs(
    axis_sizes: Mapping[Any, int], axis_names: Sequence[Any], allow_uneven_axes: bool = False
) -> Callable[[Any, Any], ShardingSpec]:
    """A function from an aval, and the dimension each mesh axis cuts, to a spec.

    The function takes the dimensions as a mapping or as pairs, and raises `ValueError` where a
    dimension is no multiple of an axis, or a name appears twice.
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
        error(
            ValueError,
            "mesh_sharding_specs",
            f"a mesh axis cuts one dimension at most; named twice: {sorted(map(str, twice))}.",
            got=str(list(pairs)),
        )


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
    aval: Any, sharded_dim: int | None = 0, sharded_dim_size: int | None = None
) -> ShardingSpec:
    """The form of `create_pmap_sharding_spec` that takes an aval."""
    return create_pmap_sharding_spec(aval.shape, sharded_dim, sharded_dim_size)


def _pmap_sharding_spec(
    nrep: int, axis_size: int, npart: int, parts: None, sharded_aval: Any, map_axis: int | None
) -> ShardingSpec:
    """The form of `pmap_sharding_spec` that took parts of slices, of which there is one now."""
    if npart != 1 or parts is not None:
        error(
            ValueError,
            "pmap_sharding_spec",
            "slices are not cut any further.",
            got=f"npart={npart}, parts={parts}",
            expected="npart=1, parts=None",
        )
    return pmap_sharding_spec(nrep, axis_size, sharded_aval.shape, map_axis)
