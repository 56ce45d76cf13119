"""`Array`: the concrete arrays that users hold.  Step 8 of a call.

An `Array` is one of jaxlib's C++ arrays, a buffer: jaxlib's class carries the methods of the class
`Array`, so that its call path takes arrays and makes them without a second object.  An array of an
extended dtype and a token are objects around a buffer, nodes with one child in the dispatch
registry; in users' trees they are leaves.

Arrays may have memory in common.  C++ runs programs on several devices without a look at what it
is given, and the process dies where memory is missing.  Hence memory in which an array over several
devices has a part is not given to programs that would overwrite it while another array has it too.

Deleting puts memory that is gone in the place of the array's, and leaves freeing its own to whoever
has it last: another array, a thread that is just reading it, or a library that it was exported to.
C++ could free it at once, but does not look whether somebody is about to read.
"""

from __future__ import annotations

import gc
import operator
from collections.abc import Iterator
from typing import Any, NoReturn, TypeGuard

import numpy as np
from jaxlib import _jax

from minijax.core import deferral, dtypes, native, operators, source, tree, tree_registry
from minijax.core.aval import (
    AbstractValue,
    ShapedArray,
    Typed,
    abstract_token,
    aval_handlers,
    aval_of,
)
from minijax.core.dtypes import DType
from minijax.core.errors import error
from minijax.core.native import Buffer, Device
from minijax.core.operators import Value
from minijax.core.refs import AbstractRef
from minijax.core.trace import Tracer
from minijax.runtime import client, in_flight, placement, watch
from minijax.runtime.placement import without_jax
from minijax.sharding.base import Format, Layout, Sharding


def is_array(x: Any) -> TypeGuard[Array]:
    """Whether a value is an `Array`, and no tracer."""
    kind = type(x)
    return (kind is Buffer and type(x.aval) is ShapedArray) or kind is ExtendedArray


def committed_sharding(x: Any) -> Any:
    """Returns the native sharding of an array that is committed to its devices; else None."""
    return x.buffer._sharding if is_array(x) and x.buffer._committed else None


def like(buffer: Any) -> Any:
    """Another array of the same memory, placed in the same way."""
    found = pieces_of(buffer)
    return placement.assemble(buffer.aval, buffer._sharding, found, committed=buffer._committed)


def handed_over(x: Array) -> Array:
    """A new array that has the memory of `x`, which is deleted."""
    with in_flight.memory_lock:
        buffer = x.buffer
        in_flight.check_alive(buffer)
        made = like(buffer)
        notes = dict(vars(buffer))
        placement.release(buffer)
        vars(made).update(notes)
        if "parts" in notes:
            placement.join(made, made.parts)
        return rewrapped(made, x)


class _ArrayType(type):
    """Makes tracers instances of `Array`, as users' checks expect."""

    def __instancecheck__(cls, value: object) -> bool:
        if cls is not Array:
            return type.__instancecheck__(cls, value)
        if isinstance(value, Tracer):
            return type(value.aval) is not AbstractRef
        return is_array(value)

    def __subclasscheck__(cls, kind: type) -> bool:
        return type.__subclasscheck__(cls, kind) or (cls is Array and kind is Buffer)


