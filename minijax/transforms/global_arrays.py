"""Arrays over many devices and processes: made from pieces, compared, gathered.

Input: a shape, a sharding, and the pieces of this process's devices, or a function that gives them;
or each process's own value.  Output: one array over all devices, or NumPy arrays that are the same
everywhere.  All processes call the functions about values that they share, in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from minijax.core import dtypes, tree
from minijax.core.aval import Shape, ShapedArray, aval_of, canonicalize_shape
from minijax.core.errors import DeletedArrayError, error
from minijax.core.meshes import PartitionSpec
from minijax.core.trace import Tracer
from minijax.lax.shape import expand_dims
from minijax.runtime import agreement, client, in_flight, placement, transfer
from minijax.runtime.array import Array, is_array, physical_aval, wrap
from minijax.runtime.placement import Place
from minijax.sharding import contexts
from minijax.sharding.base import Sharding
from minijax.sharding.mesh import Mesh
from minijax.sharding.named import NamedSharding
from minijax.transforms.device_put import device_put
from minijax.transforms.jit.jit import jit

if TYPE_CHECKING:
    from minijax.core.native import PyTreeDef


def make_array_from_single_device_arrays(
    shape: object, sharding: Sharding, arrays: Sequence[Any], *, dtype: object = None
) -> Array:
    """One array of arrays on single devices, without a copy.

    Args:
        shape: the shape of the whole.
        sharding: where its pieces are.
        arrays: a list of one array for each device of this process that the sharding names, in
            any order.
        dtype: the dtype; needed where this process has none of the devices.

    Shapes:     arrays: T[sharding.shard_shape(shape)] -> T[shape].

    Raises:
        TypeError: `arrays` is not a list of arrays, or `sharding` is not a sharding.
        ValueError: their number, devices, shapes or dtypes are not those that the sharding needs.

    Example:
        >>> spread = jax.NamedSharding(jax.make_mesh((8,), ("x",)), jax.P("x"))
        >>> pieces = [jax.device_put(np.array([i]), d) for i, d in enumerate(jax.devices())]
        >>> jax.make_array_from_single_device_arrays((8,), spread, pieces)
        Array([0, 1, 2, 3, 4, 5, 6, 7], dtype=int32)
    """
    user = "make_array_from_single_device_arrays"
    dims = canonicalize_shape(shape, user)
    _check_sharding(user, sharding)
    if not isinstance(arrays, (list, tuple)):
        error(
            TypeError, user, "arrays must be a list.", got=f"arrays of type {type(arrays).__name__}"
        )
    _check_arrays(user, arrays)
    wanted = placement.local_places(sharding, dims)
    by_device = _by_device(user, wanted, arrays)
    pieces = [by_device[place.device] for place in wanted]
    aval = _common_aval(user, dims, sharding, pieces, dtype)
    target = placement.native(sharding, physical_aval(aval).ndim)
    if target.device is not None:
        return wrap(transfer.aliased(pieces[0].buffer, target), aval)
    pieces = _with_all_dims(pieces, sharding)
    with in_flight.memory_lock:
        buffers = [transfer.as_piece(piece, target.memory) for piece in pieces]
        buffer = placement.assemble(physical_aval(aval), target, buffers)
        placement.join(buffer, buffers)
    made = wrap(buffer, aval)
    for buffer, piece in zip(buffers, pieces, strict=True):
        placement.note_whole(buffer, made, piece)
    return made


def _check_sharding(user: str, sharding: object) -> None:
    if not isinstance(sharding, Sharding):
        problem = "the second argument must be a sharding."
        got = f"{sharding!r} of type {type(sharding).__name__}"
        expected = "a sharding on devices, such as NamedSharding(mesh, spec)"
        error(TypeError, user, problem, got=got, expected=expected)
    # Names what an abstract mesh lacks.
    len(sharding.device_assignment)


def _check_arrays(user: str, arrays: Sequence[Any]) -> None:
    for i, x in enumerate(arrays):
        if isinstance(x, Tracer) or not is_array(x):
            problem = f"arrays[{i}] is not an array on a device."
            fix = "minijax.device_put(x, device)"
            error(TypeError, user, problem, got=f"arrays[{i}] of type {type(x).__name__}", fix=fix)
        if x.is_deleted():
            error(DeletedArrayError, user, f"arrays[{i}] has been deleted.", got=str(x.aval))
        if len(x.devices()) != 1:
            problem = f"arrays[{i}] is not on a single device."
            fix = "give its pieces: [s.data for s in x.addressable_shards]"
            error(ValueError, user, problem, got=f"{x.aval} on {len(x.devices())} devices", fix=fix)


def _by_device(user: str, wanted: Sequence[Place], arrays: Sequence[Any]) -> dict[Any, Any]:
    if len(arrays) != len(wanted):
        error(
            ValueError,
            user,
            "one array is needed for each device of this process in the sharding.",
            got=f"{len(arrays)} arrays",
            expected=f"{len(wanted)} arrays",
            fix="[device_put(whole[i], d) for d, i in "
            "sharding.addressable_devices_indices_map(shape).items()]",
        )
    by_device = {next(iter(x.devices())): x for x in arrays}
    ids = [next(iter(x.devices())).id for x in arrays]
    if len(by_device) != len(arrays):
        error(ValueError, user, "two arrays are on one device.", got=f"device ids {ids}")
    devices = {place.device for place in wanted}
    if devices != set(by_device):
        problem = "the arrays are on other devices than the sharding."
        expected = f"device ids {sorted(d.id for d in devices)}"
        error(ValueError, user, problem, got=f"device ids {sorted(ids)}", expected=expected)
    return by_device


def _common_aval(
    user: str, dims: Shape, sharding: Sharding, pieces: Sequence[Any], dtype: object
) -> ShapedArray:
    """The type of the whole, of pieces that fit together."""
    if dtype is not None:
        dtype = dtypes.canonicalize_dtype(dtype)
    shard = sharding.shard_shape(dims)
    avals = [aval_of(piece) for piece in pieces]
    for place, aval in zip(placement.local_places(sharding, dims), avals, strict=True):
        if aval.shape != shard:
            problem = "a piece has another shape than the sharding gives it."
            got = f"{aval} for device {place.device.id}"
            expected = f"shape {shard}, for a whole of shape {dims} with {sharding}"
            fix = "give each device its own part: whole[index]"
            error(ValueError, user, problem, got=got, expected=expected, fix=fix)
        if aval.dtype != (avals[0].dtype if dtype is None else dtype):
            error(
                ValueError,
                user,
                "the pieces' dtypes differ." if dtype is None else "dtype is not the pieces'.",
                got=f"{aval}, and {avals[0].dtype if dtype is None else dtype} otherwise",
                expected="pieces of one dtype",
            )
    if not avals and dtype is None:
        problem = "without a piece in this process, the dtype must be told."
        error(ValueError, user, problem, got=str(sharding), fix="give dtype=")
    return ShapedArray(dims, avals[0].dtype if avals else dtype)


def make_array_from_callback(
    shape: object, sharding: Sharding, data_callback: Callable[[Any], Any], dtype: object = None
) -> Array:
    """An array whose pieces a function gives, asked about those of this process only.

    Args:
        shape: the shape of the whole.
        sharding: where the pieces are to be.
        data_callback: takes the index of a piece, a tuple of slices, and returns its elements as
            an array; it is called once for each part of the whole, however many devices hold it.
        dtype: the dtype; needed where this process has none of the devices.

    Raises:
        TypeError: `sharding` is not a sharding, or a piece is not an array.
        ValueError: a dimension cannot be cut into equal parts, or a piece is of another shape or
            dtype than the rest.

    Example:
        >>> data, spread = np.arange(16), jax.NamedSharding(jax.make_mesh((8,), ("x",)), jax.P("x"))
        >>> x = jax.make_array_from_callback((16,), spread, lambda index: data[index])
        >>> jax.typeof(x), x.addressable_shards[1].index
        (ShapedArray(int32[16@x]), (slice(2, 4, None),))
    """
    user = "make_array_from_callback"
    dims = canonicalize_shape(shape, user)
    _check_sharding(user, sharding)
    sharding.shard_shape(dims)
    parts: dict[Any, Any] = {}
    wanted = placement.local_places(sharding, dims)
    for place in wanted:
        if place.key not in parts:
            index = [
                part.start if d in sharding.unstacked_dims else part
                for d, part in enumerate(place.slices)
            ]
            parts[place.key] = _piece(data_callback(tuple(index)))
    return _assembled(user, dims, sharding, [parts[place.key] for place in wanted], dtype)


def _piece(given: object) -> Any:
    """What a callback has returned: an array, ours or NumPy's."""
    aval = aval_of(given)
    if isinstance(given, Tracer):
        given.concrete()
    if is_array(given):
        return given
    return np.asarray(given).astype(aval.dtype, copy=False)


