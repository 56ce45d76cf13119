"""Shardings as jaxlib's C++ sees them, and buffers that are put, copied and assembled by them.

Input: a sharding of a value of some rank.  Output: an object of C++, one for each placement and
rank, so that it is compared by identity; the public sharding is kept on it as an attribute.  Input:
NumPy arrays or buffers, and a sharding.  Output: C++ arrays placed so.

jaxlib imports JAX lazily for some calls.  Inside `without_jax` these calls find stand-ins, so that
JAX itself is never imported.
"""

from __future__ import annotations

import collections
import functools
import os
import sys
import threading
import types
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxlib import _jax, xla_client

from minijax.core import capabilities, dtypes, meshes, monitoring, system
from minijax.core.aval import AbstractValue, Shape, ShapedArray
from minijax.core.cache import Cache, cached
from minijax.core.native import delete
from minijax.runtime import client, in_flight
from minijax.sharding import hlo, rules
from minijax.sharding.base import Index, Layout, Sharding
from minijax.sharding.named import GSPMDSharding, NamedSharding, SingleDeviceSharding, named

SEMANTICS = xla_client.HostBufferSemantics
CopySemantics = xla_client.ArrayCopySemantics


class _Placement(_jax.GSPMDSharding):  # type: ignore[misc]
    """What C++ sees of a placement, and compares by identity.

    A class of its own, as jaxlib takes equal tilings of `GSPMDSharding`s for equal: results of
    one mesh would then be described in terms of another.

    Attributes:
        public: the description that users gave or get.
        canonical: the same for all descriptions that differ in notation only.
        hlo: the tiling, in XLA's terms.
        devices: the devices, in order.
        device: the device where there is one; None where there are several.
        memory: the kind of memory; None for the devices' default.
        of_piece: whether it is of pieces of other arrays.
        layout: how elements lie in memory; None for the usual order.
    """

    of_piece = False
    layout: Layout | None = None

    public: Any
    canonical: Any
    hlo: Any
    devices: tuple[Any, ...]
    device: Any
    memory: str | None

    # JAX puts others on the class of jaxlib.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def _to_xla_hlo_sharding(self, ndim: int) -> Any:
        return self.hlo

    @property
    def memory_kind(self) -> str | None:
        """The kind of memory, as C++ asks for it."""
        return self.memory


class MeshPlacement(_Placement):
    """What C++ sees of a placement on a mesh."""


class PiecePlacement(_Placement):
    """The sharding of a piece of a multi-device array, which lies on one device.

    It differs from the sharding of other arrays on that device, so jaxlib's C++ call path does not
    recognise it and never reuses the piece's memory for a result: the whole array needs it.
    """


class FormerPlacement(_Placement):
    """The sharding of a deleted array.

    The C++ call path has no compiled program for it, so calls with the array take the Python path,
    which raises the error about deleted arrays.
    """

    def _to_xla_hlo_sharding(self, ndim: int) -> Any:
        return hlo.REPLICATED


class EqualToAnyPlacement(FormerPlacement):
    """A sharding that compares equal to every other.

    jaxlib 0.11 and later exchange the memory of two arrays only if their shardings are equal.
    """

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = object.__hash__


# In bytes: pieces up to this size are copied faster than work on them is shared out.
_QUICKLY_COPIED = 1 << 16
# From this size on NumPy asks for large pages.
_LARGE = 1 << 22
# XLA takes memory as it is from addresses that this divides.
_ALIGNMENT = 64
_natives = Cache(
    "native shardings of devices",
    "shardings as C++ compares them, of arrays on one device",
    key="device, memory kind, whether it is a piece, layout",
    counted=False,
)
_on_device: dict[Any, Any] = _natives.table()
# As meshes are: a placement lives as long as an array or a program is placed so.
_on_mesh = Cache(
    "native shardings",
    "shardings as C++ compares them, of arrays over several devices",
    key="sharding, rank, layout",
    owner="arrays and programs placed so",
    counted=False,
).interned()
_lock = threading.Lock()