@source.boundaries("__bool__", "__int__", "__float__", "__complex__", "__index__")
class _Convertible(Typed, operators.ArrayOperators):
    """How an array becomes a Python number."""

    __slots__ = ()

    buffer: Any
    _value: Any

    # Those of C++ look for JAX, to describe what they give, and import it where it is installed.
    @property
    def _arrays(self) -> list[Any]:
        return pieces_of(self.buffer)

    @property
    def __cuda_array_interface__(self) -> Any:
        with without_jax:
            return native.cuda_array_interface(self.buffer)

    def __bool__(self) -> bool:
        if self.aval.size != 1:
            problem = "only an array of one element is true or false."
            fix = "x.any() or x.all(); x.size > 0 tells whether there are elements"
            if source.user_operation() == "and":
                fix = "& and | in place of and, or and chained comparisons: (0 < x) & (x < 1)"
            error(ValueError, "bool", problem, got=str(self.aval), fix=fix)
        return bool(self._value)

    def __int__(self) -> int:
        return int(self._scalar("int"))

    def __float__(self) -> float:
        return float(self._scalar("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        if self.ndim or not dtypes.issubdtype(self.dtype, np.integer):
            problem = "only integer scalar arrays can be used as a Python index."
            error(TypeError, "index", problem, got=str(self.aval))
        return int(self._value)

    def _scalar(self, kind: str) -> Any:
        if self.ndim:
            problem = f"only scalar arrays can become a Python {kind}."
            fix = "index the array first, or use x.item() or x.astype"
            error(TypeError, kind, problem, got=str(self.aval), fix=fix)
        return self._value


@source.boundaries(
    "__array__",
    "__len__",
    "__iter__",
    "item",
    "tolist",
    "tobytes",
    "__format__",
    "__repr__",
    "block_until_ready",
    "is_ready",
    "on_device_size_in_bytes",
    "unsafe_buffer_pointer",
    "addressable_data",
    "__dlpack__",
    "__reduce__",
    "copy_to_host_async",
)
class Array(_Convertible, metaclass=_ArrayType):
    """An array on a device.

    Source:     mirrors jax.Array; made by functions, not by calling the class.

    Example:
        >>> x = jnp.array([[1, 2, 3], [4, 5, 6]])
        >>> x.shape, x.ndim, x.size, x.dtype
        ((2, 3), 2, 6, dtype('int32'))
        >>> isinstance(x, jax.Array)
        True
    """

    __slots__ = ("__weakref__",)
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    @property
    def buffer(self) -> Any:
        """The C++ array that holds the elements."""
        return self

    @property
    def sharding(self) -> Sharding:
        """Where the array lives."""
        return self.buffer._sharding.public

    @property
    def format(self) -> Format:
        """How the array lies in memory, and where."""
        layout = self.buffer._sharding.layout or Layout(range(self.buffer.aval.ndim), ())
        return Format(layout, self.sharding)

    @property
    def device(self) -> Device | Sharding:
        """The device that holds the array; its sharding where there are several."""
        return self.buffer._sharding.device or self.buffer._sharding.public

    def devices(self) -> set[Device]:
        """All devices that hold a piece.

        Example:
            >>> len(jnp.arange(3).devices())
            1
        """
        return set(self.buffer._sharding.devices)

    @property
    def committed(self) -> bool:
        """Whether the user has placed the array; computations follow such arrays.

        Example:
            >>> x = jnp.arange(3)
            >>> x.committed, jax.device_put(x, jax.devices()[0]).committed
            (False, True)
        """
        return self.buffer._committed

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process can reach every piece."""
        return self.buffer._sharding.public.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds the whole array."""
        sharding = self.buffer._sharding
        return sharding.device is not None or sharding.public.is_fully_replicated

    def concrete(self) -> Any:
        """The value itself; tracers have the same method."""
        return self

    @property
    def _value(self) -> np.ndarray[Any, Any]:
        return to_numpy(self.buffer)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        value = self._value
        if dtype is not None and dtype != value.dtype:
            return value.astype(dtype)
        return value.copy() if copy else value

    def __len__(self) -> int:
        return len(self.aval)

    def __iter__(self) -> Iterator[Array]:
        if self.ndim == 0:
            error(TypeError, "iter", "a scalar array has no elements.", got=str(self.aval))
        return (self[i] for i in range(self.shape[0])) if self.aval.split is None else _rows(self)

    def item(self, *args: int) -> Any:
        """One element as a Python scalar: the only one, or that at the given index.

        Example:
            >>> jnp.array([[1, 2], [3, 4]]).item(1, 0)
            3
        """
        return self._value.item(*args)

    def tolist(self) -> Any:
        """The elements as nested Python lists.

        Example:
            >>> jnp.array([[1, 2], [3, 4]]).tolist()
            [[1, 2], [3, 4]]
        """
        return self._value.tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        """The elements' bytes in the given order."""
        return self._value.tobytes(order)

    def __format__(self, spec: str) -> str:
        if self.ndim == 0:
            return format(self._value[()], spec)
        # NumPy refuses formats of whole arrays by a TypeError.
        return format(self._value, spec) if spec else str(self)

    def __repr__(self) -> str:
        if self.is_deleted():
            return f"Array(deleted, {self.aval.str_short()})"
        sharding = self.sharding
        if placement.is_unreduced(sharding) or not placement.is_readable(sharding):
            return f"Array(shape={self.shape}, dtype={self.dtype.name}, sharding={sharding})"
        extras = f", dtype={self.dtype.name}" + (", weak_type=True" if self.weak_type else "")
        prefix = "Array("
        if self.size == 0:
            return f"{prefix}[], shape={self.shape}{extras})"
        body = np.array2string(self._value, separator=", ", prefix=prefix, suffix=",")
        newline = "\n" + " " * len(prefix)
        last = len(body.rsplit("\n", 1)[-1])
        gap = "," + newline if last + len(extras) + len(prefix) > 80 and self.ndim else ", "
        return f"{prefix}{body}{gap}{extras[2:]})"

    def __str__(self) -> str:
        where = self.sharding
        is_here = not self.is_deleted() and placement.is_readable(where)
        return str(self._value) if is_here and not placement.is_unreduced(where) else repr(self)

    _repr_html_ = deferral.shown

    def block_until_ready(self) -> Array:
        """Waits until the computation of the array is done, and returns it.

        Raises:
            Exception: a Python function that the computation calls has failed with it.
            RuntimeError: the array was deleted or donated.
        """
        buffer = self.buffer
        in_flight.check_alive(buffer)
        in_flight.wait(buffer)
        return self

    def is_ready(self) -> bool:
        """Whether the computation of the array is done."""
        return in_flight.surfacing(native.is_ready, self.buffer)

    def delete(self) -> None:
        """Frees the memory; using the array afterwards is an error.

        An array that lacks a piece is deleted too, and so are the pieces of an array.  Memory that
        several arrays, or arrays and other libraries, have in common stays until the last of them
        is gone.

        Example:
            >>> x = jnp.arange(3)
            >>> x.delete()
            >>> x
            Array(deleted, i32[3])
        """
        with in_flight.memory_lock:
            buffer = self.buffer
            gone = [self, placement.whole_of(buffer)]
            for piece in () if placement.is_shared(buffer) else getattr(buffer, "parts", ()):
                gone += [shard() for shard in getattr(piece, "shards", ())]
            for x in gone:
                if x is not None:
                    placement.release(x.buffer)

    def is_deleted(self) -> bool:
        """Whether the memory was freed, by `delete` or by donation."""
        return self.buffer.is_deleted()

    def copy_to_host_async(self) -> None:
        """Starts copying to the host, so that a later conversion to NumPy waits less."""
        buffer = self.buffer
        in_flight.check_alive(buffer)
        for piece in pieces_of(buffer):
            with without_jax:
                in_flight.surfacing(piece._copy_single_device_array_to_host_async)

    def on_device_size_in_bytes(self) -> int:
        """Bytes of device memory."""
        in_flight.check_alive(self.buffer)
        with without_jax:
            return in_flight.surfacing(native.on_device_size_in_bytes, self.buffer)

    def unsafe_buffer_pointer(self) -> int:
        """The address of the memory.

        Raises:
            RuntimeError: the array lives on several devices.
        """
        if self.buffer._sharding.device is None:
            _refuse_pieces(RuntimeError, "unsafe_buffer_pointer", self)
        with without_jax:
            return in_flight.surfacing(native.unsafe_buffer_pointer, self.buffer)

    @property
    def addressable_shards(self) -> list[Shard]:
        """The pieces of the array on this process's devices.

        Example:
            >>> mesh = jax.make_mesh((2,), ("rows",))
            >>> x = jax.device_put(jnp.arange(4), jax.NamedSharding(mesh, jax.P("rows")))
            >>> [piece.data.tolist() for piece in x.addressable_shards]
            [[0, 1], [2, 3]]
        """
        sharding = self.buffer._sharding
        if sharding.device is not None and self.is_fully_addressable and not self.is_deleted():
            return [Shard(sharding.device, (slice(None),) * self.ndim, 0, self)]
        return shards_of(self)

    @property
    def global_shards(self) -> list[Shard]:
        """The pieces of the array on all devices; without data on those of other processes."""
        if self.is_fully_addressable:
            return self.addressable_shards
        return shards_of(self, of_other_processes=True)

    def addressable_data(self, index: int) -> Array:
        """The piece on the device of this number among this process's devices."""
        piece: Array = self.addressable_shards[index].data
        return piece

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack_device(self)

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: Any = None,
        dl_device: object = None,
        copy: Any = None,
    ) -> Any:
        return to_dlpack(self, stream, dl_device, copy)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self._value, self.weak_type)

    def __copy__(self) -> Array:
        return self.copy()

    def __deepcopy__(self, _memo: object) -> Array:
        return self.copy()


