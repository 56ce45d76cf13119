"""Simulated devices: coroutines, and the blocks of whole arrays that they get and give.

Input: for each device a function.  Output: their results; or, as soon as no device can go on, a
`CollectiveMismatch` that tells what each one waits for.  Exactly one device runs at a time, until
it waits for others: a device is a thread that runs while it holds the baton; whoever gives the
baton away chooses who gets it, the first device that is ready.

`run` is what a mapping construct does: it cuts whole NumPy arrays into the arguments of each
device, along the mesh axes that specs name, and returns what one function gives on each; `join`
puts the results together.
"""

from __future__ import annotations

import contextvars
import functools
import itertools
import math
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import axes, meshes, tree
from minijax.core.config import config
from minijax.core.errors import error
from minijax.core.meshes import AbstractMesh, AxisType, PartitionSpec
from minijax.core.trace import current
from minijax.core.value_placement import NOT_MANUAL, manual_type
from minijax.interpreters import staging
from minijax.testing import exchanges, numpy_model
from minijax.testing.exchanges import Coordinates, Exchange, Request, difference

USER = "testing.simulate"
Sizes = Mapping[Hashable, int]


class Value(NamedTuple):
    """A value that enters or leaves a device: its NumPy array, its type, and its name."""

    array: Any
    aval: Any
    name: str


def specs_of(specs: object, values: object, argument: str, what: str) -> list[PartitionSpec]:
    """A spec for each leaf of some values; None stands for one that mentions no axis.

    Raises:
        ValueError: `specs` is not a tree prefix of the values.
        TypeError: it holds something else.
    """
    found = tree.broadcast_prefix(
        specs,
        values,
        is_leaf=lambda x: x is None or isinstance(x, PartitionSpec),
        user=USER,
        first=argument,
        second=what,
    )
    for spec in found:
        if spec is not None and not isinstance(spec, PartitionSpec):
            error(
                TypeError,
                USER,
                f"{argument} must hold partition specs.",
                got=f"{spec!r} of type {type(spec).__name__}",
                fix="P('x') or P(), with P = minijax.sharding.PartitionSpec",
            )
    return [PartitionSpec() if spec is None else spec for spec in found]


