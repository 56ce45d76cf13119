"""Values that processes share: compared, gathered, sent to all, or made one array.

Input: each process's own value.  Output: NumPy arrays that are the same everywhere, or one array
over the devices of all processes.  All processes call these functions, in the same order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core import tree
from minijax.core.errors import error
from minijax.core.specs import PartitionSpec
from minijax.runtime import agreement, client
from minijax.runtime.array import Array
from minijax.sharding.mesh import Mesh
from minijax.sharding.named import NamedSharding
from minijax.transforms.global_arrays import (
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
)
from minijax.transforms.jit import jit


def sync_global_devices(name: str) -> None:
    """Waits until all processes have come to this line.

    Args:
        name: the same in all processes; another one tells that they have lost each other.

    Source: mirrors jax.experimental.multihost_utils.sync_global_devices (0.10).

    Raises:
        AssertionError: another process waits at another name.
        RuntimeError: a process does not come.

    Example:
        >>> from minijax.experimental import multihost_utils
        >>> multihost_utils.sync_global_devices("before saving")
    """
    assert_equal(np.frombuffer(name.encode(), np.uint8), f"sync_global_devices({name!r})")


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Refuses values that differ between processes.

    Args:
        in_tree: a tree of arrays and numbers.
        fail_message: what the error says first.

    Source: mirrors jax.experimental.multihost_utils.assert_equal (0.10).

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


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """What all processes have, in each of them, as NumPy arrays.

    Args:
        in_tree: a tree of values that each process has, or of arrays over all devices, of which
            the whole is made.
        tiled: whether values are put one after the other along the first dimension; otherwise
            along a new one.  Arrays over all devices need it.

    Shapes: T[s] -> T[processes, *s], or T[processes * n, ...] with `tiled`.
    Source: mirrors jax.experimental.multihost_utils.process_allgather (0.10).

    Raises:
        ValueError: an array over all devices is to be stacked.

    Example:
        >>> from minijax.experimental import multihost_utils
        >>> multihost_utils.process_allgather(np.array([1, 2]))  # a single process
        array([[1, 2]])
    """

    def gathered(x: Any) -> np.ndarray[Any, Any]:
        if type.__instancecheck__(Array, x) and not x.is_fully_addressable:
            if not tiled:
                error(
                    ValueError,
                    "multihost_utils.process_allgather",
                    "an array over all devices is one value, not one of each process.",
                    got=f"{x.aval} with {x.sharding}",
                    fix="tiled=True",
                )
            return _everywhere(x)
        value = np.asarray(x)
        rows = value[None] if client.process_count() == 1 else _everywhere(_stacked(value))
        return rows.reshape(-1, *value.shape[1:]) if tiled and value.ndim else rows

    return tree.map(gathered, in_tree)


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """What one process has, in each of them, as NumPy arrays.

    Args:
        in_tree: a tree of values; those of other processes tell shapes and dtypes only.
        is_source: whether this process is the one; by default the first one is.

    Source: mirrors jax.experimental.multihost_utils.broadcast_one_to_all (0.10).

    Example:
        >>> from minijax.experimental import multihost_utils
        >>> multihost_utils.broadcast_one_to_all({"seed": np.array([7, 8])})
        {'seed': array([7, 8])}
    """
    if is_source is None:
        is_source = client.process_index() == 0

    def sent(x: Any) -> np.ndarray[Any, Any]:
        value = np.asarray(x)
        if client.process_count() == 1:
            return value
        # Bytes add up to those of the source, whatever they mean.
        raw = np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8)
        rows = _everywhere(_stacked(raw if is_source else np.zeros_like(raw)))
        total = rows.sum(axis=0, dtype=np.uint8)
        return np.frombuffer(total.tobytes(), value.dtype).reshape(value.shape)

    return tree.map(sent, in_tree)


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """Arrays over the devices of all processes, of the parts that each process has.

    Args:
        local_inputs: a tree of arrays: this process's part of each.
        global_mesh: a mesh of devices of all processes.
        pspecs: how the whole arrays are split: a tree prefix of `PartitionSpec`.

    Source: mirrors jax.experimental.multihost_utils.host_local_array_to_global_array (0.10).

    Raises:
        ValueError: a spec is None.

    Example:
        >>> from minijax.experimental import multihost_utils
        >>> mesh = jax.make_mesh((1,), ("x",))
        >>> multihost_utils.host_local_array_to_global_array(np.arange(2), mesh, jax.P("x"))
        Array([0, 1], dtype=int32)
    """
    user = "host_local_array_to_global_array"

    def whole(x: Any, spec: PartitionSpec) -> Any:
        return make_array_from_process_local_data(NamedSharding(global_mesh, spec), np.asarray(x))

    return _with_specs(user, whole, local_inputs, pspecs)


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """The part that each process has of arrays over the devices of all processes.

    Args:
        global_inputs: a tree of arrays.
        global_mesh: a mesh of devices of all processes.
        pspecs: how the arrays are split: a tree prefix of `PartitionSpec`.

    Source: mirrors jax.experimental.multihost_utils.global_array_to_host_local_array (0.10).

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

    def part(x: Any, spec: PartitionSpec) -> Array:
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


def _with_specs(user: str, function: Any, inputs: Any, pspecs: Any) -> Any:
    leaves, treedef = tree.flatten(inputs)
    specs = tree.broadcast_prefix(pspecs, inputs, _is_spec, user=f"multihost_utils.{user}")
    if any(spec is None for spec in specs):
        error(
            ValueError,
            f"multihost_utils.{user}",
            "None is no spec.",
            got=f"pspecs: {pspecs}",
            fix="PartitionSpec() for arrays of which each device has all",
        )
    outs = [function(leaf, spec) for leaf, spec in zip(leaves, specs, strict=True)]
    return tree.unflatten(treedef, outs)


def _is_spec(x: Any) -> bool:
    return x is None or isinstance(x, PartitionSpec)
