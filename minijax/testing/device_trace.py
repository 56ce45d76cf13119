"""The trace of one simulated device: operations compute at once, on NumPy arrays.

Input: an operation of the user's program, with this device's values.  Output: its results, from
NumPy; from the other devices, if the operation is a collective; or, for what NumPy lacks, from the
compiled operation.  Programs that an operation holds are evaluated here too, with Python's own
branches and loops, so that each device may go its own way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import axes, meshes, refs, source, variance
from minijax.core.aval import (
    ManualAxisType,
    ShapedArray,
    aval_of,
    manual_type,
    shaped_array,
)
from minijax.core.errors import UnexpectedTracerError, error
from minijax.core.trace import Trace, Tracer, check_alive, current
from minijax.interpreters import eager, staging
from minijax.runtime.array import ExtendedArray, Token, array_from_host, to_numpy
from minijax.testing import device_programs, numpy_collectives, numpy_operations, reports
from minijax.testing.coroutines import Device
from minijax.testing.exchanges import Request

_SCALARS = (int, float, bool, complex, np.generic)


class DeviceTracer(Tracer):
    """A value on one device.  It is known, so that Python can branch on it and print it.

    Attributes:
        value: a NumPy array; of an extended dtype, what it is made of; a token; or, of a promise,
            the tracer of what was promised.
    """

    __slots__ = ("value",)

    traced_by: DeviceTrace
    value: Any

    def concrete(self) -> Any:
        return self.value

    def origin(self) -> str:
        return f"a value on the simulated device {self.traced_by.place}"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self.value, dtype)

    def __str__(self) -> str:
        return str(self.value)

    def __repr__(self) -> str:
        return f"{self.aval} on {self.traced_by.place}: {self.value}"


class DeviceTrace(Trace):
    """Computes what one device computes.

    Args:
        device: the device.
        checked: whether types tell over which mesh axes values vary.
        function_name: the name of the user's function.
    """

    __slots__ = ("checked", "device", "place")

    def __init__(self, device: Device, checked: bool, function_name: str = "") -> None:
        super().__init__(function_name)
        self.device = device
        self.checked = checked
        self.place = reports.place(device.coordinates)

    def tracer(self, value: Any, aval: Any) -> DeviceTracer:
        """A value of this device."""
        tracer = object.__new__(DeviceTracer)
        tracer.traced_by = self
        tracer.aval = aval
        tracer.value = value
        return tracer

    def read(self, x: Any) -> tuple[Any, Any]:
        """The NumPy array of a value, and its type.

        Raises:
            UnexpectedTracerError: it belongs to another device, or to a transformation around.
        """
        if type(x) is DeviceTracer and x.traced_by is self:
            return x.value, x.aval
        if isinstance(x, Tracer):
            check_alive(x)
            error(
                UnexpectedTracerError,
                "testing.simulate",
                f"the device {self.place} cannot know a value of somebody else.",
                got=f"{x.aval}, {x.origin()}",
                expected="values of this device, and concrete ones from outside",
                fix="communicate by a collective; transform inside of the simulation",
            )
        if refs.is_reference(x):
            return x, x.aval
        return whole_value(x)

    def process(self, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
        self.device.step()
        run = device_programs.PROGRAMS.get(primitive.name)
        if run is not None:
            return run(self, primitive, args, params)
        if primitive.discharge is not None and (primitive.makes_references or refs.any_cell(args)):
            out = primitive.discharge(*args, **params)
            return out if primitive.multiple_results else (out,)
        read = list(map(self.read, args))
        values, avals = [value for value, _ in read], [aval for _, aval in read]
        if primitive.axis_params or primitive.name in numpy_collectives.ENDS:
            return self._over_axes(primitive, values, avals, params)
        out = primitive.abstract_eval(*avals, **params)
        out_avals = list(out) if primitive.multiple_results else [out]
        if self.checked:
            counted = [
                variance.of_literal(x) if isinstance(x, _SCALARS) else aval
                for x, aval in zip(args, avals, strict=True)
            ]
            kind = variance.join(primitive, counted)
            out_avals = [aval.with_manual_type(kind) for aval in out_avals]
        return self._compute(primitive, values, avals, out_avals, params)

    def _compute(
        self,
        primitive: Any,
        values: Sequence[Any],
        avals: Sequence[Any],
        out_avals: Sequence[Any],
        params: dict[str, Any],
    ) -> list[Any]:
        """The results of an operation without communication."""
        found: Any = NotImplemented
        if not any(aval.is_extended for aval in (*avals, *out_avals)):
            found = numpy_operations.compute(primitive.name, values, params)
        if found is NotImplemented:
            found = _compiled(primitive, values, avals, params)
        elif not primitive.multiple_results:
            found = [found]
        return [
            self.tracer(value if aval.is_extended else np.asarray(value, aval.dtype), aval)
            for value, aval in zip(found, out_avals, strict=True)
        ]

    def _axis_index(self, name: Any) -> DeviceTracer:
        position = dict(self.device.coordinates)[name]
        aval = shaped_array((), np.dtype(np.int32))
        kind = manual_type(axes.typed_among((name,))) if self.checked else aval.manual_axis_type
        return self.tracer(np.asarray(position, np.int32), aval.with_manual_type(kind))

    def _over_axes(
        self, primitive: Any, values: Sequence[Any], avals: Sequence[Any], params: dict[str, Any]
    ) -> list[Any]:
        """The result of an operation that refers to mesh axes.

        A collective that only starts gives a promise, which holds the result from the beginning.
        """
        name = primitive.name
        if name == "axis_index":
            return [self._axis_index(params["axis_name"])]
        if name in numpy_collectives.ENDS:
            return [values[0]]
        # What no device can do is refused in the words of the primitive, before any waits.
        out = primitive.abstract_eval(*avals, **params)
        if name not in numpy_collectives.STARTS:
            return self._exchange(primitive, name, values, avals, params)
        base = numpy_collectives.STARTS[name]
        (arriving,) = self._exchange(primitive, base, values, avals, params)
        return [self.tracer(arriving, out)]

    def _exchange(
        self,
        primitive: Any,
        name: str,
        values: Sequence[Any],
        avals: Sequence[Any],
        params: dict[str, Any],
    ) -> list[Any]:
        """The result of a collective, or of a cast between states over mesh axes."""
        (key,) = primitive.axis_params
        named = params[key] if isinstance(params[key], tuple) else (params[key],)
        over = tuple(a for a in named if type(a) is not int)
        if name in numpy_collectives.CASTS:
            answer: Sequence[Any] = values
        elif over:
            where = staging.origin.value or source.capture()
            answer = self.device.communicate(Request(name, over, params, tuple(values), where))
        else:
            (answer,) = numpy_collectives.apply(name, params, [values])
        aval = avals[1] if name == "ragged_all_to_all" else avals[0]
        kinds = [variance.of(a) for a in avals]
        kind = _state(name, kinds, axes.typed_among(over), params) if self.checked else kinds[0]
        weak = aval.weak_type and name not in ("all_to_all", "ragged_all_to_all")
        return [self.tracer(x, _type_of(x, aval, weak, kind)) for x in answer]


def _type_of(x: Any, like: Any, weak_type: bool, kind: ManualAxisType) -> Any:
    """The type of an array that a collective gives for an operand of type `like`."""
    shape = x.shape
    if like.is_extended:
        shape = shape[: len(shape) - len(like.dtype.physical_shape)]
    dtype = like.dtype if like.is_extended else x.dtype
    return like.update(shape=shape, dtype=dtype, weak_type=weak_type).with_manual_type(kind)


def _state(
    name: str, kinds: Sequence[ManualAxisType], over: Sequence[Any], params: dict[str, Any]
) -> ManualAxisType:
    """How a collective's result stands to the mesh axes: as its operands do to all but `over`."""
    named = frozenset(over)
    sets = {
        "varying": frozenset().union(*(kind.varying for kind in kinds)) - named,
        "unreduced": kinds[0].unreduced - named,
        "reduced": kinds[0].reduced - named,
    }
    state = numpy_collectives.result_state(name, params)
    if state in sets:
        sets[state] |= named
    return manual_type(**sets)