@source.boundaries("__bool__")
class ExtendedArray(Array):
    """An array of an extended dtype, such as random keys: its buffer holds what XLA computes with.

    The physical dimensions are the last ones of the buffer.
    """

    __slots__ = ("buffer", "extended_dtype")

    def __init__(self, buffer: Any, extended_dtype: Any) -> None:
        self.buffer = buffer  # type: ignore[misc]
        self.extended_dtype = extended_dtype

    @property
    def aval(self) -> Any:  # type: ignore[override]  # made from the buffer's: an attribute elsewhere
        physical = self.buffer.aval
        for _ in self.extended_dtype.physical_shape:
            physical = physical.without_dim(physical.ndim - 1)
        return physical.update(dtype=self.extended_dtype)

    @property
    def _value(self) -> Any:
        problem = f"arrays of dtype {self.dtype} have no NumPy form."
        fix = "minijax.random.key_data(key) gives the underlying integers"
        error(TypeError, "numpy.asarray", problem, fix=fix)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        if self.is_deleted() or not placement.is_readable(self.sharding):
            return super().__repr__()
        return f"Array({self.shape}, dtype={self.dtype}) overlaying:\n{to_numpy(self.buffer)}"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle_extended, (to_numpy(self.buffer), self.extended_dtype)


class Shard:
    """One piece of an array: its device, its place in the whole, and its data.

    Source:     mirrors the elements of jax.Array.addressable_shards (0.10).

    Example:
        >>> spread = jax.NamedSharding(jax.make_mesh((8,), ("x",)), jax.P("x"))
        >>> piece = jax.device_put(jnp.arange(16), spread).addressable_shards[1]
        >>> piece.device, piece.index, piece.data
        (CpuDevice(id=1), (slice(2, 4, None),), Array([2, 3], dtype=int32))
    """

    __slots__ = ("data", "device", "index", "replica_id")

    def __init__(
        self, device: Device, index: tuple[slice, ...], replica_id: int, data: Any
    ) -> None:
        self.device = device
        self.index = index
        self.replica_id = replica_id
        self.data: Array = data

    def __repr__(self) -> str:
        return (
            f"Shard(device={self.device!r}, index={self.index}, "
            f"replica_id={self.replica_id}, data={self.data})"
        )


