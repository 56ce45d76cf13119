"""The trace of one simulated device: operations compute at once, on NumPy arrays.

Input: an operation of the user's program, with this device's values.  Output: its results, from
NumPy; from the other devices, if the operation is a collective; or, for what NumPy lacks, from the
compiled operation.  Programs that an operation holds are evaluated here too, with Python's own
branches and loops, so that each device may go its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from minijax.core import axes, meshes, refs, source, vma
from minijax.core.aval import AbstractValue, ShapedArray, aval_of, shaped_array
from minijax.core.dtypes import ExtendedDType
from minijax.core.errors import UnexpectedTracerError, error
from minijax.core.meshes import PartitionSpec
from minijax.core.primitive import Primitive
from minijax.core.trace import Trace, Tracer, check_alive, current
from minijax.core.value_placement import ManualAxisType, manual_type
from minijax.interpreters import staging
from minijax.lowering import eager
from minijax.runtime.annotations import DTypeLike
from minijax.runtime.array import ExtendedArray, Token, array_from_host, to_numpy
from minijax.sharding import rules
from minijax.testing import devices, exchanges, numpy_model
from minijax.testing.devices import Device
from minijax.testing.exchanges import Coordinates, Request
from minijax.testing.numpy_model import Block

Program = Callable[["DeviceTrace", Primitive, Sequence[Any], Mapping[str, Any]], Sequence[Any]]


def _run_body(
    trace: DeviceTrace, primitive: Primitive, args: Sequence[Any], params: Mapping[str, Any]
) -> Sequence[Any]:
    """An operation whose own rule evaluates what it holds in the current trace."""
    return cast("Callable[..., Sequence[Any]]", primitive.impl)(*args, **params)


def _run_jit(
    trace: DeviceTrace, primitive: Primitive, args: Sequence[Any], params: Mapping[str, Any]
) -> Sequence[Any]:
    return staging.eval_closed_jaxpr(params["jaxpr"], *args)


def _run_cond(
    trace: DeviceTrace, primitive: Primitive, args: Sequence[Any], params: Mapping[str, Any]
) -> Sequence[Any]:
    index, aval = trace.read(args[0])
    branches = params["branches"]
    outs = staging.eval_closed_jaxpr(branches[int(index)], *args[1:])
    over = vma.of(aval).varying
    # The type is that of every branch, whichever was taken.
    weak = [a.weak_type if isinstance(a, ShapedArray) else False for a in branches[0].out_avals]
    return [_typed(trace, x, w, over) for x, w in zip(outs, weak, strict=True)]


def _typed(trace: DeviceTrace, x: object, weak_type: bool, over: frozenset[Any]) -> Any:
    """A result of control flow that was decided by what varies over some axes."""
    value, aval = trace.read(x)
    if not isinstance(aval, ShapedArray):
        return x
    varying, unreduced, reduced = vma.of(aval)
    kind = manual_type(varying | over, unreduced - over, reduced - over)
    return trace.tracer(value, aval.update(weak_type=weak_type).with_manual_type(kind))


def _run_while(
    trace: DeviceTrace, primitive: Primitive, args: Sequence[Any], params: Mapping[str, Any]
) -> Sequence[Any]:
    num_test, num_consts = params["cond_nconsts"], params["body_nconsts"]
    test_consts, body_consts = args[:num_test], args[num_test : num_test + num_consts]
    carry = list(args[num_test + num_consts :])
    over: frozenset[Any] = frozenset()
    while True:
        trace.device.step()
        (out,) = staging.eval_closed_jaxpr(params["cond_jaxpr"], *test_consts, *carry)
        goes_on, aval = trace.read(out)
        over |= vma.of(aval).varying
        if not np.any(goes_on):
            break
        after = staging.eval_closed_jaxpr(params["body_jaxpr"], *body_consts, *carry)
        carry = [_kept(trace, goes_on, x, y) for x, y in zip(carry, after, strict=True)]
    weak = [a.weak_type for a in params["body_jaxpr"].out_avals]
    return [_typed(trace, x, w, over) for x, w in zip(carry, weak, strict=True)]


def _kept(trace: DeviceTrace, goes_on: Block, before: object, after: object) -> Any:
    """What a step makes of a carry, for those examples of a batch that are not done."""
    if not goes_on.ndim:
        return after
    old, _ = trace.read(before)
    new, aval = trace.read(after)
    which = goes_on.reshape(goes_on.shape + (1,) * (new.ndim - goes_on.ndim))
    return trace.tracer(np.where(which, new, old), aval)


def _run_scan(
    trace: DeviceTrace, primitive: Primitive, args: Sequence[Any], params: Mapping[str, Any]
) -> Sequence[Any]:
    closed, num_carry, length = params["jaxpr"], params["num_carry"], params["length"]
    start = params["num_consts"] + num_carry
    consts, carry = args[: params["num_consts"]], list(args[params["num_consts"] : start])
    xs = [trace.read(x) for x in args[start:]]
    steps: list[list[Any]] = []
    order = range(length)
    for i in reversed(order) if params["reverse"] else order:
        trace.device.step()
        slices = [trace.tracer(np.asarray(x[i]), aval.without_dim(0)) for x, aval in xs]
        outs = staging.eval_closed_jaxpr(closed, *consts, *carry, *slices)
        carry = outs[:num_carry]
        steps.append(outs[num_carry:])
    if params["reverse"]:
        steps.reverse()
    return carry + [
        _stacked(trace, [step[k] for step in steps], aval, length)
        for k, aval in enumerate(closed.out_avals[num_carry:])
    ]


def _stacked(trace: DeviceTrace, parts: Sequence[Any], aval: ShapedArray, length: int) -> Any:
    if not parts:
        inner = cast("ExtendedDType", aval.dtype).physical_shape if aval.is_extended else ()
        dtype = np.uint32 if aval.is_extended else aval.dtype
        return trace.tracer(np.zeros((0, *aval.shape, *inner), dtype), aval.with_dim(0, length))
    read = [trace.read(x) for x in parts]
    return trace.tracer(np.stack([x for x, _ in read]), read[0][1].with_dim(0, length))


def _run_solver(
    trace: DeviceTrace, primitive: Primitive, args: Sequence[Any], params: Mapping[str, Any]
) -> Sequence[Any]:
    lengths = params["const_lengths"]
    start = sum(lengths[: lengths._fields.index("solve")])
    consts = args[start : start + lengths.solve]
    return staging.eval_closed_jaxpr(params["jaxprs"].solve, *consts, *args[sum(lengths) :])


def _run_shard_map(
    trace: DeviceTrace, primitive: Primitive, args: Sequence[Any], params: Mapping[str, Any]
) -> Sequence[Any]:
    mesh, names = params["mesh"].abstract_mesh, params["newly_manual_axes"]
    sizes = {name: size for name, size in mesh.shape_tuple if name in names}
    region = devices.Region(mesh, sizes, params["check_vma"])
    values = _values(trace, args)

    def body(inner: DeviceTrace, given: Sequence[Any]) -> list[devices.Value]:
        return _values(inner, staging.eval_closed_jaxpr(params["jaxpr"], *given))

    outs = _on_devices(trace, region, body, values, params["in_specs"])
    around = frozenset().union(*(vma.of(value.aval).varying for value in values))
    found = []
    for k, spec in enumerate(params["out_specs"]):
        parts = {place: own[k] for place, own in outs.items()}
        whole = devices.join(parts, spec, sizes, compare=region.check_vma)
        aval = next(iter(parts.values())).aval
        kind = manual_type(around)
        if region.check_vma:
            kind = manual_type(*(state - names for state in vma.of(aval)))
        found.append(_whole(trace, whole, aval.with_manual_type(kind)))
    return found


def _run_pmap(
    trace: DeviceTrace, primitive: Primitive, args: Sequence[Any], params: Mapping[str, Any]
) -> Sequence[Any]:
    name, size = params["axis_name"], params["axis_size"]
    if size != params["global_axis_size"] or name in dict(trace.device.coordinates):
        error(
            NotImplementedError,
            "testing.simulate",
            "this pmap cannot be simulated.",
            got=f"axis {name!r} of size {size}, {params['global_axis_size']} in all processes",
            expected="one process, and an axis of another name than those around",
        )
    region = devices.Region(meshes.EMPTY, {name: size}, check_vma=False, kind="pmap")
    in_axes, out_axes = params["in_axes"], params["out_axes"]

    def body(inner: DeviceTrace, given: Sequence[Any]) -> list[devices.Value]:
        own = [_without_dim(inner, x, axis) for x, axis in zip(given, in_axes, strict=True)]
        outs = _values(inner, staging.eval_closed_jaxpr(params["jaxpr"], *own))
        return [_with_dim(value, axis) for value, axis in zip(outs, out_axes, strict=True)]

    specs = [_spec_at(axis, name) for axis in in_axes]
    outs = _on_devices(trace, region, body, _values(trace, args), specs)
    found = []
    for k, axis in enumerate(out_axes):
        parts = {place: own[k] for place, own in outs.items()}
        whole = devices.join(parts, _spec_at(axis, name), region.sizes, compare=False)
        found.append(_whole(trace, whole, next(iter(parts.values())).aval))
    return found


def _on_devices(
    trace: DeviceTrace,
    region: devices.Region,
    body: devices.Body,
    values: Sequence[devices.Value],
    specs: Sequence[PartitionSpec],
) -> dict[Coordinates, list[devices.Value]]:
    """What devices within the device of a trace return."""

    def make_trace(device: Device) -> Any:
        return type(trace)(device, region.check_vma, trace.function_name)

    device = trace.device
    return devices.run(device.machine, device, region, make_trace, body, values, specs)


def _values(trace: DeviceTrace, xs: Sequence[object]) -> list[devices.Value]:
    read = map(trace.read, xs)
    return [devices.Value(array, aval, f"value {i}") for i, (array, aval) in enumerate(read)]


def _whole(trace: DeviceTrace, value: Block, block: AbstractValue) -> DeviceTracer:
    """A value put together from blocks of type `block`."""
    if not isinstance(block, ShapedArray):
        return trace.tracer(value, block)
    return trace.tracer(value, block.update(shape=value.shape[: block.ndim]))


def _spec_at(axis: int | None, name: Hashable) -> PartitionSpec:
    """The spec of values that are split along one dimension."""
    return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, name)


def _without_dim(trace: DeviceTrace, x: object, axis: int | None) -> Any:
    """A slice without the dimension along which it was cut."""
    value, aval = trace.read(x)
    return x if axis is None else trace.tracer(value.squeeze(axis), aval.without_dim(axis))


def _with_dim(value: devices.Value, axis: int | None) -> devices.Value:
    """A result with the dimension along which it is put together."""
    if axis is None:
        return value
    return value._replace(
        array=np.expand_dims(value.array, axis), aval=value.aval.with_dim(axis, 1)
    )


PROGRAMS: dict[str, Program] = {
    "pmap": _run_pmap,
    "shard_map": _run_shard_map,
    "jit": _run_jit,
    "cond": _run_cond,
    "while": _run_while,
    "scan": _run_scan,
    "custom_linear_solve": _run_solver,
    "custom_root": _run_solver,
    **dict.fromkeys(
        ("custom_jvp_call", "custom_vjp_call", "custom_vmap_call", "linear_call", "remat2", "vmap"),
        _run_body,
    ),
}
"""Operations that hold programs, by the names of their primitives."""


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

    def __array__(
        self, dtype: DTypeLike | None = None, copy: bool | None = None
    ) -> np.ndarray[Any, Any]:
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
        self.place = exchanges.place_text(device.coordinates)

    def tracer(self, value: object, aval: AbstractValue) -> DeviceTracer:
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

    def process(
        self, primitive: Primitive, args: Sequence[Any], params: Mapping[str, Any]
    ) -> Sequence[Any]:
        self.device.step()
        run = PROGRAMS.get(primitive.name)
        if run is not None:
            return run(self, primitive, args, params)
        discharge = refs.discharge.of(primitive)
        if discharge is not None and (refs.makes_references.of(primitive) or refs.any_cell(args)):
            out = discharge(*args, **params)
            return out if primitive.multiple_results else (out,)
        read = list(map(self.read, args))
        values, avals = [value for value, _ in read], [aval for _, aval in read]
        if axes.axis_params.of(primitive) or primitive.name in numpy_model.ENDS:
            return self._over_axes(primitive, values, avals, params)
        out = primitive.abstract_eval(*avals, **params)
        out_avals = list(out) if primitive.multiple_results else [out]
        if self.checked:
            counted = [
                vma.of_literal(x) if isinstance(x, _SCALARS) else aval
                for x, aval in zip(args, avals, strict=True)
            ]
            kind = vma.join(primitive, counted)
            out_avals = [aval.with_manual_type(kind) for aval in out_avals]
        return self._compute(primitive, values, avals, out_avals, params)

    def _compute(
        self,
        primitive: Primitive,
        values: Sequence[Any],
        avals: Sequence[Any],
        out_avals: Sequence[Any],
        params: Mapping[str, Any],
    ) -> list[Any]:
        """The results of an operation without communication."""
        found: Any = NotImplemented
        if not any(aval.is_extended for aval in (*avals, *out_avals)):
            found = numpy_model.compute(primitive.name, values, params)
        if found is NotImplemented:
            found = _compiled(primitive, values, avals, params)
        elif not primitive.multiple_results:
            found = [found]
        return [
            self.tracer(value if aval.is_extended else np.asarray(value, aval.dtype), aval)
            for value, aval in zip(found, out_avals, strict=True)
        ]

    def _axis_index(self, name: Hashable) -> DeviceTracer:
        position = dict(self.device.coordinates)[name]
        aval = shaped_array((), np.dtype(np.int32))
        kind = manual_type(axes.typed_among((name,))) if self.checked else aval.manual_axis_type
        return self.tracer(np.asarray(position, np.int32), aval.with_manual_type(kind))

    def _over_axes(
        self,
        primitive: Primitive,
        values: Sequence[Any],
        avals: Sequence[Any],
        params: Mapping[str, Any],
    ) -> list[Any]:
        """The result of an operation that refers to mesh axes.

        A collective that only starts gives a promise, which holds the result from the beginning.
        """
        name = primitive.name
        if name == "axis_index":
            return [self._axis_index(params["axis_name"])]
        if name in numpy_model.ENDS:
            return [values[0]]
        # What no device can do is refused in the words of the primitive, before any waits.
        out = primitive.abstract_eval(*avals, **params)
        if name not in numpy_model.STARTS:
            return self._exchange(primitive, name, values, avals, params)
        base = numpy_model.STARTS[name]
        (arriving,) = self._exchange(primitive, base, values, avals, params)
        return [self.tracer(arriving, out)]

    def _exchange(
        self,
        primitive: Primitive,
        name: str,
        values: Sequence[Any],
        avals: Sequence[Any],
        params: Mapping[str, Any],
    ) -> list[Any]:
        """The result of a collective, or of a cast between states over mesh axes."""
        (key,) = axes.axis_params.of(primitive)
        named = params[key] if isinstance(params[key], tuple) else (params[key],)
        over = tuple(a for a in named if type(a) is not int)
        if name in numpy_model.CASTS:
            answer: Sequence[Any] = values
        elif over:
            where = staging.origin.value or source.capture()
            answer = self.device.communicate(Request(name, over, params, tuple(values), where))
        else:
            (answer,) = numpy_model.exchange(name, params, [values])
        aval = avals[1] if name == "ragged_all_to_all" else avals[0]
        kinds = [vma.of(a) for a in avals]
        kind = _state(name, kinds, axes.typed_among(over), params) if self.checked else kinds[0]
        weak = aval.weak_type and name not in ("all_to_all", "ragged_all_to_all")
        return [self.tracer(x, _type_of(x, aval, weak, kind)) for x in answer]


def _type_of(x: Block, like: ShapedArray, weak_type: bool, kind: ManualAxisType) -> ShapedArray:
    """The type of an array that a collective gives for an operand of type `like`."""
    shape = x.shape
    if like.is_extended:
        shape = shape[: len(shape) - len(cast("ExtendedDType", like.dtype).physical_shape)]
    dtype = like.dtype if like.is_extended else x.dtype
    return like.update(shape=shape, dtype=dtype, weak_type=weak_type).with_manual_type(kind)


def _state(
    name: str, kinds: Sequence[ManualAxisType], over: Sequence[Hashable], params: Mapping[str, Any]
) -> ManualAxisType:
    """How a collective's result stands to the mesh axes: as its operands do to all but `over`."""
    named = frozenset(over)
    sets: dict[str, frozenset[Any]] = {
        "varying": frozenset().union(*(kind.varying for kind in kinds)) - named,
        "unreduced": kinds[0].unreduced - named,
        "reduced": kinds[0].reduced - named,
    }
    state = numpy_model.result_state(name, params)
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


def array(value: Block, aval: AbstractValue) -> Any:
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
    primitive: Primitive, values: Sequence[Any], avals: Sequence[Any], params: Mapping[str, Any]
) -> list[Any]:
    """The results of the compiled operation, as NumPy arrays."""
    if rules.sharding_param.of(primitive):
        params = {**params, rules.sharding_param.of(primitive): None}
    with elsewhere():
        args = list(map(array, values, avals))
        outs = eager.EAGER.process(primitive, args, params)
        return [x if isinstance(x, Token) else whole_value(x)[0] for x in outs]
