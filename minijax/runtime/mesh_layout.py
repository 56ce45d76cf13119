"""Which device goes where in a mesh.

Input: sizes of axes, and devices or the default platform's.  Output: boxes of devices, and meshes
of them.  Hosts and GPUs have no shape of their own, so neighbours in the list are neighbours in
the innermost axis.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core.errors import error
from minijax.core.meshes import AxisType
from minijax.runtime import client
from minijax.sharding.mesh import Mesh

Devices = np.ndarray[Any, Any]


def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: Any,
    axis_types: Any = None,
    *,
    devices: Sequence[Any] | None = None,
) -> Mesh:
    """A mesh of as many devices as it needs, the first ones of the list.

    Args:
        axis_shapes: the sizes of the axes.
        axis_names: a name for each.
        axis_types: a type for each; Explicit by default.
        devices: the devices to choose from; all of the default platform if absent.

    Raises:
        ValueError: there are too few devices, a size is not an integer, or the devices belong to
            several slices.

    Example:
        >>> jax.make_mesh((4, 2), ("data", "model")).shape["data"]
        4
        >>> jax.make_mesh((4, 4), ("data", "model"))
        Traceback (most recent call last):
        ValueError: ...
    """
    sizes = _sizes(axis_shapes, "make_mesh")
    found = list(client.devices() if devices is None else devices)
    needed = math.prod(sizes)
    if needed > len(found):
        problem = "there are too few devices."
        got = f"{len(found)} devices for axes of sizes {sizes}"
        fix = "on hosts, minijax.cpu_devices(n) gives n of them"
        error(ValueError, "make_mesh", problem, got=got, expected=f"at least {needed}", fix=fix)
    chosen = found[:needed]
    if len({getattr(d, "slice_index", 0) for d in chosen}) > 1:
        fix = "experimental.mesh_utils.create_hybrid_device_mesh"
        error(ValueError, "make_mesh", "the devices belong to several slices.", fix=fix)
    names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
    types = (AxisType.Explicit,) * len(names) if axis_types is None else axis_types
    return Mesh(create_device_mesh(sizes, chosen), names, types)


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> Devices:
    """Devices in a box of shape `mesh_shape`, all of them used.

    Args:
        mesh_shape: the sizes of the axes.
        devices: those of the default platform if absent.
        contiguous_submeshes: accepted; the boxes are contiguous anyway.
        allow_split_physical_axes: accepted; no device here has physical axes.

    Raises:
        ValueError: there are more devices than places, or fewer.

    Example:
        >>> devices = jax.experimental.mesh_utils.create_device_mesh((4, 2))
        >>> devices.shape, jax.sharding.Mesh(devices, ("data", "model")).size
        ((4, 2), 8)
    """
    sizes = _sizes(mesh_shape, "create_device_mesh")
    found = list(client.devices() if devices is None else devices)
    _check_count("create_device_mesh", "devices", len(found), "mesh_shape", sizes)
    if found and found[0].platform != "cpu":
        found.sort(key=operator.attrgetter("id"))
    return _box(found, sizes)


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> Devices:
    """A box of boxes: fast links within each inner box, slower ones between these.

    Args:
        mesh_shape: the shape of the inner boxes, one for each granule.
        dcn_mesh_shape: how many granules there are along each axis.
        devices: those of the default platform if absent.
        process_is_granule: whether a granule is a process; a slice otherwise.
        should_sort_granules_by_key: whether granules go by number, not by first appearance.
        allow_split_physical_axes: accepted; no device here has physical axes.

    Raises:
        ValueError: the devices have no slices, or numbers of granules or devices do not fit.

    Example:
        >>> from minijax.experimental.mesh_utils import create_hybrid_device_mesh
        >>> create_hybrid_device_mesh((8, 1), (1, 1), process_is_granule=True).shape
        (8, 1)
    """
    key = "process_index" if process_is_granule else "slice_index"
    found = list(client.devices() if devices is None else devices)
    granules: dict[int, list[Any]] = {}
    for device in found:
        if not hasattr(device, key):
            problem = f"the devices have no {key}."
            fix = "process_is_granule=True, which groups devices by process"
            error(ValueError, "create_hybrid_device_mesh", problem, got=str(device), fix=fix)
        granules.setdefault(getattr(device, key), []).append(device)
    outer = _sizes(dcn_mesh_shape, "create_hybrid_device_mesh")
    _check_count("create_hybrid_device_mesh", "granules", len(granules), "dcn_mesh_shape", outer)
    keys = sorted(granules) if should_sort_granules_by_key else list(granules)
    boxes = np.empty(len(keys), object)
    for at, granule in enumerate(keys):
        boxes[at] = create_device_mesh(mesh_shape, granules[granule])
    return np.asarray(np.block(boxes.reshape(outer).tolist()), object)


def _box(devices: Sequence[Any], sizes: tuple[int, ...]) -> Devices:
    box = np.empty(len(devices), object)
    box[:] = devices
    return box.reshape(sizes)


def _sizes(shape: Any, user: str) -> tuple[int, ...]:
    try:
        return tuple(map(operator.index, shape))
    except TypeError:
        if isinstance(shape, Sequence):
            problem = "the sizes of the axes must be integers."
            error(ValueError, user, problem, got=repr(shape), cause=None)
        problem = "needs a sequence of sizes."
        error(TypeError, user, problem, got=repr(shape), fix="(8,) for one axis", cause=None)


def _check_count(user: str, what: str, count: int, name: str, sizes: tuple[int, ...]) -> None:
    if count != math.prod(sizes):
        problem = f"the number of {what} differs from the size of {name}."
        expected = f"{math.prod(sizes)} {what}"
        error(ValueError, user, problem, got=f"{count} {what}, {name} {sizes}", expected=expected)