class Token:
    """A token outside compiled programs: an empty array of booleans stands for it.

    Example:
        >>> isinstance(lax.create_token().block_until_ready(), jax.extend.core.Token)
        True
    """

    __slots__ = ("__weakref__", "buffer")
    aval = abstract_token

    def __init__(self, buffer: _jax.Array) -> None:
        self.buffer = buffer

    def block_until_ready(self) -> Token:
        """Waits for all that comes before the token."""
        in_flight.wait(self.buffer)
        return self

    def __repr__(self) -> str:
        return "Token()"


class _Bare:
    """Has the attributes that every class statement defines; Python 3.13 and 3.14 added some."""

    __slots__ = ()


# What C++ knows of arrays itself, and what every class has; extended arrays ask their buffers.
_NOT_CARRIED = {"is_deleted", "__annotations__", *vars(_Bare)}


def carry() -> None:
    """Gives jaxlib's class of arrays the methods of `Array`, as far as that has them by now."""
    for kind in (Typed, operators.ArrayOperators, _Convertible, Array):
        found = vars(kind).items()
        native.carry({name: value for name, value in found if name not in _NOT_CARRIED})


carry()
for _kind in (Buffer, ExtendedArray, Token):
    aval_handlers[_kind] = operator.attrgetter("aval")