def native_sharding(
    device: _jax.Device,
    memory_kind: str | None = None,
    *,
    of_piece: bool = False,
    layout: Layout | None = None,
) -> Any:
    """The C++ sharding of whole arrays on one device."""
    key = (device, memory_kind, of_piece, layout)
    found = _on_device.get(key)
    if found is None:
        kind = PiecePlacement if of_piece or layout else _jax.GSPMDSharding
        made = kind(xla_client.DeviceList((device,)), hlo.REPLICATED, memory_kind=memory_kind)
        made.public = made.canonical = SingleDeviceSharding(device, memory_kind=memory_kind)
        made.hlo = hlo.REPLICATED
        made.devices = (device,)
        made.device = device
        made.memory = memory_kind
        made.of_piece = of_piece
        made.layout = layout
        found = _on_device.setdefault(key, made)
    return found


def piece_sharding(
    device: _jax.Device, memory_kind: str | None = None, layout: Layout | None = None
) -> Any:
    """The C++ sharding of pieces of arrays over several devices."""
    if memory_kind == device.default_memory().kind:
        memory_kind = None
    return native_sharding(device, memory_kind, of_piece=True, layout=layout)


def default_placement(ndim: int) -> tuple[Any, bool]:
    """Where values go that nobody places, as a C++ sharding, and whether they stay there.

    Under `set_mesh` that is every device of the mesh.
    """
    mesh = meshes.device_context.value
    if mesh is None:
        return native_sharding(client.default_device()), False
    spec = rules.unsharded(ndim if mesh.explicit_axes else 0)
    return native(named(mesh, spec), ndim), True


def on_all(devices: tuple[_jax.Device, ...], ndim: int) -> Any:
    """The C++ sharding of arrays that are whole on each of some devices."""
    if len(devices) == 1:
        return native_sharding(devices[0])
    return native(GSPMDSharding.get_replicated(devices), ndim)


def native(sharding: Sharding, ndim: int, layout: Layout | None = None) -> Any:
    """The C++ sharding of arrays of rank `ndim` that are placed, and lie in memory, so."""
    if layout is not None and layout.is_usual:
        layout = None
    if isinstance(sharding, SingleDeviceSharding):
        return native_sharding(sharding.device, sharding.special_memory_kind, layout=layout)
    key = (sharding, ndim, layout)
    found = _on_mesh.get(key)
    if found is None:
        made = _make(sharding, ndim)
        made.layout = layout
        with _lock:
            found = _on_mesh.setdefault(key, made)
    return found


def _make(sharding: Sharding, ndim: int) -> MeshPlacement:
    if sharding.unstacked_dims:
        # XLA has no word for them: in its arrays, pieces keep such dimensions, of size 1.
        tiling = hlo.of_tiling(sharding.tiling(ndim))
    else:
        tiling = sharding.to_hlo(ndim)
    devices = sharding.device_assignment
    made = MeshPlacement(native_devices(devices), tiling, memory_kind=sharding.special_memory_kind)
    made.public = sharding
    made.canonical = canonical(sharding, ndim)
    made.hlo = tiling
    made.devices = devices
    made.device = None
    made.memory = sharding.special_memory_kind
    made.of_piece = False
    return made


def former(place: Any) -> Any:
    """The C++ sharding of deleted arrays that were placed so, with memory that is gone."""
    found = vars(place).get("former")
    if found is None:
        found = _redescribed(place, FormerPlacement)
        found.gone = _put_scalar(place)
        # The memory, not the array: asked about an array without any, C++ may crash.
        delete(retyped(found.gone, found.gone._sharding))
        place.former = found
    return found


def _redescribed(place: Any, kind: type[FormerPlacement]) -> Any:
    """Returns a native sharding of class `kind` on one of the devices of `place`.

    It has the Python attributes of `place`.
    """
    made = kind(native_devices((_first_device(place),)), hlo.REPLICATED, memory_kind=None)
    made.__dict__.update(vars(place))
    return made


def _put_scalar(place: Any) -> Any:
    """Returns a new scalar array on the device, and in the memory, that `_redescribed` uses."""
    here = native_sharding(_first_device(place), place.memory)
    return put_host_value(np.zeros((), np.bool_), ShapedArray((), np.dtype(np.bool_)), here)


def _first_device(place: Any) -> Any:
    """Returns the device of this process with the lowest id."""
    return min(place.public.addressable_devices, key=lambda device: device.id)


def canonical(sharding: Sharding, ndim: int) -> Sharding:
    """The one of all notations of a placement that has an entry for each dimension."""
    if not isinstance(sharding, NamedSharding):
        return sharding
    # A value that is reduced lives where one that is whole does.
    spec = sharding.spec.padded(ndim).update(reduced=())
    return named(sharding.mesh, spec, sharding.special_memory_kind)