def _assembled(
    user: str, dims: Shape, sharding: Sharding, pieces: Sequence[Any], dtype: object
) -> Array:
    """The array of pieces for each device of this process, wherever the pieces are."""
    aval = _common_aval(user, dims, sharding, pieces, dtype)
    pieces = _with_all_dims(pieces, sharding)
    physical = physical_aval(aval)
    target = placement.native(sharding, physical.ndim)
    if target.device is None and all(isinstance(piece, np.ndarray) for piece in pieces):
        return wrap(placement.put_pieces(pieces, physical, target), aval)
    buffers = [
        _copy_on(piece, place.device, target)
        for piece, place in zip(pieces, placement.local_places(sharding, dims), strict=True)
    ]
    return wrap(placement.assemble(physical, target, buffers), aval)


def _with_all_dims(pieces: Sequence[Any], sharding: Sharding) -> list[Any]:
    """The pieces with the dimensions that they lack, which they have in the buffer of the whole."""
    gone = sharding.unstacked_dims
    if not gone:
        return list(pieces)
    return [
        np.expand_dims(piece, gone) if isinstance(piece, np.ndarray) else expand_dims(piece, gone)
        for piece in pieces
    ]


def _copy_on(piece: Any, device: Any, target: Any) -> Any:
    """A buffer of its own on a device."""
    if isinstance(piece, np.ndarray):
        return placement.put_piece(piece, device, target)
    there = placement.piece_sharding(device, target.memory)
    found = transfer.moved(piece.buffer, there)
    return transfer.copied(found) if found is piece.buffer else found


