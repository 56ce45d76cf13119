"""Step by step: the function of a `shard_map` run by Python, each operation as it comes.

Input: a function of blocks, and whole arguments.  Output: whole results.  The blocks of a value are
stacked in one array, split over the devices; each operation is a `shard_map` of its own in the
trace around, so that whatever that trace does, it does here too.  `disable_jit` asks for this, and
functions in which Python looks at a value do.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from minijax.core import axes as core_axes
from minijax.core import config, dtypes, meshes, refs, vma
from minijax.core.aval import AbstractTodo, AbstractValue, ShapedArray, aval_of
from minijax.core.cache import cached
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr, DebugInfo
from minijax.core.meshes import PartitionSpec
from minijax.core.operators import Avals, Values
from minijax.core.trace import Params, Trace, Tracer, check_alive, current
from minijax.interpreters import casts, confinement, passes, staging
from minijax.interpreters.named_batching import SpmdBatchTrace
from minijax.interpreters.staging import eval_closed_jaxpr
from minijax.interpreters.structural import new_axis
from minijax.lax import references
from minijax.lax.shape import squeeze
from minijax.lowering import eager
from minijax.runtime.array import is_array
from minijax.sharding.named import NamedSharding
from minijax.transforms.per_device.region import Region, Specs, match

if TYPE_CHECKING:
    from minijax.core.primitive import Primitive

_SCALARS = (int, float, bool, complex, np.generic)


def computes(trace: object) -> bool:
    """Whether operations in a trace run at once, so that values are known."""
    while trace is not eager.EAGER:
        if isinstance(trace, SpmdBatchTrace) and trace.is_split_by_user:
            # An axis along which the batch is split is none to stack blocks along.
            return False
        around = getattr(trace, "parent", None)
        if around is None:
            return False
        trace = around
    return True


class Blocks(Tracer):
    """The blocks of a value, one for each device.

    Attributes:
        value: the blocks, stacked along dimension 0; the value itself where all are the same.
    """

    __slots__ = ("value",)

    traced_by: StepTrace
    value: Any

    def concrete(self) -> Any:
        if self.traced_by.stacked(self.aval):
            return None
        value = self.value
        return value.concrete() if isinstance(value, Tracer) else value

    def known_parts(self) -> list[tuple[str, Any]]:
        return list(_parts(self))

    def origin(self) -> str:
        names = self.traced_by.stacked(self.aval)
        if not names:
            return "whose value is not known around the shard_map"
        return f"which may differ between devices along {meshes.names_text(names)}"

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray[Any, Any]:
        known = self.concrete()
        if known is None:
            return super().__array__(*args, **kwargs)
        return np.asarray(known, *args, **kwargs)

    def __str__(self) -> str:
        return "\n".join(_texts(self)) or super().__repr__()

    def __repr__(self) -> str:
        return "\n".join([f"{type(self).__name__}({self.aval}):", *_texts(self)])

    def __format__(self, spec: str) -> str:
        return super().__format__(spec) if spec else str(self)


class StepTrace(Trace):
    """Applies operations to the blocks of all devices, in `parent`."""

    __slots__ = ("_outside", "_own_cells", "parent", "primitive", "region")

    def __init__(self, primitive: Any, parent: Trace, region: Region, function_name: str) -> None:
        super().__init__(function_name)
        # The operation `shard_map`.
        self.primitive = primitive
        self.parent = parent
        self.region = region
        scope, mesh = core_axes.in_scope(), meshes.abstract_mesh.value
        self._outside = (scope, mesh, core_axes.check_vma.value)
        self._own_cells: list[refs.Cell] = []

    @contextlib.contextmanager
    def outside(self) -> Iterator[None]:
        """While this is entered, operations go to the parent, where the `shard_map` is called."""
        scope, mesh, checked = self._outside
        with (
            config.override(current, self.parent),
            config.override(meshes.abstract_mesh, mesh),
            config.override(core_axes.check_vma, checked),
            core_axes.only(scope),
        ):
            yield

    def stacked(self, aval: AbstractValue) -> tuple[Any, ...]:
        """The axes along which the blocks of a value are kept one by one."""
        return _stacked(self.region, aval)

    def owns(self, x: object) -> bool:
        """Whether a value is blocks of this trace."""
        return type(x) is Blocks and x.traced_by is self

    def tracer(self, value: object, aval: ShapedArray) -> Blocks:
        """The tracer of blocks of type `aval`."""
        tracer = object.__new__(Blocks)
        tracer.traced_by = self
        tracer.aval = aval
        tracer.value = value
        return tracer

    def process(self, primitive: Any, args: Sequence[Any], params: Params) -> Sequence[Any]:
        if confinement.stage_functions.of(primitive) is not None:
            return self._call(primitive, args, params)
        discharge = refs.discharge.of(primitive)
        if discharge is not None and (refs.makes_references.of(primitive) or refs.any_cell(args)):
            return self._with_cells(primitive, args, params)
        if any(self.owns(x) and isinstance(x.value, Started) for x in args):
            return self._finish(primitive, args, params)
        operands = tuple(map(self._operand, args))
        step = _step(self.region, primitive, (*params.items(),), operands, config.trace_context())
        if any(isinstance(aval, AbstractTodo) for aval in step.out_avals):
            started = Started(primitive, args, params)
            return [self.tracer(started, aval) for aval in step.out_avals]
        return self._run(step, args)

    def _finish(self, primitive: Any, args: Sequence[Any], params: Params) -> Sequence[Any]:
        """Starts and finishes an operation in one program: what has only started stays in one."""
        started = [x.value if self.owns(x) else None for x in args]
        groups = [
            list(s.args) if isinstance(s, Started) else [x]
            for s, x in zip(started, args, strict=True)
        ]

        def function(*blocks: Any) -> Sequence[Any]:
            rest = iter(blocks)
            values = []
            for s, group in zip(started, groups, strict=True):
                own = [next(rest) for _ in group]
                values.append(
                    s.primitive.bind(*own, **s.params) if isinstance(s, Started) else own[0]
                )
            return primitive.bind_all(*values, **params)

        given = [x for group in groups for x in group]
        operands = list(map(self._operand, given))
        return self._run(_program(self.region, function, operands, primitive.name), given)

    def _call(self, primitive: Any, args: Values, params: Params) -> Sequence[Any]:
        """Calls a function that has a rule of the user's, which traces around may ask for."""
        around: Trace = self
        while isinstance(around, StepTrace):
            around = around.parent
        if around is eager.EAGER:
            return primitive.impl(*args, **params)

        function = functools.partial(primitive.bind_all, **params)
        jaxpr, consts = staging.stage(function, list(map(aval_of, args)))
        closed = ClosedJaxpr(passes.close_over_constants(jaxpr))
        given = [*consts, *args]
        operands = list(map(self._operand, given))
        return self._run(
            _program(
                self.region, functools.partial(eval_closed_jaxpr, closed), operands, primitive.name
            ),
            given,
        )

    def _run(self, step: Step, args: Sequence[Any]) -> list[Any]:
        values = [x.value if self.owns(x) else x for x in args if not isinstance(x, _SCALARS)]
        outs = self._apply(step.closed, values, step.in_specs, step.out_specs)
        return list(map(self.tracer, outs, step.out_avals))

    def _apply(
        self, closed: ClosedJaxpr, values: Values, in_specs: Specs, out_specs: Specs
    ) -> Sequence[Any]:
        with self.outside():
            return self.primitive.bind_all(
                *values,
                jaxpr=closed,
                mesh=self.region.mesh,
                in_specs=in_specs,
                out_specs=out_specs,
                newly_manual_axes=self.region.axes,
                check_vma=self.region.check_vma,
            )

    def _operand(self, x: Any) -> Operand:
        if isinstance(x, _SCALARS):
            return Operand(None, (), (type(x), repr(x)), Same(x))
        if self.owns(x):
            return Operand(x.aval, self.stacked(x.aval))
        if isinstance(x, Tracer):
            check_alive(x)
        return Operand(self.region.block(aval_of(x), _WHOLE), ())

    def _with_cells(self, primitive: Primitive, args: Values, params: Mapping[str, Any]) -> Values:
        """Applies an operation on references, whose cells hold blocks."""
        args, params = casts.agreeing(self, primitive, args, params)
        outs = refs.discharge.of(primitive)(*args, **params)
        if refs.makes_references.of(primitive):
            self._own_cells.append(outs)
        for cell in args:
            whole = refs.root_of(cell)
            if isinstance(whole, refs.Cell) and not any(whole is own for own in self._own_cells):
                self._settle(whole)
        return outs if primitive.multiple_results else (outs,)

    def _settle(self, cell: refs.Cell) -> None:
        """Gives a reference from outside a whole value where it holds blocks."""
        if cell.is_frozen or not self.owns(cell.read()):
            return
        block = cell.read()
        names = self.stacked(block.aval)
        if names and self.region.check_vma:
            problem = "what is written to a reference from outside may differ between devices."
            got = f"{block.aval} to {cell.aval}"
            expected = "a value that is the same everywhere"
            fix = f"lax.psum over {meshes.names_text(names)}, or return the value"
            error(ValueError, self.function_name, problem, got=got, expected=expected, fix=fix)
        (whole,) = self.leave([block], [_WHOLE])
        cell.write(whole)

    def enter(self, values: Values, specs: Sequence[PartitionSpec]) -> list[Any]:
        """The blocks of whole values."""
        return [self._entered(x, spec) for x, spec in zip(values, specs, strict=True)]

    def _entered(self, x: Any, spec: PartitionSpec) -> Any:
        if isinstance(x, refs.Cell):
            with self.outside():
                value = x.read()
            cell = references.Ref(self._entered(value, spec), x.aval.kind)
            self._own_cells.append(cell)
            return cell
        block = self.region.block(aval_of(x), spec)
        names = self.stacked(block)
        if not names:
            return self.tracer(x, block)
        closed = _staged(lambda value: [new_axis(value, 1, 0)], [block])
        (value,) = self._apply(closed, [x], (spec,), (PartitionSpec(names),))
        return self.tracer(value, block)

    def write_back(
        self, outside: Sequence[Any], inside: Sequence[Any], specs: Sequence[PartitionSpec]
    ) -> None:
        """Gives references that are arguments what was written to them inside."""
        for whole, cell, spec in zip(outside, inside, specs, strict=True):
            if isinstance(whole, refs.Cell) and not whole.is_frozen:
                (value,) = self.leave([cell.read()], [spec])
                with self.outside():
                    whole.write(value)

    def leave(self, blocks: Values, specs: Sequence[PartitionSpec]) -> list[Any]:
        """The whole values of blocks, which fit to their specs."""
        return [self._left(x, spec) for x, spec in zip(blocks, specs, strict=True)]

    def _left(self, x: Any, spec: PartitionSpec) -> Any:
        operand = self._operand(x)
        region = self.region

        def body(*values: Any) -> list[Any]:
            block = operand.given(iter(values))
            return [match(block, spec, region)]

        closed = _staged(body, operand.avals)
        values = [x.value if self.owns(x) else x] if operand.avals else []
        specs = (operand.spec,) if operand.avals else ()
        (value,) = self._apply(closed, values, specs, (spec,))
        return value