@cached("native device lists", key="devices", most=2048, emptied=True)
def native_devices(devices: tuple[Any, ...]) -> Any:
    """A list of devices as C++ compares it."""
    return xla_client.DeviceList(devices)


def typed(aval: AbstractValue, target: _jax.Sharding) -> AbstractValue:
    """The type of a value placed so: types show the part of a placement on Explicit axes."""
    public = target.public
    if isinstance(public, NamedSharding) and public.mesh.explicit_axes:
        return rules.typed_aval(aval, public).update(memory_kind=target.memory)
    if aval.split is None and aval.memory_kind == target.memory:
        return aval
    return aval.update(sharding=None, memory_kind=target.memory)


def layout_of(native_layout: Any) -> Layout:
    """A layout in C++ as users see it."""
    found = native_layout._xla_layout()
    return Layout(found.minor_to_major()[::-1], tuple(found.tiling()))


class Place(NamedTuple):
    """Where one piece of an array lives.

    Attributes:
        device: the device that holds it.
        slices: which part of the whole it is, by dimension; of the rank of the whole.
        key: the same for all pieces of equal elements: start and stop in each dimension, and the
            term.
        term: where devices hold terms of a sum, the number of this one's; 0 elsewhere.
        replica: how many devices before this one hold the same part.
        is_local: whether the device belongs to this process.
    """

    device: Any
    slices: Index
    key: tuple[Any, ...]
    term: int
    replica: int
    is_local: bool


def is_unreduced(sharding: Sharding) -> bool:
    """Whether what devices hold is still to be summed."""
    return isinstance(sharding, NamedSharding) and bool(sharding.spec.unreduced)


def is_readable(sharding: Sharding) -> bool:
    """Whether this process holds all elements of arrays that are placed so."""
    return sharding.is_fully_addressable or (
        sharding.is_fully_replicated and bool(sharding.addressable_devices)
    )


def whole_on(sharding: Sharding, ndim: int) -> Sharding:
    """The placement of whole arrays of rank `ndim` on each device of another placement."""
    if isinstance(sharding, NamedSharding):
        return sharding.with_spec(rules.unsharded(ndim))
    if isinstance(sharding, SingleDeviceSharding):
        return sharding
    return GSPMDSharding.get_replicated(sharding.device_assignment)


@cached("index tables", key="sharding, shape", most=1024, emptied=True)
def places(sharding: Sharding, shape: Shape) -> tuple[Place, ...]:
    """Where the pieces of an array live, in order of the devices."""
    seen: collections.Counter[Any] = collections.Counter()
    local = sharding.addressable_devices
    found = []
    facts = zip(sharding.device_assignment, sharding.indices(shape), _terms(sharding), strict=True)
    for device, index, term in facts:
        key = *map(_extent, index, shape), term
        slices = tuple(map(_slice, index))
        found.append(Place(device, slices, key, term[0], seen[key], device in local))
        seen[key] += 1
    return tuple(found)


def _terms(sharding: Any) -> list[tuple[int, int]]:
    """Which term of a sum each device holds, and of how many; 0 and 0 where it holds no term."""
    if not is_unreduced(sharding):
        return [(0, 0)] * sharding.num_devices
    mesh, names = sharding.mesh, sharding.spec.unreduced
    along = np.indices(mesh.axis_sizes)
    terms = np.zeros(mesh.axis_sizes, int)
    for i, name in enumerate(mesh.axis_names):
        if name in names:
            terms = terms * mesh.axis_sizes[i] + along[i]
    return [(term, terms.max()) for term in terms.flat]


def _slice(index: Any) -> slice:
    return index if isinstance(index, slice) else slice(index, index + 1)


def _extent(index: Any, size: int) -> tuple[int, int]:
    return index.indices(size)[:2] if isinstance(index, slice) else (index, index + 1)


def local_devices(place: Any) -> list[Any]:
    """The devices of this process among those of a native sharding, in order."""
    own = place.public.addressable_devices
    return [device for device in place.devices if device in own]


def local_places(sharding: Sharding, shape: Shape) -> list[Place]:
    """Where the pieces of an array live that belong to this process, in order of the devices."""
    return [place for place in places(sharding, shape) if place.is_local]