def make_array_from_process_local_data(
    sharding: Any, local_data: object, global_shape: object = None
) -> Any:
    """Arrays over the devices of all processes, each of which brings its part of the data.

    Args:
        sharding: where the pieces are to be, or a `PartitionSpec` for the mesh in force.
        local_data: a tree of this process's parts: blocks next to one another, in order.
        global_shape: the shape of the wholes, or a tree of such; what is None in it follows from
            the shape of the part and how many parts the processes bring along that dimension.

    Raises:
        ValueError: the data is neither this process's part of the whole nor all of it.

    Example:
        >>> spread = jax.NamedSharding(jax.make_mesh((8,), ("x",)), jax.P("x"))
        >>> x = jax.make_array_from_process_local_data(spread, np.arange(16))
        >>> x.shape, x.addressable_shards[0].data
        ((16,), Array([0, 1], dtype=int32))
    """
    user = "make_array_from_process_local_data"
    if isinstance(sharding, PartitionSpec):
        sharding = contexts.resolve(sharding, user)
    _check_sharding(user, sharding)
    leaves, treedef = tree.flatten(local_data)
    shapes = tree.broadcast_prefix(global_shape, local_data, is_leaf=_is_shape)
    made = [_from_local(user, sharding, *pair) for pair in zip(leaves, shapes, strict=True)]
    return tree.unflatten(treedef, made)


def _is_shape(x: object) -> bool:
    return x is None or (isinstance(x, (tuple, list)) and all(_is_size(size) for size in x))


def _is_size(x: object) -> bool:
    return x is None or isinstance(x, (int, np.integer))


def _from_local(user: str, sharding: Sharding, data: Any, global_shape: object) -> Any:
    local = np.shape(data)
    if sharding.is_fully_addressable:
        if global_shape is not None and global_shape != local:
            problem = "a single process brings all of the data."
            got = {"global_shape": global_shape, "local_data.shape": local}
            error(ValueError, user, problem, got=got, fix="leave global_shape away")
        sharding.check_fits(local, lambda: user)
        return device_put(data, sharding)
    dims, indices = local_indices(sharding, local, global_shape)
    host = _piece(data)
    return _assembled(user, dims, sharding, [host[index] for index in indices], None)


def local_indices(
    sharding: Sharding, local: Shape, global_shape: Any
) -> tuple[Shape, list[tuple[slice, ...]]]:
    """The shape of a whole, and which part of this process's data each of its devices holds.

    Raises:
        ValueError: the data is neither this process's part of the whole nor all of it.
    """
    here = sharding.addressable_devices
    tiling = sharding.tiling(len(local))
    mine = [i for i, device in enumerate(sharding.device_assignment) if device in here]
    given = (None,) * len(local) if global_shape is None else tuple(global_shape)
    if len(given) != len(local):
        problem = "global_shape and the data differ in rank."
        got = {"global_shape": given, "local_data.shape": local}
        error(ValueError, "make_array_from_process_local_data", problem, got=got)
    held = tiling.coordinates[mine].T.tolist()
    facts = zip(local, given, tiling.factors, held, strict=True)
    dims = [_local_dimension(dim, *each) for dim, each in enumerate(facts)]
    columns = [slices for _, slices in dims]
    indices = [tuple(slices[i] for slices in columns) for i in range(len(mine))]
    return tuple(size for size, _ in dims), indices