class Started(NamedTuple):
    """An operation whose result is not there yet: it is applied together with what waits for it."""

    primitive: Any
    args: Values
    params: Params


class Same:
    """A value that does not tell keys of caches apart."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is Same

    def __hash__(self) -> int:
        return 0


class Operand(NamedTuple):
    """An operand of one operation.

    Attributes:
        aval: the type of a block; None for a scalar, which is written into the operation.
        names: the axes along which blocks are stacked.
        key: what tells scalars apart: numbers of unlike types are equal.
        scalar: the scalar.
    """

    aval: Any
    names: tuple[Any, ...]
    key: Any = None
    scalar: Any = None

    @property
    def avals(self) -> list[Any]:
        """The type of the parameter for it, if it needs one."""
        if self.aval is None:
            return []
        return [self.aval.with_dim(0, 1) if self.names else self.aval]

    @property
    def spec(self) -> PartitionSpec:
        """How the stack of blocks is split."""
        return _spec(self.names)

    def given(self, values: Iterator[Any]) -> Any:
        """The block, inside, from the values of parameters."""
        if self.aval is None:
            return self.scalar.value
        value = next(values)
        return squeeze(value, (0,)) if self.names else value


class Step(NamedTuple):
    """One operation as a program of stacked blocks."""

    closed: ClosedJaxpr
    in_specs: Specs
    out_specs: Specs
    out_avals: tuple[Any, ...]


_WHOLE = PartitionSpec()


@cached(
    "steps",
    key="mesh and manual axes, primitive, parameters, operands, tracing context",
    most=4096,
    emptied=True,
)
def _step(
    region: Region, primitive: Any, params: Any, operands: tuple[Operand, ...], context: Any
) -> Step:
    """The program of one operation; `context` is what else tracing depends on."""
    function = functools.partial(primitive.bind_all, **dict(params))
    return _program(region, function, operands, primitive.name)


def _program(
    region: Region, function: Callable[..., Sequence[Any]], operands: Sequence[Operand], name: str
) -> Step:
    out_avals: list[Any] = []

    def body(*values: Any) -> list[Any]:
        given = iter(values)
        outs = function(*(operand.given(given) for operand in operands))
        out_avals[:] = map(aval_of, outs)
        return [new_axis(x, 1, 0) if _stacked(region, aval_of(x)) else x for x in outs]

    closed = _staged(body, [aval for operand in operands for aval in operand.avals], name)
    return Step(
        closed,
        tuple(operand.spec for operand in operands if operand.aval is not None),
        tuple(_spec(_stacked(region, aval)) for aval in out_avals),
        tuple(out_avals),
    )


def _staged(body: Callable[..., list[Any]], avals: Avals, name: str = "blocks") -> ClosedJaxpr:
    return ClosedJaxpr(*staging.stage(body, avals, DebugInfo("shard_map", name)))


def _spec(names: tuple[Any, ...]) -> PartitionSpec:
    """How the stack of blocks is split that are kept along some axes."""
    return PartitionSpec(names) if names else _WHOLE


def _stacked(region: Region, aval: AbstractValue) -> tuple[Any, ...]:
    if not isinstance(aval, ShapedArray):
        return ()
    if not region.check_vma:
        return region.ordered(region.axes)
    return region.ordered(frozenset().union(*vma.of(aval)) & region.axes)


def _concrete_mesh(region: Region, value: Any) -> Any:
    if hasattr(region.mesh, "devices"):
        return region.mesh
    sharding = value.sharding
    return sharding.mesh if isinstance(sharding, NamedSharding) else None


def _texts(blocks: Blocks) -> list[str]:
    """The blocks as lines, with the devices that hold them and where these are in the mesh."""
    return [line for place, block in _parts(blocks) for line in (f"On {place}:", f"{block}\n")]


def _parts(blocks: Blocks) -> Iterator[tuple[str, Any]]:
    """Each device's block, with the device and where it is in the mesh, if both are known."""
    region, stacked = blocks.traced_by.region, blocks.traced_by.stacked(blocks.aval)
    value = blocks.value
    while isinstance(value, Tracer) and not isinstance(value, Blocks):
        value = value.concrete()
    if not is_array(value) or not value.is_fully_addressable:
        return
    mesh = _concrete_mesh(region, value)
    if mesh is None:
        return
    names = region.ordered(region.axes)
    order = [mesh.axis_names.index(name) for name in names]
    order += [i for i in range(len(mesh.axis_names)) if i not in order]
    sizes = tuple(map(mesh.axis_size, names))
    devices = mesh.devices.transpose(order).reshape(*sizes, -1)
    title = f"({', '.join(map(str, names))}{',' * (len(names) == 1)})"
    pieces = value if dtypes.is_extended(value.dtype) else np.asarray(value)
    for place in np.ndindex(sizes):
        at = dict(zip(names, place, strict=True))
        index = 0
        for name in stacked:
            index = index * region.size((name,)) + at[name]
        held_by = ", ".join(f"{d.platform}:{d.id}" for d in devices[place])
        where = f"{held_by} at mesh coordinates {title} = {place}"
        yield where, pieces[index] if stacked else pieces


def run(
    primitive: Primitive,
    region: Region,
    function: Callable[..., Sequence[Any]],
    name: str,
    args: Values,
    in_specs: Sequence[PartitionSpec],
    specs_of: Callable[[Sequence[Any]], Sequence[PartitionSpec]],
) -> list[Any]:
    """Runs a function on blocks.

    Args:
        primitive: the operation `shard_map`.
        region: the axes that become manual.
        function: takes and returns blocks.
        name: what messages call it.
        args: whole values.
        in_specs: how they are cut.
        specs_of: tells how the results, which it is given, are put together.
    """
    trace = StepTrace(primitive, current.value, region, name)
    try:
        with region.entered(), config.override(current, trace):
            blocks = trace.enter(args, in_specs)
            outs = function(*blocks)
            result = trace.leave(outs, specs_of(outs))
            trace.write_back(args, blocks, in_specs)
    finally:
        trace.finished = True
    return result