tree_registry.register_dispatch_only_dataclass(Token, ["buffer"], [])
tree_registry.register_dispatch_only_dataclass(ExtendedArray, ["buffer"], ["extended_dtype"])


def wrap(buffer: Any, aval: Any) -> Any:
    """The array, or token, of logical type `aval` around a C++ array; NumPy's array of `float0`."""
    if aval is abstract_token:
        return Token(buffer)
    if aval.dtype == dtypes.float0:
        return np.zeros(aval.shape, aval.dtype)
    if dtypes.is_extended(aval.dtype):
        return ExtendedArray(buffer, aval.dtype)
    return buffer


def physical_aval(aval: Any) -> Any:
    """The type that XLA computes with: that of the buffer behind a value of type `aval`."""
    if aval is abstract_token:
        return ShapedArray((0,), np.bool_)
    if aval.is_extended:
        physical = ShapedArray((*aval.shape, *aval.dtype.physical_shape), aval.dtype.physical_dtype)
        return physical.with_manual_type(aval.manual_axis_type)
    return aval


def to_numpy(buffer: _jax.Array, *, keep: bool = True) -> np.ndarray[Any, Any]:
    """The elements on the host, as a read-only NumPy array; waits for them.

    Args:
        buffer: a C++ array.
        keep: whether those of several devices are kept for the next time.

    Raises:
        DeletedArrayError: the array was deleted or donated.
        Exception: a Python function that the computation calls has failed with it.
    """
    if buffer.is_deleted():
        in_flight.refuse_deleted(str(buffer.aval), None)
    dtype = buffer.aval.dtype
    if dtype.isbuiltin != 1 and dtype == dtypes.float0:
        return np.zeros(buffer.aval.shape, dtypes.float0)
    if in_flight.calls:
        in_flight.check_may_wait(buffer)
    watch.wait_for(buffer)
    if len(buffer._sharding.devices) > 1:
        return _gathered(buffer, keep)
    is_usual = dtype.isbuiltin == 1 and not buffer._sharding.layout
    if is_usual and not native.is_memory_hidden():
        try:
            return _checked(np.asarray(memoryview(buffer)), buffer)
        except (BufferError, TypeError):
            # For what has failed it gives the text alone; the wait below tells the rest.
            pass
    _check_readable(buffer)
    # What computes it may call a Python function that wants to do without JAX, too.
    in_flight.surfacing(native.block_until_ready, buffer)
    with without_jax:
        value = in_flight.surfacing(buffer._single_device_array_to_np_array_did_copy)[0]
    return _checked(np.asarray(value), buffer)


def _checked(value: np.ndarray[Any, Any], buffer: _jax.Array) -> np.ndarray[Any, Any]:
    """Returns the elements that were read from `buffer`, if they are its own.

    With jaxlib 0.11 and later, a thread that deletes an array replaces its memory by that of a
    Boolean scalar (`placement.release`), which another thread may then have read.

    Raises:
        DeletedArrayError: the elements are those of the scalar.
    """
    aval = buffer.aval
    if value.shape != aval.shape or (value.dtype == np.bool_) is not (aval.dtype == np.bool_):
        in_flight.refuse_deleted(str(aval), None)
    return value


def explain_deleted(caught: Exception, *values: Any) -> None:
    """Raises our own error in place of XLA's, if it is about one of `values` that was deleted.

    Raises:
        DeletedArrayError: it is.
        RecursionError: they are too deep for C++, which goes on where it should have raised that.
    """
    if "deleted or donated" in str(caught) or isinstance(caught, SystemError):
        for value in tree.leaves(values):
            x = getattr(value, "array", value)  # `x.at[index]` holds an array.
            if is_array(x):
                in_flight.check_alive(x.buffer)


source.explain_deleted = explain_deleted