def whole_value(x: Any) -> tuple[Any, Any]:
    """The NumPy array of a concrete value from outside, and its type there: whole, not split."""
    aval = aval_of(x)
    if isinstance(x, Token):
        return x, aval
    plain = shaped_array(aval.shape, aval.dtype, aval.weak_type)
    if isinstance(x, ExtendedArray):
        return to_numpy(x.buffer), plain
    return np.asarray(x, aval.dtype), plain


def array(value: Any, aval: Any) -> Any:
    """A concrete value, from its NumPy array: itself, unless the dtype is an extended one."""
    if isinstance(aval, ShapedArray) and aval.is_extended:
        return ExtendedArray(array_from_host(value).buffer, aval.dtype)
    return value


class elsewhere:  # noqa: N801  a context manager reads as a place
    """Context manager: inside it, operations run as if there were no mesh and no device."""

    def __enter__(self) -> None:
        self._trace = current.swap_local(eager.EAGER)
        self._mesh = meshes.abstract_mesh.swap_local(meshes.EMPTY)
        self._axes = axes.outside()
        self._axes.__enter__()

    def __exit__(self, *_: object) -> None:
        self._axes.__exit__()
        meshes.abstract_mesh.set_local(self._mesh)
        current.set_local(self._trace)


def _compiled(
    primitive: Any, values: Sequence[Any], avals: Sequence[Any], params: dict[str, Any]
) -> list[Any]:
    """The results of the compiled operation, as NumPy arrays."""
    if primitive.sharding_param:
        params = {**params, primitive.sharding_param: None}
    with elsewhere():
        args = list(map(array, values, avals))
        outs = eager.EAGER.process(primitive, args, params)
        return [x if isinstance(x, Token) else whole_value(x)[0] for x in outs]
