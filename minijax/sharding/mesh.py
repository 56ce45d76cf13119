"""`Mesh`: devices, or the cores of one device, in an array whose axes have names.

A `DeviceList` is what shardings over the same devices in the same order have in common, found out
once for each list.  Devices are those of a client, or any hashable objects: meshes of mocks are as
good as others until something is placed on them.

A `TensorCoreMesh` names the cores of one device, which run a program side by side.  A host has
none, so they are simulated: `experimental/cores/core_map.py` runs programs there.
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxlib import _jax

from minijax.core import config, meshes, source
from minijax.core.cache import Cache, cached
from minijax.core.errors import error, warn
from minijax.core.meshes import AbstractMesh, AxisType, MeshAxes
from minijax.core.sequences import ByValue

__all__ = ["AxisType", "Mesh"]


class DeviceList:
    """Devices in order.  `device_list` gives the same object for the same devices."""

    def __init__(self, devices: Sequence[Any]) -> None:
        self._devices = tuple(devices)
        self._hash = hash(self._devices)

    def __len__(self) -> int:
        return len(self._devices)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._devices)

    def __getitem__(self, index: Any) -> Any:
        return self._devices[index]

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, DeviceList)
            and self._hash == other._hash
            and self._devices == other._devices
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"DeviceList{self._devices}"

    def __reduce__(self) -> tuple[Any, ...]:
        return device_list, (self._devices,)

    @functools.cached_property
    def addressable_device_list(self) -> DeviceList:
        """The devices of this process among them."""
        own = tuple(filter(is_local, self._devices))
        return self if len(own) == len(self._devices) else device_list(own)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices belong to this process."""
        return self.addressable_device_list is self

    @functools.cached_property
    def process_indices(self) -> frozenset[int]:
        """The numbers of the processes that hold the devices."""
        return frozenset(getattr(device, "process_index", 0) for device in self._devices)

    @functools.cached_property
    def default_memory_kind(self) -> str | None:
        """The kind of memory that arrays live in by default; None if the devices do not tell."""
        device = self._typical
        return device.default_memory().kind if hasattr(device, "default_memory") else None

    @functools.cached_property
    def memory_kinds(self) -> tuple[str, ...]:
        """The kinds of memory that the devices have."""
        device = self._typical
        if not hasattr(device, "addressable_memories"):
            return ()
        return tuple(memory.kind for memory in device.addressable_memories())

    @property
    def _typical(self) -> Any:
        """A device of this process, as others cannot be asked about their memory."""
        return next(iter(self.addressable_device_list), None)

    def special_memory_kind(self, kind: str | None) -> str | None:
        """`kind`, or None where it is the default.

        Raises:
            ValueError: the devices have no such memory; the text lists the kinds they have.
        """
        if kind is None or kind == self.default_memory_kind:
            return None
        if self.memory_kinds:
            check_memory_kind(kind, self.memory_kinds, f"{self._typical.platform.upper()} devices")
        return kind


@cached("device lists", key="devices", most=2048, emptied=True)
def device_list(devices: tuple[Any, ...]) -> DeviceList:
    """The list of some devices, one object; it is the same while it is remembered."""
    return DeviceList(devices)


def is_local(device: _jax.Device) -> bool:
    """Whether this process can reach a device; mocks count as reachable."""
    client = getattr(device, "client", None)
    return client is None or device.process_index == client.process_index()


def check_memory_kind(kind: str, kinds: Sequence[str], owner: str) -> None:
    """Refuses a kind of memory that `owner` does not have.

    Raises:
        ValueError: the text lists the kinds it has.
    """
    if kind not in kinds:
        problem = f"there is no memory of kind {kind!r}."
        error(ValueError, "sharding", problem, got=owner, expected="one of " + ", ".join(kinds))


class TensorCore(NamedTuple):
    """One core of a device, by its number."""

    id: int