def array_from_host(
    value: Value, aval: AbstractValue | None = None, *, target: object = None, **how: bool | None
) -> Array:
    """A NumPy array or scalar, or a Python scalar, as an array placed as `target` says.

    Without a target it lives on every device of the mesh in force, or on the default device.
    Other keywords are those of `placement.put_host_value`.
    """
    aval = aval_of(value) if aval is None else aval
    host = value if isinstance(value, np.ndarray) else np.asarray(value)
    if host.dtype != aval.dtype:
        host = host.astype(aval.dtype)
    if target is None:
        target, how["committed"] = placement.default_placement(aval.ndim)
    made: Array = placement.put_host_value(host, aval, target, **how)
    return made


def live_arrays(platform: str | None = None) -> list[Array]:
    """All arrays that have memory on the devices of a platform; the default one by default.

    Example:
        >>> x = jnp.arange(7777)
        >>> any(y.shape == (7777,) for y in jax.live_arrays())
        True
    """
    buffers = client.get_backend(platform).live_arrays()
    extended = [x for x in gc.get_referrers(*buffers) if type(x) is ExtendedArray]
    hidden = {id(x.buffer) for x in extended}
    return extended + [
        x for x in buffers if not (id(x) in hidden or x.is_deleted() or hasattr(x, "is_no_users"))
    ]


def _rows(x: Array) -> Iterator[Array]:
    """The rows of an array that Explicit axes split: no row is a piece, so each is put anew."""
    where = placement.whole_on(x.sharding, x.ndim - 1)
    target, aval = placement.native(where, x.ndim - 1), x.aval.without_dim(0)
    for row in to_numpy(x.buffer):
        yield array_from_host(row, aval, target=target, committed=True)


def pieces_of(buffer: _jax.Array) -> list[Any]:
    """The buffers of an array's pieces on this process's devices, in order of the devices."""
    sharding = buffer._sharding
    in_flight.check_alive(buffer)
    if sharding.device is not None:
        return [buffer]
    parts = getattr(buffer, "parts", None)
    if parts is not None:
        return list(parts)
    if len(sharding.devices) == 1:
        there = placement.piece_sharding(sharding.devices[0], None, sharding.layout)
        return [placement.retyped(buffer, there)]
    with in_flight.memory_lock, without_jax:
        in_flight.check_alive(buffer)
        pieces = list(native.arrays_of(buffer))
        is_own = all(type(x._sharding) is placement.PiecePlacement for x in pieces[:1])
        if sharding.layout or not is_own:
            devices = placement.local_devices(sharding)
            pieces = [_own_piece(x, d, sharding) for x, d in zip(pieces, devices, strict=True)]
        placement.join(buffer, pieces)
    return pieces


def _own_piece(piece: Any, device: Any, whole: Any) -> Any:
    """A piece as it is; C++ describes it in the usual terms, or in JAX's where that is loaded."""
    there = placement.piece_sharding(device, whole.memory, whole.layout)
    aval = ShapedArray(piece.aval.shape, piece.aval.dtype)
    return piece._rewrap_with_aval_and_sharding(aval, there)


def _check_readable(buffer: _jax.Array) -> None:
    """Refuses arrays of which this process does not hold all elements.

    Raises:
        RuntimeError: other processes hold some.
    """
    public = buffer._sharding.public
    if not placement.is_readable(public):
        problem, got = "other processes hold pieces of the array.", f"{buffer.aval} with {public}"
        fix = "use the pieces of this process, x.addressable_shards, or first replicate the "
        fix += "array: jit(lambda x: x, out_shardings=NamedSharding(mesh, P()))(x)"
        error(RuntimeError, "Array", problem, got=got, fix=fix)


def _gathered(buffer: _jax.Array, keep: bool) -> np.ndarray[Any, Any]:
    """The elements of an array that lives on several devices."""
    if buffer._npy_value is not None:
        return buffer._npy_value
    _check_readable(buffer)
    public = buffer._sharding.public
    in_flight.wait(buffer)
    pieces = pieces_of(buffer)
    if public.is_fully_replicated:
        return to_numpy(pieces[0])
    shape = buffer.aval.shape
    whole = np.empty(shape, buffer.aval.dtype)
    if not whole.size:
        # XLA does not cut the results that hold nothing.
        return whole
    for place, piece in zip(placement.places(public, shape), pieces, strict=True):
        if place.replica == 0:
            # The first term of a sum comes before all others.
            own = to_numpy(piece)
            whole[place.slices] = whole[place.slices] + own if place.term else own
    whole.flags.writeable = False
    if keep:
        buffer._npy_value = whole
    return whole