def cut(value: Value, spec: PartitionSpec, sizes: Sizes, place: Coordinates) -> Any:
    """One device's block of an argument."""
    index = []
    for size, names in zip(value.aval.shape, spec.dims(value.aval.ndim), strict=True):
        count = math.prod(sizes[name] for name in names)
        position = _position(names, sizes, place)
        index.append(slice(size // count * position, size // count * (position + 1)))
    return np.asarray(value.array[tuple(index)])


def _position(names: Sequence[Any], sizes: Sizes, place: Coordinates) -> int:
    """Which of the parts into which axes cut a dimension a device has."""
    at = dict(place)
    position = 0
    for name in names:
        position = position * sizes[name] + at[name]
    return position


def check_cut(value: Value, spec: PartitionSpec, sizes: Sizes) -> None:
    """Refuses to cut an argument as a spec says.

    Raises:
        ValueError: the spec does not fit the argument or the mesh.
        NotImplementedError: it says that the argument is a sum of which there are no summands.
    """
    _check_names(value, spec, sizes)
    if spec.unreduced:
        error(
            NotImplementedError,
            USER,
            f"the argument {value.name} is to be given as summands.",
            got=repr(spec),
            fix="give the summands along an axis of their own, and lax.pcast inside",
        )
    for size, names in zip(value.aval.shape, spec.dims(value.aval.ndim), strict=True):
        count = math.prod(sizes[name] for name in names)
        if size % count:
            error(
                ValueError,
                USER,
                f"a dimension of {value.name} cannot be cut into equal parts.",
                got=f"{value.aval}, {spec}",
                expected=f"a multiple of {count}, for {size}",
            )


def _check_names(value: Value, spec: PartitionSpec, sizes: Sizes) -> None:
    if len(spec) > value.aval.ndim:
        error(
            ValueError,
            USER,
            f"the spec of {value.name} has more entries than there are dimensions.",
            got=f"{value.aval}, {spec}",
        )
    for name in (*spec.names(), *spec.unreduced, *spec.reduced):
        if name not in sizes:
            error(
                ValueError,
                USER,
                f"the spec of {value.name} names an axis along which there are no devices.",
                got=f"{spec}, devices along {meshes.names_text(list(sizes))}",
            )


def join(
    blocks: Mapping[Coordinates, Value], spec: PartitionSpec, sizes: Sizes, *, compare: bool
) -> Any:
    """A result put together from what the devices return.

    Args:
        blocks: each device's.
        spec: along which axes each dimension is cut.
        sizes: of the axes along which there are devices.
        compare: whether devices along axes that the spec does not mention must agree; otherwise
            the first one's block is taken.

    Raises:
        ValueError: the types of blocks differ, or the spec does not fit; or devices disagree.
    """
    first = next(iter(blocks.values()))
    _check_names(first, spec, sizes)
    _check_types(blocks)
    mentioned = {*spec.names(), *spec.unreduced}
    same = [name for name in sizes if name not in mentioned]
    if compare:
        _check_same(blocks, spec, same)
    if not isinstance(first.array, np.ndarray):
        return first.array
    dims = spec.dims(first.aval.ndim)
    # What random keys are made of has dimensions behind those of the keys.
    block_shape = first.array.shape
    counts = [math.prod(sizes[name] for name in names) for names in dims]
    counts += [1] * (len(block_shape) - len(counts))
    whole_shape = [n * count for n, count in zip(block_shape, counts, strict=True)]
    whole = np.zeros(whole_shape, first.array.dtype)
    for place, block in blocks.items():
        if any(i and name in same for name, i in place):
            continue
        positions = [_position(names, sizes, place) for names in dims]
        index = tuple(
            slice(n * i, n * (i + 1)) for n, i in zip(block_shape, positions, strict=False)
        )
        # Along unreduced axes each device holds a summand.
        whole[index] = whole[index] + block.array if spec.unreduced else block.array
    return whole


def _check_types(blocks: Mapping[Coordinates, Value]) -> None:
    (first, value), *others = blocks.items()
    for place, other in others:
        if (value.aval.shape, value.aval.dtype) != (other.aval.shape, other.aval.dtype):
            error(
                ValueError,
                USER,
                f"devices return different types for {value.name}.",
                got={
                    exchanges.place_text(first): value.aval,
                    exchanges.place_text(place): other.aval,
                },
            )


def _check_same(
    blocks: Mapping[Coordinates, Value], spec: PartitionSpec, same: Sequence[Any]
) -> None:
    for place, block in blocks.items():
        first = tuple((name, 0 if name in same else i) for name, i in place)
        if _is_same(blocks[first].array, block.array):
            continue
        both = {at: _shortened(blocks[at].array) for at in (first, place)}
        error(
            ValueError,
            USER,
            f"{block.name} differs along {meshes.names_text(same)}, which its spec {spec} does "
            "not mention.",
            got=exchanges.lines(both),
            expected="the same on all devices along the axes that a spec does not mention",
            fix="mention the axis in out_specs; or reduce over it with lax.psum or lax.pmean; "
            "or pass check_vma=False to get the first device's result",
        )


def _is_same(x: object, y: object) -> bool:
    if not (isinstance(x, np.ndarray) and isinstance(y, np.ndarray)):
        return True
    # Bytes, so that a NaN is the same as itself.
    return x.tobytes() == y.tobytes() or bool(np.all(x == y))


def _shortened(x: object) -> str:
    text = " ".join(str(x).split())
    return text if len(text) < 80 else f"{text[:76]} ..."


class Stopped(BaseException):
    """Ends the thread of a device when the others cannot go on; no error of the user's program."""


class Device:
    """One simulated device: its place, what it does now, and its baton.

    Attributes:
        coordinates: its place; empty for what starts the others and waits for them.
        state: `"ready"`, `"waiting"` in a collective, `"apart"` while devices within it run,
            `"finished"`, `"raised"` or `"stopped"`.
        request: the collective that it waits in.
        answer: what that gave.
        error: what it raised.
        children: the devices within it.
    """

    def __init__(self, coordinates: Coordinates, machine: Machine) -> None:
        self.coordinates = coordinates
        self.machine = machine
        self.state = "ready"
        self.request: Request | None = None
        self.answer: Sequence[np.ndarray[Any, Any]] = ()
        self.error: BaseException | None = None
        self.children: list[Device] = []
        self.thread = threading.current_thread()
        self._operations = machine.max_operations
        self._baton = threading.Lock()
        self._baton.acquire()

    def start(self, function: Callable[[], Any], results: dict[Coordinates, Any]) -> None:
        """Makes the thread of the device, which waits for the baton."""
        context = contextvars.copy_context()
        self.thread = threading.Thread(
            target=context.run, args=(self._live, function, results), daemon=True
        )
        self.thread.start()

    def step(self) -> None:
        """Counts one operation.

        Raises:
            RuntimeError: the device has done too many; it may run for ever.
        """
        if self.machine.stopped:
            raise Stopped
        self._operations -= 1
        if self._operations < 0:
            error(
                RuntimeError,
                "testing.simulate",
                f"the device {exchanges.place_text(self.coordinates)} has done "
                f"{self.machine.max_operations} operations and not come to an end.",
                expected="a program that ends; the limit is there to find endless loops",
                fix="look at the condition of the loop, or raise max_operations",
            )

    def communicate(self, request: Request) -> Sequence[np.ndarray[Any, Any]]:
        """Waits until all devices of the group want the same; this device's results."""
        if self.machine.stopped:
            raise Stopped
        self.request, self.state = request, "waiting"
        self.pause()
        return self.answer

    def pause(self) -> None:
        """Gives the baton away, and returns when it comes back."""
        following = self.machine.following()
        if following is not self:
            following.resume()
            self._baton.acquire()
        if self.machine.stopped:
            raise Stopped

    def resume(self) -> None:
        """Gives this device the baton."""
        self._baton.release()

    def stop(self) -> None:
        """Ends the thread, if it has not ended yet."""
        if self.state not in ("finished", "raised"):
            self.resume()
        # What computes without end and without operations cannot be ended; nobody waits for it.
        self.thread.join(timeout=1.0)

    def _live(self, function: Callable[[], Any], results: dict[Coordinates, Any]) -> None:
        self._baton.acquire()
        machine = self.machine
        try:
            if machine.stopped:
                raise Stopped
            results[self.coordinates] = function()
            self.state = "finished"
        except Stopped:
            self.state = "stopped"
        except BaseException as error:
            self.state, self.error = "raised", error
            machine.failed = machine.failed or self
        # While devices are being stopped, nobody waits for the baton.
        if not machine.stopped:
            machine.following().resume()


class Machine:
    """All devices of a simulation, and who of them runs next.

    Args:
        max_operations: how many operations a device may do.
        records: where to write down the exchanges, if anywhere.
    """

    def __init__(self, max_operations: int, records: list[Exchange] | None = None) -> None:
        self.max_operations = max_operations
        self.records = records
        self.root = Device((), self)
        self.devices: dict[Coordinates, Device] = {(): self.root}
        self.failed: Device | None = None
        self.stopped = False
        self._failure: exchanges.CollectiveMismatch | None = None
        self._sizes: dict[Hashable, int] = {}

    def run(
        self, parent: Device, functions: Mapping[Coordinates, Callable[[], Any]]
    ) -> dict[Coordinates, Any]:
        """Runs a function on each of some new devices, while `parent` waits; their results.

        Raises:
            CollectiveMismatch: no device can go on.
            Exception: what the function raised on one device, with a note on all of them.
        """
        results: dict[Coordinates, Any] = {}
        for coordinates, function in functions.items():
            device = self.devices[coordinates] = Device(coordinates, self)
            for name, i in coordinates:
                self._sizes[name] = max(self._sizes.get(name, 0), i + 1)
            parent.children.append(device)
            device.start(function, results)
        parent.state = "apart"
        try:
            parent.pause()
            if self.failed is not None:
                assert self.failed.error is not None
                note = exchanges.note_of_failure(self.failed, self.devices, self.members)
                self.failed.error.add_note(note)
                raise self.failed.error
            if self._failure is not None:
                raise self._failure
        finally:
            if parent is self.root and any(c.state != "finished" for c in parent.children):
                self._stop()
        for device in parent.children:
            del self.devices[device.coordinates]
        parent.children = []
        return results

    def following(self) -> Device:
        """The device that runs next: the first that is ready, else after collectives took place."""
        while self.failed is None and self._failure is None:
            for device in self.devices.values():
                if device.state == "apart" and all(c.state == "finished" for c in device.children):
                    device.state = "ready"
                if device.state == "ready":
                    return device
            if not self._exchange():
                break
        return self.root

    def members(self, device: Device) -> list[Coordinates]:
        """The group that a device waits for, in the order in which the collective counts."""
        request = device.request
        assert request is not None
        axes = request.axes
        if request.name in numpy_model.IN_MESH_ORDER:
            axes = tuple(name for name, _ in device.coordinates if name in axes)
        found: list[dict[Hashable, int]] = [dict(device.coordinates)]
        for name in axes:
            found = [{**place, name: i} for place in found for i in range(self._sizes[name])]
        return [tuple(place.items()) for place in found]

    def _exchange(self) -> bool:
        """Lets each collective take place in which a whole group waits; whether any did.

        Otherwise says what is wrong.
        """
        happened = False
        for device in self.devices.values():
            if device.state != "waiting":
                continue
            group = [self.devices.get(place) for place in self.members(device)]
            requests = [d.request for d in group if d is not None and d.request is not None]
            if len(requests) < len(group) or difference(requests) is not None:
                continue
            fault = self._perform([d for d in group if d is not None], requests)
            if fault is not None:
                self._failure = exchanges.mismatch(self.devices, self.members, fault)
                return False
            happened = True
        if not happened:
            self._failure = exchanges.mismatch(self.devices, self.members)
        return happened

    def _perform(self, group: Sequence[Device], requests: Sequence[Request]) -> str | None:
        """Gives each device of a group its results; what is wrong with the request, if anything."""
        request = requests[0]
        operands = tuple(r.operands for r in requests)
        fault = numpy_model.fault(request.name, request.params, operands)
        if fault is not None:
            return f"{request.name} over {request.axes}: {fault}"
        try:
            results = numpy_model.exchange(request.name, request.params, operands)
        except ValueError as error:
            return f"{request.name} over {request.axes} cannot be computed: {error}"
        for device, result in zip(group, results, strict=True):
            device.answer, device.request, device.state = tuple(result), None, "ready"
        if self.records is not None:
            exchange = Exchange(
                request.name,
                request.axes,
                request.params,
                exchanges.user_line(request.source),
                tuple(device.coordinates for device in group),
                operands,
                tuple(map(tuple, results)),
            )
            self.records.append(exchange)
        return None

    def _stop(self) -> None:
        """Ends all threads, one after the other; those within others first."""
        self.stopped = True
        for device in reversed(self.devices.values()):
            if device is not self.root:
                device.stop()


Body = Callable[[Any, Sequence[Any]], Any]
"""What one device does: of its trace and its arguments."""


class Region(NamedTuple):
    """A part of a program that is written per device.

    Attributes:
        mesh: the whole mesh.
        sizes: the axes along which there are devices, with their sizes.
        check_vma: whether types tell over which axes values vary.
        kind: what binds the axes: `"mesh"` or `"pmap"`.
    """

    mesh: AbstractMesh
    sizes: dict[Hashable, int]
    check_vma: bool
    kind: str = "mesh"


def run(
    machine: Machine,
    parent: Device,
    region: Region,
    make_trace: Callable[[Device], Any],
    body: Body,
    values: Sequence[Value],
    specs: Sequence[PartitionSpec],
) -> dict[Coordinates, Any]:
    """What `body` returns on each device.

    Args:
        machine: what runs the devices.
        parent: the device that asks, and waits for them.
        region: the axes along which they are.
        make_trace: makes the trace of a device.
        body: what each does.
        values: the arguments, whole.
        specs: how they are cut.
    """
    settings = _Settings()

    def on_device(place: Coordinates) -> Any:
        settings.restore()
        axes.check_vma.set_local(region.check_vma)
        manual = dict.fromkeys(region.sizes, AxisType.Manual)
        if region.kind == "mesh":
            meshes.abstract_mesh.set_local(region.mesh.update_axis_types(manual))
        trace = make_trace(machine.devices[place])
        current.set_local(trace)
        bound = [axes.Axis(name, size, region.kind) for name, size in region.sizes.items()]
        with axes.extend_all((*settings.axes, *bound)):
            args = [
                _argument(trace, region, value, spec)
                for value, spec in zip(values, specs, strict=True)
            ]
            result = body(trace, args)
        trace.finished = True
        return result

    places = _places(parent.coordinates, region)
    return machine.run(parent, {place: functools.partial(on_device, place) for place in places})


def _places(around: Coordinates, region: Region) -> list[Coordinates]:
    """The devices of a region within another: axes of one mesh stand in the order of the mesh."""
    order = region.mesh.axis_names
    found = []
    for positions in itertools.product(*map(range, region.sizes.values())):
        own = zip(region.sizes, positions, strict=True)
        place = [*around, *own]
        inner = sorted((at for at in place if at[0] in order), key=lambda at: order.index(at[0]))
        found.append((*(at for at in place if at[0] not in order), *inner))
    return found


def _argument(trace: Any, region: Region, value: Value, spec: PartitionSpec) -> Any:
    block = cut(value, spec, region.sizes, trace.device.coordinates)
    aval = value.aval.with_shape(block.shape[: value.aval.ndim])
    if not region.check_vma:
        aval = aval.with_manual_type(NOT_MANUAL)
    else:
        varying, unreduced, reduced = aval.manual_axis_type
        kind = manual_type(varying.union(spec.names()), unreduced, reduced | spec.reduced)
        aval = aval.with_manual_type(kind)
    return trace.tracer(block, aval)


class _Settings:
    """The settings of the thread that asks for devices, for theirs."""

    def __init__(self) -> None:
        states: list[Any] = [state.native for state in config]
        states += [staging.scope, staging.origin, meshes.abstract_mesh]
        self._values: Mapping[Any, Any] = {state: state.value for state in states}
        self.axes = axes.in_scope()

    def restore(self) -> None:
        """Makes the settings those of the thread that calls."""
        for state, value in self._values.items():
            state.set_local(value)
