"""The oracle of per-device programs: N devices simulated in NumPy, without XLA.

Input: a function of one device's blocks, as `shard_map` takes it, a mesh, and specs.  Output: the
same results, found in another way: each device runs the function itself, on NumPy arrays, and waits
for the others in collectives, whose meaning is written down in `numpy_model`.  No real
devices are needed, and Python may branch on what a device knows.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from minijax.core import meshes, tree, tree_errors
from minijax.core.aval import has_aval
from minijax.core.errors import TracerArrayConversionError, error
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.meshes import AbstractMesh, MeshAxes
from minijax.core.trace import Tracer, current
from minijax.interpreters import flattening, staging
from minijax.testing import device_trace, devices, exchanges
from minijax.testing.device_trace import DeviceTrace
from minijax.testing.devices import Device, Machine
from minijax.testing.exchanges import Coordinates, Exchange

MAX_OPERATIONS = 100_000

Program = Callable[..., Any] | ClosedJaxpr
"""What one device runs."""

MeshLike = MeshAxes | Mapping[Any, int]
"""A mesh, an abstract one, or sizes by names of axes."""


def simulate(
    f: Program,
    mesh: MeshLike,
    in_specs: object,
    out_specs: object,
    *,
    axis_names: Iterable[Hashable] | str | None = None,
    check_vma: bool = True,
    trace: bool = False,
    max_operations: int = MAX_OPERATIONS,
) -> Callable[..., Any]:
    """A function that runs `f` once for each device of a mesh, in NumPy, and joins the results.

    The result of `shard_map` for the same arguments, without XLA and without devices.  Devices take
    turns: the first runs until it waits in a collective, then the second, and so on.  Python may
    branch on values, print them, and loop on them: they are known.

    Source:     an independent model of what per-device programs mean.

    Args:
        f: the function of one device's blocks; or a closed jaxpr, with a list of results.
        mesh: a mesh, an abstract mesh, or a dict of sizes by names.
        in_specs: a tree prefix of the arguments with partition specs: how they are cut.
        out_specs: the same for the results: how they are put together.  Of what is the same along
            an axis, such as what a spec does not mention, the first device's is taken.
        axis_names: the axes along which there are devices; all by default.
        check_vma: whether types tell over which axes values vary, and whether what is said to be
            the same on several devices is compared.
        trace: whether to return, beside the results, a list of all `Exchange`s that took place.
        max_operations: how many operations one device may do, lest a loop runs for ever.

    Returns:
        A function of whole arrays, with NumPy arrays as results.

    Raises:
        CollectiveMismatch: the devices wait for each other in collectives that do not fit.
        ValueError: the specs do not fit the arrays; or results differ that should not.
        RuntimeError: a device has done `max_operations`.

    Example:
        >>> from minijax.testing import simulate
        >>> total = simulate(lambda x: lax.psum(x, "x"), {"x": 1000}, jax.P("x"), jax.P())
        >>> total(np.arange(1000))
        array([499500], dtype=int32)
    """

    @_named_after(f)
    def run(*args: Any) -> Any:
        records: list[Exchange] = []
        simulation = Simulation(f, mesh, axis_names, check_vma, max_operations, records)
        outs = simulation.run(args, in_specs)
        joined = simulation.joined(outs, out_specs)
        return (joined, records) if trace else joined

    return run


def simulate_devices(
    f: Program,
    mesh: MeshLike,
    in_specs: object,
    *,
    axis_names: Iterable[Hashable] | str | None = None,
    check_vma: bool = True,
    max_operations: int = MAX_OPERATIONS,
) -> Callable[..., Any]:
    """As `simulate`, but returns what each device does, in a dict by its position in the mesh.

    Source:     an independent model of what per-device programs mean.

    Returns:
        A function of whole arrays.  The keys of its result are tuples, with a position for each
        axis of the mesh along which there are devices; the values are trees of NumPy arrays.

    Raises:
        CollectiveMismatch: the devices wait for each other in collectives that do not fit.

    Example:
        >>> from minijax.testing import simulate_devices
        >>> each = simulate_devices(lambda x: x + lax.axis_index("x"), {"x": 3}, jax.P("x"))
        >>> each(np.array([10, 20, 30]))[(2,)]
        array([32], dtype=int32)
    """

    @_named_after(f)
    def run(*args: Any) -> dict[tuple[int, ...], Any]:
        simulation = Simulation(f, mesh, axis_names, check_vma, max_operations)
        outs = simulation.run(args, in_specs)
        return {
            tuple(i for _, i in coordinates): out.unflatten([value.array for value in values])
            for coordinates, (out, values) in outs.items()
        }

    return run


def simulate_program(
    f: Callable[..., Any], *, max_operations: int = MAX_OPERATIONS
) -> Callable[..., Any]:
    """A function that computes what `f` does in NumPy, each map over devices on simulated ones.

    Every operation of `f` is computed as on one device of `simulate`; `shard_map` and `pmap` inside
    of it start devices of their own.  What transformations make of such maps, such as the gradient
    of a loss that is computed by many devices, can so be compared.

    Source:     an independent model of what per-device programs mean.

    Returns:
        A function with the arguments of `f`, and NumPy arrays in place of its results.

    Raises:
        CollectiveMismatch: devices wait for each other in collectives that do not fit.

    Example:
        >>> from minijax.testing import simulate_program
        >>> mesh, P = jax.sharding.AbstractMesh((4,), ("x",)), jax.P
        >>> total = lambda x: lax.psum(x, "x")
        >>> f = jax.shard_map(total, mesh=mesh, in_specs=P("x"), out_specs=P())
        >>> simulate_program(lambda x: 2 * f(x))(np.arange(4))
        array([12], dtype=int32)
    """

    @_named_after(f)
    def run(*args: Any, **kwargs: Any) -> Any:
        machine = Machine(max_operations)
        trace = DeviceTrace(machine.root, False, flattening.function_name(f))
        leaves, in_tree = tree.flatten((args, kwargs))
        names = tree_errors.argument_paths(in_tree)
        _check_arrays(leaves, names)
        _check_known(leaves, names)
        known = [trace.tracer(*device_trace.whole_value(x)) for x in leaves]
        around = current.swap_local(trace)
        try:
            given, named = in_tree.unflatten(known)
            outs, out_tree = tree.flatten(f(*given, **named))
            found = [trace.read(x) for x in outs]
        finally:
            current.set_local(around)
            trace.finished = True
        return out_tree.unflatten([device_trace.array(*pair) for pair in found])

    return run


def _named_after(f: Program) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    wrapped: Any = f
    names = ("__module__", "__name__", "__qualname__", "__doc__")
    return functools.wraps(wrapped, assigned=names, updated=())


Outs = Mapping[Coordinates, tuple[Any, Sequence[devices.Value]]]


class Simulation:
    """One run of a per-device function on all devices of a mesh."""

    def __init__(
        self,
        function: Program,
        mesh: MeshLike,
        axis_names: Iterable[Hashable] | str | None,
        check_vma: bool,
        max_operations: int,
        records: list[Exchange] | None = None,
    ) -> None:
        if isinstance(function, ClosedJaxpr):
            function = functools.partial(staging.eval_closed_jaxpr, function)
        self.function = function
        self.name = flattening.function_name(function)
        self.signature: inspect.Signature | None = None
        with contextlib.suppress(TypeError, ValueError):
            self.signature = inspect.signature(function)
        self.mesh = _abstract(mesh)
        self.sizes = _sizes(self.mesh, axis_names)
        self.check_vma = check_vma
        self.machine = Machine(max_operations, records)

    def run(self, args: tuple[Any, ...], in_specs: object) -> Outs:
        """The flat results of each device, and their tree."""
        leaves, in_tree = tree.flatten((args, {}))
        specs = devices.specs_of(in_specs, args, "in_specs", "args")
        names = tree_errors.argument_paths(in_tree, self.signature)
        _check_arrays(leaves, names)
        _check_known(leaves, names)
        values = [
            devices.Value(*device_trace.whole_value(x), name)
            for x, name in zip(leaves, names, strict=True)
        ]
        for value, spec in zip(values, specs, strict=True):
            devices.check_cut(value, spec, self.sizes)
        region = devices.Region(self.mesh, self.sizes, self.check_vma)

        def body(trace: DeviceTrace, leaves: Sequence[Any]) -> tuple[Any, list[devices.Value]]:
            given, _ = in_tree.unflatten(leaves)
            outs, out_tree = tree.flatten(self.function(*given))
            names = flattening.result_paths(out_tree)
            _check_arrays(outs, names)
            found = [trace.read(x) for x in outs]
            return out_tree, [
                devices.Value(array, aval, name)
                for (array, aval), name in zip(found, names, strict=True)
            ]

        def make_trace(device: Device) -> DeviceTrace:
            return DeviceTrace(device, self.check_vma, self.name)

        machine = self.machine
        return devices.run(machine, machine.root, region, make_trace, body, values, specs)

    def joined(self, outs: Outs, out_specs: object) -> Any:
        """The results of all devices put together."""
        first = next(iter(outs))
        out_tree, _ = outs[first]
        for place, (other, _) in outs.items():
            if other != out_tree:
                error(
                    ValueError,
                    devices.USER,
                    "devices return results of different structures.",
                    got={exchanges.place_text(first): out_tree, exchanges.place_text(place): other},
                )
        dummy = out_tree.unflatten([0] * out_tree.num_leaves)
        specs = devices.specs_of(out_specs, dummy, "out_specs", "the results")
        joined = []
        for k, spec in enumerate(specs):
            parts = {place: values[k] for place, (_, values) in outs.items()}
            whole = devices.join(parts, spec, self.sizes, compare=self.check_vma)
            joined.append(device_trace.array(whole, parts[first].aval))
        return out_tree.unflatten(joined)


def _check_arrays(leaves: Sequence[Any], names: Sequence[str]) -> None:
    for x, name in zip(leaves, names, strict=True):
        if not has_aval(x):
            error(
                TypeError,
                devices.USER,
                f"{name} is neither an array nor a number.",
                got=f"{x!r} of type {type(x).__name__}",
            )


def _check_known(leaves: Sequence[Any], names: Sequence[str]) -> None:
    """Refuses traced arguments: devices compute with what is known."""
    for x, name in zip(leaves, names, strict=True):
        if isinstance(x, Tracer):
            error(
                TracerArrayConversionError,
                devices.USER,
                f"the argument {name} is not known.",
                got=f"{x.aval}, {x.origin()}",
                fix="transform the function that is simulated, not the simulation: "
                "simulate(jax.grad(f), ...)",
            )


def _abstract(mesh: MeshLike) -> AbstractMesh:
    if isinstance(mesh, Mapping):
        return AbstractMesh(tuple(mesh.values()), tuple(mesh))
    if isinstance(mesh, MeshAxes):
        return mesh.abstract_mesh  # type: ignore[attr-defined]
    error(
        TypeError,
        devices.USER,
        "mesh must be a Mesh, an AbstractMesh, or a dict of sizes.",
        got=f"{mesh!r} of type {type(mesh).__name__}",
    )


def _sizes(mesh: AbstractMesh, axis_names: Iterable[Hashable] | str | None) -> dict[Hashable, int]:
    wanted: Any = axis_names
    if axis_names is None:
        wanted = mesh.axis_names
    elif isinstance(axis_names, str):
        wanted = (axis_names,)
    strange = [name for name in wanted if name not in mesh.axis_names]
    if strange or not wanted:
        error(
            ValueError,
            devices.USER,
            f"axis_names has no axis of the mesh: {meshes.names_text(strange)}."
            if strange
            else "there are no axes along which devices could be.",
            got=str(mesh),
        )
    return {name: size for name, size in mesh.shape_tuple if name in wanted}