def shards_of(x: Array, *, of_other_processes: bool = False) -> list[Shard]:
    """The pieces of an array that lives on several devices."""
    pieces = iter(pieces_of(x.buffer))
    shards = []
    sharding = x.sharding
    places = placement.places(sharding, x.shape)
    gone = sharding.unstacked_dims
    indices = sharding.indices(x.shape) if gone else [place.slices for place in places]
    for place, index in zip(places, indices, strict=True):
        if place.is_local:
            piece = next(pieces)
            shard = rewrapped(_without_dims(piece, gone) if gone else piece, x)
            if not gone:
                placement.note_whole(piece, x, shard)
            shards.append(Shard(place.device, index, place.replica, shard))
        elif of_other_processes:
            shards.append(Shard(place.device, index, place.replica, None))
    return shards


def _without_dims(piece: _jax.Array, dims: tuple[int, ...]) -> Any:
    """A copy of a piece that lacks dimensions which it has in XLA's terms only."""
    host = np.squeeze(to_numpy(piece), dims)
    target = placement.piece_sharding(piece._sharding.device, piece._sharding.memory)
    aval = piece.aval.with_shape(host.shape)
    return placement.put_host_value(host, aval, target, committed=True)


def rewrapped(buffer: Any, like: Array) -> Array:
    """A buffer as an array of the class of `like`."""
    if isinstance(like, ExtendedArray):
        return ExtendedArray(buffer, like.extended_dtype)
    return buffer


def _unpickle(value: np.ndarray[Any, Any], weak_type: bool) -> Array:
    return array_from_host(value, ShapedArray(value.shape, value.dtype, weak_type))


def _unpickle_extended(value: np.ndarray[Any, Any], dtype: DType) -> Array:
    return ExtendedArray(array_from_host(value).buffer, dtype)


def _refuse_pieces(exception: type[Exception], user: str, x: Array) -> NoReturn:
    problem = "only the memory of one device can be handed out."
    fix = "use the pieces: x.addressable_shards[i].data"
    error(exception, user, problem, got=f"{x.aval} with {x.sharding}", fix=fix)


_DLPACK_CPU = 1
_DLPACK_CUDA = 2


def dlpack_device(x: Array) -> tuple[int, int]:
    """The device of an array in DLPack's terms: kind and number.

    Raises:
        BufferError: the array lives on several devices.
    """
    device = x.buffer._sharding.device
    if device is None:
        _refuse_pieces(BufferError, "__dlpack__", x)
    kind = _DLPACK_CUDA if device.platform in ("gpu", "cuda") else _DLPACK_CPU
    return kind, device.local_hardware_id if kind == _DLPACK_CUDA else 0


def to_dlpack(x: Array, stream: object, dl_device: Any, copy: bool | None) -> Any:
    """A DLPack capsule of the array's memory, shared unless a copy is asked for.

    Raises:
        BufferError: the array lives on several devices, or its memory is not where it is wanted.
    """
    buffer = x.buffer
    in_flight.check_alive(buffer)
    here = dlpack_device(x)
    if stream not in (None, -1) and here[0] == _DLPACK_CPU:
        error(BufferError, "__dlpack__", "host devices have no streams.", got=f"stream: {stream}")
    if dl_device is not None and tuple(map(int, dl_device)) != here:
        got = f"dl_device: {tuple(map(int, dl_device))}   the array's: {here}"
        fix = "minijax.device_put(x, device) first"
        error(BufferError, "__dlpack__", "the array is on another device.", got=got, fix=fix)
    # Not the array itself: until the memory is given back, C++ must not let go of what exports it.
    buffer = placement.copy_buffer(buffer, buffer._sharding) if copy else like(buffer)
    buffer.is_no_users = True
    in_flight.check_may_wait(buffer)
    with without_jax:
        return in_flight.surfacing(_jax.buffer_to_dlpack_managed_tensor, buffer)
