"""`Mesh`: devices in a box whose dimensions have names."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import numpy as np
from jaxlib import _jax

from minijax.core import meshes
from minijax.core.cache import Cache
from minijax.core.errors import message
from minijax.core.meshes import AbstractMesh, AxisType, MeshAxes
from minijax.sharding.devices import DeviceList, device_list

_meshes = Cache(
    "meshes",
    "meshes, each one object",
    key="devices, sizes, names, types of axes",
    owner="mesh",
)
_interned = _meshes.interned()
# Threads that make one mesh at a time must get one object, as meshes are compared by identity.
_lock = threading.Lock()

mesh_stack: Any = _jax.config.Config(
    "minijax_mesh_stack", (), include_in_jit_key=True, include_in_trace_context=True
)
"""The meshes of the `with mesh:` blocks around, the innermost last; thread-local."""


class Mesh(MeshAxes):
    """Devices in a box whose dimensions have names.

    Interned: the same devices, names and types give the same object.

    Args:
        devices: an array, or nested lists, of devices: of a client, or any hashable objects.
        axis_names: a name for each dimension.
        axis_types: one type for each axis, or one for all; Auto by default.

    Source: mirrors jax.sharding.Mesh.

    Raises:
        ValueError: numbers of dimensions, names or types differ, or a name appears twice.
        TypeError: a type is no `AxisType`.

    Example:
        >>> mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
        >>> mesh.shape["data"], mesh.devices[0, 1]
        (4, CpuDevice(id=1))
    """

    __slots__ = (
        "__weakref__",
        "abstract_mesh",
        "axis_names",
        "axis_sizes",
        "axis_types",
        "device_list",
        "devices",
        "flat_devices",
    )

    devices: np.ndarray[Any, Any]
    flat_devices: tuple[Any, ...]
    device_list: DeviceList
    abstract_mesh: AbstractMesh

    def __new__(cls, devices: Any, axis_names: Any, axis_types: Any = None) -> Mesh:
        box = _object_array(devices)
        names = meshes.canonical_names(axis_names, box.ndim, "Mesh")
        types = meshes.canonical_types(axis_types, names, "Mesh")
        # An empty box of no dimensions still has an element, which is None.
        flat = () if not names and box[()] is None else tuple(box.flat)
        key = flat, box.shape, names, types
        found = _interned.get(key)
        if found is not None:
            _meshes.hits += 1
        else:
            _meshes.misses += 1
            made = super().__new__(cls)
            box.flags.writeable = False
            made.devices, made.flat_devices = box, flat
            made.device_list = device_list(flat)
            made.axis_names, made.axis_sizes, made.axis_types = names, box.shape, types
            made.abstract_mesh = AbstractMesh(box.shape, names, types)
            with _lock:
                found = _interned.setdefault(key, made)
        return found

    @property
    def is_scalar(self) -> bool:
        """Whether the mesh is one device and no axes."""
        return not self.axis_names and not self.empty

    @property
    def size(self) -> int:
        """How many devices there are."""
        return len(self.flat_devices)

    @property
    def device_ids(self) -> np.ndarray[Any, Any]:
        """The numbers of the devices, in the same box."""
        ids = [d.id for d in self.flat_devices]
        return np.array(ids, np.int64).reshape(self.axis_sizes)

    @property
    def process_index(self) -> int:
        """The number of this process among those that share the devices."""
        client = getattr(self.flat_devices[0], "client", None) if self.flat_devices else None
        return 0 if client is None else int(client.process_index())

    @property
    def is_multi_process(self) -> bool:
        """Whether other processes hold some of the devices."""
        return len({getattr(d, "process_index", 0) for d in self.flat_devices}) > 1

    @property
    def local_devices(self) -> list[Any]:
        """The devices of this process, in order."""
        own = self.process_index
        return [d for d in self.flat_devices if getattr(d, "process_index", 0) == own]

    @property
    def local_mesh(self) -> Mesh:
        """The smallest box that holds this process's devices.

        Raises:
            ValueError: the box holds devices of other processes too.
        """
        if not self.is_multi_process:
            return self
        own = np.vectorize(lambda d: d.process_index == self.process_index, otypes=[bool])(
            self.devices
        )
        found = np.nonzero(own)
        box = tuple(slice(int(i.min()), int(i.max()) + 1) for i in found)
        if not own[box].all():
            raise ValueError(
                message(
                    "Mesh.local_mesh",
                    "the devices of this process do not fill a box of the mesh.",
                    got=str(self.device_ids),
                    fix="order the devices so that each process has a contiguous box",
                )
            )
        return Mesh(self.devices[box], self.axis_names, self.axis_types)

    def update(self, devices: Any = None, axis_names: Any = None, axis_types: Any = None) -> Mesh:
        """This mesh with some of its devices, names and types replaced."""
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    def __repr__(self) -> str:
        return (
            f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}, "
            f"axis_types={self.axis_types})"
        )

    def __enter__(self) -> Mesh:
        warnings.warn(
            "`with mesh:` is deprecated; use `with minijax.set_mesh(mesh):`",
            DeprecationWarning,
            stacklevel=2,
        )
        stack = mesh_stack.value
        self._check_axes_are_new(stack)
        mesh_stack.set_local((*stack, self))
        return self

    def __exit__(self, *_: object) -> None:
        mesh_stack.set_local(mesh_stack.value[:-1])

    def _check_axes_are_new(self, stack: tuple[Mesh, ...]) -> None:
        taken = {name for mesh in stack if mesh is not self for name in mesh.axis_names}
        again = [name for name in self.axis_names if name in taken]
        if again:
            raise ValueError(
                message(
                    "Mesh",
                    f"`with mesh:` redefines axes of a mesh around it: {again}.",
                    got=f"{self} inside {', '.join(map(str, stack))}",
                    fix="give the axes names of their own, or use set_mesh, which replaces",
                )
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self.devices, self.axis_names, self.axis_types)


def _unpickle(devices: Any, names: Any, types: Any) -> Mesh:
    return Mesh(devices, names, types)


def _object_array(devices: Any) -> np.ndarray[Any, Any]:
    if isinstance(devices, np.ndarray):
        return np.array(devices, dtype=object)
    if not isinstance(devices, (list, tuple)):
        box = np.empty((), dtype=object)
        box[()] = devices
        return box
    return np.array(devices, dtype=object)


__all__ = ["AxisType", "Mesh"]