class TensorCoreMesh(ByValue):
    """The cores of one device, along a named axis.  Made by `create_tensorcore_mesh`.

    Attributes:
        devices: the cores, an array of one dimension.
        axis_names: the name of that dimension.
    """

    __slots__ = ("axis_names", "devices")

    def __init__(self, devices: Sequence[TensorCore], axis_names: Sequence[str]) -> None:
        # NumPy would take the cores, which are tuples, for rows of numbers.
        cores = np.empty(len(devices), object)
        cores[:] = list(devices)
        self.devices = cores
        self.axis_names = tuple(axis_names)

    @property
    def shape(self) -> OrderedDict[str, int]:
        """The number of cores, by the name of the axis."""
        return OrderedDict(zip(self.axis_names, self.devices.shape, strict=True))

    def _facts(self) -> tuple[Any, ...]:
        return (tuple(self.devices), self.axis_names)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name!r}: {size}" for name, size in self.shape.items())
        return f"TensorCoreMesh({sizes})"


def create_tensorcore_mesh(
    axis_name: str, devices: Sequence[Any] | None = None, num_cores: int | None = None
) -> TensorCoreMesh:
    """A mesh of the cores of one device, which are simulated.

    Args:
        axis_name: what the cores' axis is called.
        devices: devices whose cores to take; all have as many as `num_simulated_cores` says.
        num_cores: how many cores; by default the setting `num_simulated_cores`, which is 1 until
            it is set.

    Raises:
        ValueError: both `devices` and `num_cores` are given, or there would be no core.

    Example:
        >>> from minijax.experimental.pallas import tpu as pltpu
        >>> pltpu.create_tensorcore_mesh("core", num_cores=2)
        TensorCoreMesh('core': 2)
    """
    if devices is not None and num_cores is not None:
        problem = "devices and num_cores cannot both be given."
        got = {"devices": devices, "num_cores": num_cores}
        error(ValueError, "create_tensorcore_mesh", problem, got=got, fix="leave one of them away")
    count = config.num_simulated_cores.value if num_cores is None else num_cores
    if count < 1:
        error(ValueError, "create_tensorcore_mesh", "a mesh has at least one core.", got=str(count))
    return TensorCoreMesh([TensorCore(i) for i in range(count)], [axis_name])


_meshes = Cache(
    "meshes", "meshes, each one object", key="devices, sizes, names, types of axes", owner="mesh"
)
_interned = _meshes.interned()
# Threads that make one mesh at a time must get one object, as meshes are compared by identity.
_lock = threading.Lock()

mesh_stack: Any = _jax.config.Config(
    "minijax_mesh_stack", (), include_in_jit_key=True, include_in_trace_context=True
)
"""The meshes of the `with mesh:` blocks around, the innermost last; thread-local."""


@source.boundaries("__new__", "update", "__enter__")
class Mesh(MeshAxes, config.Context):
    """Devices in a box whose dimensions have names.

    Interned: the same devices, names and types give the same object.

    Args:
        devices: an array, or nested lists, of devices: of a client, or any hashable objects.
        axis_names: a name for each dimension.
        axis_types: one type for each axis, or one for all; Auto by default.

    Raises:
        ValueError: numbers of dimensions, names or types differ, or a name appears twice.
        TypeError: a type is not an `AxisType`.

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

    def __new__(
        cls, devices: np.ndarray[Any, Any], axis_names: object, axis_types: object = None
    ) -> Mesh:
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
            problem = "the devices of this process do not fill a box of the mesh."
            fix = "order the devices so that each process has a contiguous box"
            error(ValueError, "Mesh.local_mesh", problem, got=str(self.device_ids), fix=fix)
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
        fix = "with minijax.set_mesh(mesh): ..."
        if config.disallow_mesh_context_manager.value:
            error(RuntimeError, "Mesh", "disallow_mesh_context_manager is True.", fix=fix)
        warn(DeprecationWarning, "Mesh", "`with mesh:` is deprecated.", fix=fix)
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
            problem = f"`with mesh:` redefines axes of a mesh around it: {again}."
            got = f"{self} inside {', '.join(map(str, stack))}"
            fix = "give the axes names of their own, or use set_mesh, which replaces"
            error(ValueError, "Mesh", problem, got=got, fix=fix)

    def __reduce__(self) -> tuple[Any, ...]:
        return Mesh, (self.devices, self.axis_names, self.axis_types)


def _object_array(devices: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if not isinstance(devices, (np.ndarray, list, tuple)):
        box = np.empty((), dtype=object)
        box[()] = devices
        return box
    return np.array(devices, dtype=object)
