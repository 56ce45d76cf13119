"""Transfers: a value as a buffer where a program needs it, and results as arrays.

Input: a host value or an array, and a placement.  Output: a C++ array placed so.  What is there
already is used as it is; pieces that exist are copied from device to device; the rest passes
through the host.  `monitoring.transfers` counts.

`from_dlpack` makes an `Array` of an object that speaks the DLPack protocol, on the memory of the
other library.  How arrays speak it themselves stands with them, in `runtime/array.py`.

An executable has two handlers: one puts its arguments where it needs them, as C++ arrays, and one
makes of its results, which are C++ arrays, the values that users get.  A back end that compiles for
itself is handed both in place of an executable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxlib import _jax, xla_client

from minijax.core import capabilities, dtypes, monitoring
from minijax.core.aval import AbstractValue, Shape, ShapedArray, abstract_token
from minijax.core.dtypes import DType
from minijax.core.errors import error
from minijax.core.native import Buffer
from minijax.core.trace import Tracer, leaked
from minijax.runtime import array, client, in_flight, placement, profiling
from minijax.runtime.array import (
    Array,
    Token,
    array_from_host,
    is_array,
    physical_aval,
    pieces_of,
    to_numpy,
    wrap,
)
from minijax.runtime.effect_tokens import TOKEN
from minijax.runtime.placement import without_jax
from minijax.sharding.base import Sharding
from minijax.sharding.named import SingleDeviceSharding


def committed_placement(x: object) -> Sharding | None:
    """Where an array is that the user has placed; None for other values."""
    if is_array(x) and x.committed and not x.is_deleted():
        return x.sharding
    return None


def placement_beside(shape: Shape, values: Sequence[Any]) -> Sharding | None:
    """Where a result of known elements belongs: where the first value is that the user has placed.

    It is cut like that one if it is of the same shape, and whole on each of its devices otherwise.
    None where the user has placed none of the values.
    """
    for x in values:
        found = committed_placement(x)
        if found is not None:
            is_alike = x.shape == shape and not placement.is_unreduced(found)
            return found if is_alike else placement.whole_on(found, len(shape))
    return None


def buffer_on(x: Any, aval: Any, target: Any) -> Any:
    """The C++ array behind an argument, placed as `target`, a native sharding, says."""
    if isinstance(x, Tracer):
        raise leaked(x)
    if isinstance(x, Token):
        return x.buffer
    if not is_array(x):
        if aval.dtype == dtypes.float0:
            x, aval = np.zeros(aval.shape, np.bool_), aval.update(dtype=np.dtype(np.bool_))
        if target.layout:
            usual = placement.native(target.public, aval.ndim)
            return moved(array_from_host(x, aval, target=usual).buffer, target)
        return array_from_host(x, aval, target=target).buffer
    return moved(x.buffer, target)


def moved(buffer: _jax.Array, target: _jax.Sharding) -> Any:
    """A C++ array placed as `target` says: itself, where it is so already."""
    in_flight.check_alive(buffer)
    source = buffer._sharding
    if source is target or (
        source.devices == target.devices
        and source.hlo == target.hlo
        and source.memory == target.memory
        and source.layout == target.layout
    ):
        return buffer
    if source.layout or target.layout:
        return _laid_out(buffer, target)
    if source.devices[0].client is target.devices[0].client:
        if (
            len(source.devices) == len(target.devices)
            and source.hlo == target.hlo
            and source.public.is_fully_addressable
            and target.public.is_fully_addressable
        ):
            return placement.retyped(placement.copy_buffer(buffer, target), target)
        found = _reassembled(buffer, source, target)
        if found is not None:
            return found
    monitoring.transfers["through the host"] += 1
    host = to_numpy(buffer, keep=False)
    return placement.put_host_value(host, buffer.aval, target, committed=True)


relaid: Callable[[_jax.Array, Any], Any] = NotImplemented
"""An array on the same devices in another layout; `lowering/program.py` sets it."""


def _laid_out(buffer: _jax.Array, target: Any) -> Any:
    """As `moved`, where elements lie in an unusual order here or there: places change between."""
    if buffer._sharding.layout:
        buffer = relaid(buffer, placement.native(buffer._sharding.public, buffer.aval.ndim))
    usual = placement.native(target.public, buffer.aval.ndim)
    return relaid(moved(buffer, usual), target) if target.layout else moved(buffer, target)


def _reassembled(buffer: _jax.Array, source: Any, target: _jax.Sharding) -> Any:
    """The array of pieces that some device holds already; None if one is held by none."""
    shape = buffer.aval.shape
    held: dict[Any, dict[Any, Any]] = {}
    if not _is_held_where_wanted(source.public, target.public, shape):
        return None
    here = placement.local_places(source.public, shape)
    for place, piece in zip(here, pieces_of(buffer), strict=True):
        held.setdefault(place.key, {})[place.device] = piece
    wanted = placement.local_places(target.public, shape)
    # A single-device array may lose its memory to anyone.
    may_reuse = source.memory == target.memory and (source.device is None or source.of_piece)
    found: dict[Any, Any] = {}
    copies: dict[Any, Any] = {}
    for place in wanted:
        candidates = held[place.key]
        own = candidates.get(place.device)
        if own is not None and may_reuse:
            found[place.device] = own
        else:
            copies[place.device] = next(iter(candidates.values())) if own is None else own
    monitoring.transfers["used where they are"] += len(found)
    if copies:
        there = [placement.piece_sharding(device, target.memory) for device in copies]
        found.update(zip(copies, placement.copy_buffers(list(copies.values()), there), strict=True))
    return _sharing(buffer, target, [found[place.device] for place in wanted])


def _is_held_where_wanted(source: Sharding, target: Sharding, shape: Shape) -> bool:
    """Whether each process holds the pieces that its devices shall have: all answer the same."""
    held = {(place.device.process_index, place.key) for place in placement.places(source, shape)}
    return all(
        (place.device.process_index, place.key) in held for place in placement.places(target, shape)
    )


def aliased(buffer: _jax.Array, target: _jax.Sharding) -> Any:
    """The same memory as another, committed array, in terms of `target`."""
    return _sharing(buffer, target, pieces_of(buffer))


def _sharing(buffer: _jax.Array, target: _jax.Sharding, pieces: list[Any]) -> Any:
    """The array of pieces some of which belong to `buffer`, too."""
    source = buffer._sharding
    from_one = source.device is not None
    if target.device is not None and (not from_one or source.of_piece):
        target = placement.piece_sharding(target.device, target.memory, target.layout)
    with in_flight.memory_lock:
        in_flight.check_alive(*pieces)
        made = placement.assemble(buffer.aval, target, pieces)
        if from_one and target.device is not None:
            placement.join_fate(made, buffer)
            return made
        placement.join(made, pieces)
        if not from_one:
            placement.join(buffer, pieces_of(buffer))
    return made


def own_part(buffer: _jax.Array) -> Any:
    """A result, described as that of this process, in terms that C++ understands, too."""
    return placement.assemble(buffer.aval, buffer._sharding, pieces_of(buffer))


def view(buffer: _jax.Array) -> Any:
    """A buffer for another array of the same elements, that may be deleted by itself."""
    if buffer._sharding.device is None:
        return aliased(buffer, buffer._sharding)
    with in_flight.memory_lock:
        made = array.like(buffer)
        placement.join_fate(made, buffer)
        return made


def as_piece(x: Array, kind: str | None) -> Any:
    """The buffer of an array on one device, which becomes part of an array over several.

    Called with `memory_lock` held, as is `array.join` later.
    """
    buffer = x.buffer
    in_flight.check_alive(buffer)
    source = buffer._sharding
    if source.layout:
        return moved(buffer, placement.piece_sharding(source.device, kind))
    placement.protect_from_donation(buffer, kind)
    return buffer


def copied(buffer: _jax.Array) -> Any:
    """The same elements, in memory of their own."""
    return placement.copy_buffer(buffer, buffer._sharding)


def is_supported_dtype(dtype: DType) -> bool:
    """Whether arrays of a dtype can be exchanged by DLPack.

    Example:
        >>> jax.dlpack.is_supported_dtype("bfloat16"), jax.dlpack.is_supported_dtype("int4")
        (True, False)
    """
    found = dtypes.np_dtype(dtype, "dlpack.is_supported_dtype")
    exchanged = (
        dtypes.bool_,
        dtypes.bfloat16,
        dtypes.float16,
        dtypes.float32,
        dtypes.float64,
        dtypes.complex64,
        dtypes.complex128,
        *dtypes.SIGNED,
        *dtypes.UNSIGNED,
    )
    return found in exchanged and dtypes.bit_width(found) >= 8


def from_dlpack(
    external_array: object, device: _jax.Device | None = None, copy: bool | None = None
) -> Array:
    """An array of another library's memory, by DLPack; shares it where it is aligned.

    Args:
        external_array: an object with `__dlpack__` and `__dlpack_device__`.
        device: where the array is to be; where the memory is, by default.
        copy: True for a copy, False for none; by default where one is needed.

    Shapes:     T[s] -> T[s].

    Example:
        >>> jax.dlpack.from_dlpack(np.arange(3, dtype=np.int16))
        Array([0, 1, 2], dtype=int16)

    Raises:
        TypeError: the object does not have `__dlpack__`.
        ValueError: a copy is needed, and `copy` is False.
    """
    if not hasattr(external_array, "__dlpack__"):
        problem = "the object does not speak DLPack."
        got = type(external_array).__name__
        expected = "an object with __dlpack__ and __dlpack_device__"
        error(TypeError, "numpy.from_dlpack", problem, got=got, expected=expected)
    target = client.default_device() if device is None else device
    try:
        with without_jax:
            tensor = external_array.__dlpack__()
            buffer = _jax.dlpack_managed_tensor_to_buffer(tensor, target, None, copy)
    except xla_client.XlaRuntimeError as caught:
        problem = "the memory cannot be shared, and must not be copied."
        got, fix = str(caught).partition("\n")[0], "copy=None, or copy=True"
        error(ValueError, "numpy.from_dlpack", problem, got=got, fix=fix, cause=caught)
    aval = buffer.aval
    if dtypes.canonicalize_dtype(aval.dtype) != aval.dtype:
        return array_from_host(to_numpy(buffer), target=placement.native_sharding(target))
    aval = ShapedArray(aval.shape, aval.dtype)
    where = SingleDeviceSharding(target)
    there = placement.native(where, aval.ndim, placement.layout_of(buffer._pjrt_layout))
    made: Array = buffer._rewrap_with_aval_and_sharding(aval, there)
    return made


class InputsHandler:
    """Puts the arguments of a program where it needs them.

    Called with all arguments, used or not, it returns a C++ array for each parameter.

    Attributes:
        avals: types of the arguments that the program uses.
        targets: their native shardings.
        kept: indices of the arguments that it uses, or None for all of them.
        consts: C++ arrays of constants that come before the arguments.

    Source:     after jax.interpreters.pxla.InputsHandler, which JAX has since dropped.

    Example:
        >>> from minijax.experimental import pxla
        >>> pxla.InputsHandler([], [])([])
        []
    """

    __slots__ = ("avals", "consts", "kept", "targets")

    def __init__(
        self,
        avals: Sequence[Any],
        targets: Sequence[Any],
        kept: Sequence[int] | None = None,
        consts: Sequence[Any] = (),
    ) -> None:
        self.avals = list(avals)
        self.targets = list(targets)
        self.kept = kept
        self.consts = list(consts)

    def __call__(self, args: Sequence[Any]) -> list[Any]:
        """The C++ arrays for a call with `args`."""
        with profiling.TraceAnnotation("place arguments"):
            used = args if self.kept is None else [args[i] for i in self.kept]
            buffers = list(self.consts)
            for x, aval, target in zip(used, self.avals, self.targets, strict=True):
                buffers.append(
                    x if type(x) is Buffer and x._sharding is target else buffer_on(x, aval, target)
                )
            return buffers

    def __repr__(self) -> str:
        consts = f"{len(self.consts)} constants, " if self.consts else ""
        return f"InputsHandler({consts}{_listed(self.avals, self.targets)})"


class ResultsHandler:
    """Makes the values that users get of the results of a program.

    Called with a C++ array for each result, or a list of the pieces of each, it returns arrays.

    Attributes:
        avals: types of the results.
        buffer_avals: types of the C++ arrays behind them.
        targets: their native shardings.
        are_buffers: whether all values are C++ arrays, or objects around them.
        native: jaxlib's handlers of all that a program returns, tokens of ordered effects first.

    Source:     after jax.interpreters.pxla.ResultsHandler, which JAX has since dropped.

    Example:
        >>> from minijax.experimental import pxla
        >>> pxla.ResultsHandler([], [], committed=False)([])
        []
    """

    __slots__ = (
        "_num_tokens",
        "_plain",
        "are_buffers",
        "avals",
        "buffer_avals",
        "native",
        "targets",
    )

    def __init__(
        self,
        avals: Sequence[Any],
        targets: Sequence[Any],
        committed: bool,
        token_places: Sequence[Any] = (),
    ) -> None:
        self.avals = list(avals)
        self.targets = list(targets)
        self.buffer_avals = list(map(_buffer_aval, avals, targets))
        self.native = [
            capabilities.array_result_handler(TOKEN, everywhere, committed)
            for everywhere in token_places
        ] + [
            capabilities.array_result_handler(aval, target, committed)
            for aval, target in zip(self.buffer_avals, targets, strict=True)
        ]
        self._num_tokens = len(token_places)
        self.are_buffers = dtypes.float0 not in [getattr(aval, "dtype", None) for aval in avals]
        self._plain = self.are_buffers and not any(aval.is_extended for aval in avals)

    def __call__(self, results: Sequence[Any]) -> list[Array | Token]:
        """The values for C++ arrays, one or a list of pieces for each result."""
        own = self.native[self._num_tokens :]
        return self.wrapped([make(x) for make, x in zip(own, results, strict=True)])

    def wrapped(self, buffers: Sequence[Any]) -> list[Array | Token]:
        """The values for C++ arrays that jaxlib's handlers have made already."""
        if self._plain:
            return list(buffers)
        return list(map(wrap, buffers, self.avals))

    def __repr__(self) -> str:
        return f"ResultsHandler({_listed(self.avals, self.targets)})"