def _local_dimension(
    dim: int, size: int, whole: int | None, factor: int, held: Sequence[int]
) -> tuple[int, list[slice]]:
    """The size of a dimension of the whole, and what each device holds of this process's data.

    Args:
        dim: its number.
        size: that of this process's data.
        whole: that of the whole, if the user has said so.
        factor: into how many parts the whole is cut.
        held: the number of the part that each device holds.
    """
    parts = sorted(set(held))
    total = size * factor // len(parts) if whole is None else whole
    piece = total // factor
    if piece * factor != total or size not in (total, piece * len(parts)):
        error(
            ValueError,
            "make_array_from_process_local_data",
            f"dimension {dim} of the data is neither this process's part nor the whole.",
            got=f"size {size}, of {total} in all, in {factor} parts",
            expected=f"{piece * len(parts)}, as this process holds {len(parts)} of the parts, "
            f"or {total}",
        )
    places = held if size == total else list(map(parts.index, held))
    return total, [slice(place * piece, (place + 1) * piece) for place in places]


def sync_global_devices(name: str) -> None:
    """Waits until all processes have come to this line.

    Args:
        name: the same in all processes; another one tells that they have lost each other.

    Raises:
        AssertionError: another process waits at another name.
        RuntimeError: a process does not come.

    Example:
        >>> from minijax.experimental import multihost_utils
        >>> multihost_utils.sync_global_devices("before saving")
    """
    assert_equal(np.frombuffer(name.encode(), np.uint8), f"sync_global_devices({name!r})")


def assert_equal(in_tree: object, fail_message: str = "") -> None:
    """Refuses values that differ between processes.

    Args:
        in_tree: a tree of arrays and numbers.
        fail_message: what the error says first.

    Raises:
        AssertionError: a leaf is another one in another process.

    Example:
        >>> from minijax.experimental import multihost_utils
        >>> multihost_utils.assert_equal({"steps": 3}, "the settings")
    """
    everywhere = _rows_sharding()
    for leaf in tree.leaves(in_tree):
        try:
            agreement.check_same("multihost_utils.assert_equal", np.asarray(leaf), everywhere)
        except ValueError as caught:
            error(
                AssertionError,
                "multihost_utils.assert_equal",
                f"{fail_message or 'the processes'}: they have different values.",
                got=str(caught).partition("\n")[2].strip().partition("\n")[0],
                expected="the same tree of values in all processes",
                cause=caught,
            )


def _rows_sharding() -> NamedSharding:
    """Over one device of each process, the first, in order."""
    firsts = {d.process_index: d for d in reversed(client.devices())}
    devices = np.array([firsts[process] for process in sorted(firsts)])
    return NamedSharding(Mesh(devices, "processes"), PartitionSpec("processes"))


def _stacked(value: np.ndarray[Any, Any]) -> Any:
    """One array with a row of each process."""
    sharding = _rows_sharding()
    rows = sharding.mesh.size
    return make_array_from_process_local_data(sharding, value[None], (rows, *value.shape))


def _everywhere(x: Array) -> np.ndarray[Any, Any]:
    """The elements of an array over the devices of all processes."""
    sharding: Any = x.sharding
    whole = NamedSharding(sharding.mesh, PartitionSpec())
    return np.asarray(jit(lambda x: x, out_shardings=whole)(x).addressable_data(0))


def process_allgather(in_tree: object, tiled: bool = False) -> Any:
    """What all processes have, in each of them, as NumPy arrays.

    Args:
        in_tree: a tree of values that each process has, or of arrays over all devices, of which
            the whole is made.
        tiled: whether values are put one after the other along the first dimension; otherwise
            along a new one.  Arrays over all devices need it.

    Shapes: T[s] -> T[processes, *s], or T[processes * n, ...] with `tiled`.

    Raises:
        ValueError: an array over all devices is to be stacked.

    Example:
        >>> from minijax.experimental import multihost_utils
        >>> multihost_utils.process_allgather(np.array([1, 2]))  # a single process
        array([[1, 2]])
    """

    def gathered(x: object) -> np.ndarray[Any, Any]:
        if is_array(x) and not x.is_fully_addressable:
            if not tiled:
                problem = "an array over all devices is one value, not one of each process."
                got = f"{x.aval} with {x.sharding}"
                fix = "tiled=True"
                error(ValueError, "multihost_utils.process_allgather", problem, got=got, fix=fix)
            return _everywhere(x)
        value = np.asarray(x)
        rows = value[None] if client.process_count() == 1 else _everywhere(_stacked(value))
        return rows.reshape(-1, *value.shape[1:]) if tiled and value.ndim else rows

    return tree.map(gathered, in_tree)