def put_host_value(
    x: Any, aval: AbstractValue, placement: Any, *, committed: Any = False, may_alias: Any = False
) -> Any:
    """Puts a NumPy array or scalar, already of the dtype of `aval`, where it shall live.

    The memory of the host is copied unless `may_alias` allows to take it: None does where nobody
    can write to it.
    """
    if placement.device is not None:
        x, semantics = _lent(x, placement.device, may_alias)
        return _put(aval, placement, [x], [placement.device], committed, semantics)
    value = np.asarray(x)
    here = local_places(placement.public, value.shape)
    # A value is the sum of itself and zeros.
    pieces = [np.asarray(value[place.slices]) for place in here]
    pieces = [np.zeros_like(x) if p.term else x for x, p in zip(pieces, here, strict=True)]
    return put_pieces(pieces, aval, placement)


def _lent(x: object, device: _jax.Device, may_alias: bool | None) -> tuple[Any, Any]:
    """What C++ reads for an array on one device, and whether it may keep that memory."""
    host = np.asarray(x) if may_alias or _is_large(x) else None
    if host is None or not _may_be_taken(host, device):
        return x, SEMANTICS.IMMUTABLE_ONLY_DURING_CALL
    wanted = _is_frozen(host) if may_alias is None else may_alias
    if wanted and host.flags.c_contiguous and host.ctypes.data % _ALIGNMENT == 0:
        return host, SEMANTICS.ZERO_COPY
    return _copies([host])[0], SEMANTICS.ZERO_COPY


def _is_large(x: object) -> bool:
    """Whether NumPy copies an array faster than XLA, which turns columns into rows faster."""
    return isinstance(x, np.ndarray) and x.nbytes >= _LARGE and x.strides[-1] == min(x.strides)


def _may_be_taken(x: Any, device: _jax.Device) -> bool:
    """Whether a device can have an array's memory as it is, if that is aligned."""
    return device.platform == "cpu" and dtypes.bit_width(x.dtype) >= 8


def _is_frozen(x: Any) -> bool:
    """Whether nobody can write to the memory of an array."""
    while isinstance(x, np.ndarray):
        if x.flags.writeable or x.flags.owndata:
            return not x.flags.writeable
        x = x.base
    try:
        return memoryview(x).readonly
    except TypeError:
        return False


# The one that tells `in_flight` of threads takes its place later on; those here start no programs.
_start: Any = threading.Thread.start