def _listed(avals: Sequence[Any], targets: Sequence[Any]) -> str:
    return ", ".join(
        f"{aval} on {target.public}" for aval, target in zip(avals, targets, strict=True)
    )


def _typed_array(aval: AbstractValue, target: object) -> Any:
    return placement.typed(physical_aval(aval), target)


result_types: dict[type, Callable[[Any, Any], Any]] = {
    ShapedArray: _typed_array,
    type(abstract_token): _typed_array,
}
"""For each kind of aval that programs return: its aval and native sharding give the type of the
C++ array behind it.  One table serves programs over the whole and over parts of an array, as what
an array over several devices is does not depend on who has cut it."""


def _buffer_aval(aval: AbstractValue, target: _jax.Sharding) -> Any:
    """The type of the C++ array behind a result.

    Raises:
        TypeError: programs return no values of such a type.
    """
    rule = result_types.get(type(aval))
    if rule is None:
        kinds = ", ".join(kind.__name__ for kind in result_types)
        problem = "no array can be made of a result of this type."
        got = f"{aval} of type {type(aval).__name__}"
        fix = "return the value of a reference, ref[...], and not the reference"
        error(TypeError, "results", problem, got=got, expected=f"an aval of type {kinds}", fix=fix)
    return rule(aval, target)