def broadcast_one_to_all(in_tree: PyTreeDef, is_source: bool | None = None) -> Any:
    """What one process has, in each of them, as NumPy arrays.

    Args:
        in_tree: a tree of values; those of other processes tell shapes and dtypes only.
        is_source: whether this process is the one; by default the first one is.

    Example:
        >>> from minijax.experimental import multihost_utils
        >>> multihost_utils.broadcast_one_to_all({"seed": np.array([7, 8])})
        {'seed': array([7, 8])}
    """
    if is_source is None:
        is_source = client.process_index() == 0

    def sent(x: object) -> np.ndarray[Any, Any]:
        value = np.asarray(x)
        if client.process_count() == 1:
            return value
        # Bytes add up to those of the source, whatever they mean.
        raw = np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8)
        rows = _everywhere(_stacked(raw if is_source else np.zeros_like(raw)))
        total = rows.sum(axis=0, dtype=np.uint8)
        return np.frombuffer(total.tobytes(), value.dtype).reshape(value.shape)

    return tree.map(sent, in_tree)


def host_local_array_to_global_array(
    local_inputs: object, global_mesh: Mesh, pspecs: object
) -> Any:
    """Arrays over the devices of all processes, of the parts that each process has.

    Args:
        local_inputs: a tree of arrays: this process's part of each.
        global_mesh: a mesh of devices of all processes.
        pspecs: how the whole arrays are split: a tree prefix of `PartitionSpec`.

    Raises:
        ValueError: a spec is None.

    Example:
        >>> from minijax.experimental import multihost_utils
        >>> mesh = jax.make_mesh((1,), ("x",))
        >>> multihost_utils.host_local_array_to_global_array(np.arange(2), mesh, jax.P("x"))
        Array([0, 1], dtype=int32)
    """
    user = "host_local_array_to_global_array"

    def whole(x: object, spec: PartitionSpec) -> Any:
        return make_array_from_process_local_data(NamedSharding(global_mesh, spec), np.asarray(x))

    return _with_specs(user, whole, local_inputs, pspecs)


def global_array_to_host_local_array(
    global_inputs: object, global_mesh: Mesh, pspecs: object
) -> Any:
    """The part that each process has of arrays over the devices of all processes.

    Args:
        global_inputs: a tree of arrays.
        global_mesh: a mesh of devices of all processes.
        pspecs: how the arrays are split: a tree prefix of `PartitionSpec`.

    Raises:
        ValueError: a spec is None.

    Example:
        >>> from minijax.experimental import multihost_utils
        >>> mesh = jax.make_mesh((1,), ("x",))
        >>> multihost_utils.global_array_to_host_local_array(jnp.arange(2), mesh, jax.P("x"))
        Array([0, 1], dtype=int32)
    """
    user = "global_array_to_host_local_array"
    local_mesh = global_mesh.local_mesh

    def part(x: object, spec: PartitionSpec) -> Array:
        sharding = NamedSharding(global_mesh, spec)
        placed = jit(lambda x: x, out_shardings=sharding)(x)
        pieces = [shard.data for shard in placed.addressable_shards]
        local = NamedSharding(local_mesh, spec)
        size = local.shard_shape(placed.shape)
        shape = tuple(
            piece * (whole // cut)
            for piece, whole, cut in zip(pieces[0].shape, placed.shape, size, strict=True)
        )
        return make_array_from_single_device_arrays(shape, local, pieces)

    return _with_specs(user, part, global_inputs, pspecs)


def _with_specs(user: str, function: Callable[..., Any], inputs: object, pspecs: object) -> Any:
    leaves, treedef = tree.flatten(inputs)
    specs = tree.broadcast_prefix(pspecs, inputs, _is_spec, user=f"multihost_utils.{user}")
    if any(spec is None for spec in specs):
        problem = "None is no spec."
        fix = "PartitionSpec() for arrays of which each device has all"
        error(ValueError, f"multihost_utils.{user}", problem, got=f"pspecs: {pspecs}", fix=fix)
    outs = [function(leaf, spec) for leaf, spec in zip(leaves, specs, strict=True)]
    return tree.unflatten(treedef, outs)


def _is_spec(x: object) -> bool:
    return x is None or isinstance(x, PartitionSpec)