def _copies(pieces: Sequence[Any]) -> list[Any]:
    """The elements of arrays of one size in memory that XLA takes as it is; it is one block.

    NumPy asks the system for large pages, and XLA does not: its own copies take twice the time.
    There are as many threads as processors.
    """
    size = -(-pieces[0].nbytes // _ALIGNMENT) * _ALIGNMENT
    raw = np.empty(size * len(pieces) + _ALIGNMENT, np.uint8)
    first_byte = -raw.ctypes.data % _ALIGNMENT
    blocks = [raw[first_byte + i * size :][: x.nbytes] for i, x in enumerate(pieces)]
    made = [block.view(x.dtype).reshape(x.shape) for x, block in zip(pieces, blocks, strict=True)]
    count = min(system.cores(), len(pieces))

    def copy(first: int) -> None:
        for to, x in zip(made[first::count], pieces[first::count], strict=True):
            np.copyto(to, x)

    others = [threading.Thread(target=copy, args=[i], daemon=True) for i in range(1, count)]
    for thread in others:
        _start(thread)
    copy(0)
    for thread in others:
        thread.join()
    return made


def put_pieces(pieces: Sequence[Any], aval: AbstractValue, placement: _jax.Sharding) -> Any:
    """An array over several devices of NumPy arrays, one for each device of this process."""
    devices = [place.device for place in local_places(placement.public, aval.shape)]
    is_small = not pieces or pieces[0].nbytes <= _QUICKLY_COPIED
    is_replicated = placement.public.is_fully_replicated
    if not (is_small and is_replicated) and len({x.ctypes.data for x in pieces}) == len(pieces):
        if is_small or not _is_large(pieces[0]) or not _may_be_taken(pieces[0], devices[0]):
            return _put(aval, placement, pieces, devices, True)
        return _put(aval, placement, _copies(pieces), devices, True, SEMANTICS.ZERO_COPY)
    # C++ reads the same host memory for all devices, or for one, but not for some.
    if is_replicated:
        return _put(aval, placement, pieces, devices, True)
    if is_small:
        return _put(aval, placement, [piece.copy() for piece in pieces], devices, True)
    return assemble(
        aval,
        placement,
        [put_piece(x, device, placement) for x, device in zip(pieces, devices, strict=True)],
    )


def put_piece(piece: _jax.Array, device: _jax.Device, placement: _jax.Sharding) -> Any:
    """A NumPy array on one of the devices of a placement, for `assemble`."""
    there = piece_sharding(device, placement.memory)
    return _put(ShapedArray(piece.shape, piece.dtype), there, [piece], [device], True)


def _put(
    aval: AbstractValue,
    placement: _jax.Sharding,
    pieces: Sequence[Any],
    devices: list[Any],
    committed: bool,
    semantics: object = SEMANTICS.IMMUTABLE_ONLY_DURING_CALL,
) -> Any:
    return _jax.batched_device_put(
        typed(aval, placement),
        placement,
        pieces,
        devices,
        committed=committed,
        force_copy=False,
        host_buffer_semantics=semantics,
        enable_x64=True,
    )


def copy_buffer(buffer: _jax.Array, placement: _jax.Sharding) -> Any:
    """A buffer copied to other devices of the same client, or the same, cut in the same way."""
    return copy_buffers([buffer], [placement])[0]


def copy_buffers(buffers: Sequence[Any], placements: Sequence[Any]) -> list[Any]:
    """Buffers copied to other devices of the same client, each cut as it was."""
    in_flight.check_not_forked()
    monitoring.transfers["copied between devices"] += len(buffers)
    with in_flight.memory_lock:
        in_flight.check_alive(*buffers)
        return in_flight.surfacing(
            _jax.batched_copy_array_to_devices_with_sharding,
            list(buffers),
            [native_devices(placement.devices) for placement in placements],
            list(placements),
            [CopySemantics.ALWAYS_COPY] * len(buffers),
        )


def assemble(
    aval: AbstractValue, placement: _jax.Sharding, pieces: Sequence[Any], *, committed: bool = True
) -> Any:
    """One buffer of those of single devices, in order of the devices."""
    aval = typed(aval, placement)
    return _jax.ArrayImpl(aval, placement, list(pieces), committed=committed, _skip_checks=True)


def retyped(buffer: _jax.Array, target: _jax.Sharding) -> Any:
    """The same memory, described as `target` says."""
    return buffer._rewrap_with_aval_and_sharding(typed(buffer.aval, target), target)


def join(buffer: _jax.Array, pieces: Sequence[Any]) -> None:
    """Notes that an array over several devices consists of pieces that others may have too.

    Whoever makes an array of pieces looks at them, and joins them, with `memory_lock` held.
    """
    for piece in pieces:
        _holders(piece)[id(buffer)] = buffer
    buffer.parts = pieces


# Whether multi-device arrays share memory with arrays that have no `PiecePlacement`.
_unmarked_pieces = types.SimpleNamespace(exist=False)


def protect_from_donation(buffer: Any, memory_kind: str | None) -> None:
    """Prevents donation of `buffer`'s memory, which a multi-device array is about to share.

    If jaxlib can replace a sharding in place, `buffer` gets a `PiecePlacement`, with which calls
    take the Python path. Otherwise all later calls of programs with donated arguments take the
    Python path. The caller must hold `memory_lock`.
    """
    source = buffer._sharding
    if source.of_piece:
        return
    if can_replace_sharding():
        there = piece_sharding(source.device, memory_kind)
        buffer._replace_with(assemble(buffer.aval, there, [buffer], committed=buffer._committed))
    elif not _unmarked_pieces.exist:
        _unmarked_pieces.exist = True
        in_flight.ask_python_again()


def may_donate_in_cpp() -> bool:
    """Returns whether jaxlib's C++ call path may reuse a donated argument's memory."""
    return not _unmarked_pieces.exist


def join_fate(buffer: _jax.Array, other: object) -> None:
    """Notes that two buffers on one device are of the same memory."""
    buffer.holders = _holders(other)


def _holders(piece: _jax.Array) -> Any:
    """The arrays over several devices that a buffer on one device is part of."""
    if not hasattr(piece, "holders"):
        # By number, as C++ arrays have no hash.
        piece.holders = weakref.WeakValueDictionary()
    return piece.holders


def is_shared(buffer: _jax.Array) -> bool:
    """Whether an array over several devices would miss the memory of a buffer."""
    place = buffer._sharding
    if place.device is not None:
        return place.of_piece or len(getattr(buffer, "holders", ())) > 0
    return any(len(_holders(piece)) > 1 for piece in getattr(buffer, "parts", ()))


def note_whole(piece: _jax.Array, whole: object, shard: object) -> None:
    """Notes the array that a piece is part of, and one that shows the piece alone."""
    piece.whole = weakref.ref(whole)
    piece.shards = *(s for s in getattr(piece, "shards", ()) if s() is not None), weakref.ref(shard)


def whole_of(buffer: _jax.Array) -> Any:
    """The array that a buffer is part of, where it is a piece and the array still there."""
    found = getattr(buffer, "whole", None)
    return None if found is None else found()


def release(buffer: Any) -> None:
    """Deletes an array. Memory that other arrays share stays allocated for them.

    The caller must hold `memory_lock`.
    """
    if type(buffer._sharding) is FormerPlacement:
        return
    for piece in getattr(buffer, "parts", ()):
        _holders(piece).pop(id(buffer), None)
    if not can_replace_sharding():
        _release_memory(buffer)
        return
    there = former(buffer._sharding)

    def gone() -> Any:
        return assemble(buffer.aval, there, [there.gone], committed=buffer._committed)

    in_flight.keep_for_readers(buffer, gone)
    vars(buffer).clear()
    buffer._replace_with(gone())


def _release_memory(buffer: Any) -> None:
    """Deletes an array whose sharding jaxlib cannot replace (0.11 and later).

    These versions check on their C++ call path that each argument has memory, and raise, so the
    array needs no `FormerPlacement`.
    """
    if not buffer.is_deleted():
        in_flight.keep_for_readers(buffer, lambda: _substitute(buffer))
        substitute = _substitute(buffer)
        buffer._replace_with(substitute)
        # Both arrays now have the substitute's memory.
        delete(substitute)
    vars(buffer).clear()


def _substitute(buffer: Any) -> Any:
    """Returns an array of `buffer`'s type that has only a scalar's memory, to exchange for it."""
    there = _redescribed(buffer._sharding, EqualToAnyPlacement)
    scalar = _put_scalar(buffer._sharding)
    return assemble(buffer.aval, there, [scalar], committed=buffer._committed)


@functools.cache
def can_replace_sharding() -> bool:
    """Returns whether jaxlib can replace the sharding of an array in place."""
    here = native_sharding(client.cpu_client().local_devices()[0])
    scalar = _put_scalar(here)
    other = assemble(scalar.aval, _redescribed(here, FormerPlacement), [scalar])
    return capabilities.can_replace_sharding(scalar, other)


class _WithoutJax:
    """Answers jaxlib's lazy imports of JAX, so that JAX is never imported behind our back."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._modules = {
            "jax": types.ModuleType("jax"),
            "jax.core": types.ModuleType("jax.core"),
            "jax._src.sharding_impls": types.ModuleType("jax._src.sharding_impls"),
        }
        vars(self._modules["jax.core"])["ShapedArray"] = self._type_of_piece
        vars(self._modules["jax._src.sharding_impls"])["make_single_device_sharding"] = (
            lambda device, memory_kind=None: piece_sharding(device, memory_kind)
        )
        self._depth = 0
        self._installed = False
        self._thread: int | None = None

    def _type_of_piece(self, *facts: Any) -> Any:
        """What C++ calls from now on for pieces of any array: the type, of JAX for JAX's."""
        others = sys.modules.get("jax.core")
        if others is None or self._thread == threading.get_ident():
            return ShapedArray(*facts)
        return others.ShapedArray(*facts)

    def __enter__(self) -> None:
        self.lock.acquire()
        self._depth += 1
        self._thread = threading.get_ident()
        if self._depth == 1 and "jax" not in sys.modules:
            sys.modules.update(self._modules)
            self._installed = True

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        self._thread = self._thread if self._depth else None
        if self._depth == 0 and self._installed:
            for name in self._modules:
                sys.modules.pop(name, None)
            self._installed = False
        self.lock.release()


without_jax = _WithoutJax()

# No other thread has them when a process forks: it would have them in the child, too, for ever.
# The last one is taken first, as everywhere.
for _each in (without_jax.lock, in_flight.memory_lock):
    os.register_at_fork(
        before=_each.acquire, after_in_parent=_each.release, after_in_child=_each.release
    )
