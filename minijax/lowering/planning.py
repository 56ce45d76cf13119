"""What Shardy makes of a lowered module, without devices: shardings, and where data moves.

Input: an MLIR module.  Output: a record for each operation that moves data between devices, and
the shardings of arguments and results, once Shardy's own passes have run on a copy.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir._mlir_libs import _sdy

from minijax.core.errors import InternalError, error
from minijax.core.source import Frame
from minijax.lowering import stablehlo
from minijax.sharding import hlo

PROPAGATION = "builtin.module(sdy-propagation-pipeline)"
_PASSES = (
    "builtin.module(sdy-propagation-pipeline,"
    "func.func(sdy-insert-explicit-reshards{enable-full-version=true}),"
    "func.func(sdy-reshard-to-collectives))"
)
_AXES_ATTRIBUTES = {
    "sdy.all_gather": "gathering_axes",
    "sdy.all_reduce": "reduction_axes",
    "sdy.all_to_all": "params",
    "sdy.collective_permute": "",
    "sdy.reduce_scatter": "reduce_scatter_axes",
}
_WRITTEN_BY_USER = frozenset(
    {
        "stablehlo.all_gather",
        "stablehlo.all_reduce",
        "stablehlo.all_to_all",
        "stablehlo.collective_broadcast",
        "stablehlo.collective_permute",
        "stablehlo.reduce_scatter",
    }
)
_AXIS = re.compile(r'"([^"]*)"(?::\((\d+)\)(\d+))?')
_ESCAPE = re.compile(rb"\\([0-9A-F]{2})")
_FRAME = re.compile(r'"([^"]*)"\("([^"]*)":(\d+):')
_BITS = re.compile(r"\d+")

REDUCTIONS = ("all_reduce", "reduce_scatter")
"""Movements that complete an operation; others bring a value to where it is wanted."""

Constrained = dict[tuple[str, Frame | None], Frame]
"""The lines of constraints on where values are, by name and line of what gives the value."""

Axis = tuple[str, int]
"""A mesh axis, or part of one as Shardy writes it (`x:(2)4`), and its size."""


class ProgramMesh(NamedTuple):
    """A mesh that a module names.

    Attributes:
        names: its axes, the outermost first.
        ids: the numbers of the devices in the program, of the mesh's shape.
    """

    names: tuple[str, ...]
    ids: np.ndarray[Any, Any]


class Value(NamedTuple):
    """An array of a partitioned program.

    Attributes:
        name: what it is called, if it is an argument or a result.
        dtype: in the notation of jaxprs.
        shape: as a whole.
        dims: for each dimension the mesh axes that it is split over, the outermost first.
        unreduced: mesh axes over which devices hold summands.
        bits: how much memory an element takes.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    dims: tuple[tuple[Axis, ...], ...]
    unreduced: tuple[Axis, ...]
    bits: int

    @property
    def local_bytes(self) -> int:
        """The memory that it takes on each device."""
        bits = self.bits
        for size, axes in zip(self.shape, self.dims, strict=True):
            bits *= -(-size // math.prod(count for _, count in axes))
        return -(-bits // 8)


class Movement(NamedTuple):
    """An operation that moves data between devices.

    Attributes:
        kind: `all_gather`, `all_reduce` and so on.
        axes: the mesh axes over which devices take part; None if `groups` says who does.
        groups: the devices of each group, for operations that the user has written.
        values: its results, as they are split afterwards.
        times: how often it runs, where loops of unknown length count once.
        is_bounded: whether the length of all loops around it is known.
        inside: the loops and branches around it, the outermost first.
        line: the user's line that needs it.
    """

    kind: str
    axes: tuple[Axis, ...] | None
    groups: np.ndarray[Any, Any] | None
    values: tuple[Value, ...]
    times: int
    is_bounded: bool
    inside: tuple[str, ...]
    line: Frame | None


class _Place(NamedTuple):
    """Where the reader is: the facts of a `Movement` that come from around an operation."""

    times: int = 1
    is_bounded: bool = True
    inside: tuple[str, ...] = ()
    caller: Frame | None = None

    def within(self, parent: Any, region: int) -> _Place:
        """The place inside a region of an operation."""
        if parent.name == "stablehlo.while":
            trips = trip_count(parent)
            inside = (*self.inside, f"while x{'?' if trips is None else trips}")
            # The condition, the first region, is asked once more than the body runs.
            often = 1 if trips is None else trips + (1 - region)
            is_bounded = self.is_bounded and trips is not None
            return _Place(self.times * often, is_bounded, inside, self.caller)
        if parent.name in ("stablehlo.case", "stablehlo.if"):
            return self._replace(inside=(*self.inside, f"branch {region}"))
        return self


class Planned(NamedTuple):
    """What the passes have made of a module."""

    arguments: list[Value]
    results: list[Value]
    movements: list[Movement]


def meshes(module: ir.Module) -> list[ProgramMesh]:
    """The meshes that a module names, the first first."""
    found = []
    for operation in module.body.operations:
        if operation.operation.name == "sdy.mesh":
            mesh = _sdy.MeshAttr(operation.attributes["mesh"])
            axes = axis_sizes(mesh)
            sizes = list(axes.values())
            ids = list(mesh.device_ids) or range(math.prod(sizes))
            if sizes and len(ids) == math.prod(sizes):
                found.append(ProgramMesh(tuple(axes), np.array(ids, np.int64).reshape(sizes)))
    return found


def axis_sizes(mesh: ir.Attribute) -> dict[str, int]:
    """The axes of a mesh as Shardy writes it."""
    axes = map(_sdy.MeshAxisAttr, _sdy.MeshAttr(mesh).axes)
    return {hlo.axis_name(axis.name): axis.size for axis in axes}


def plan(module: ir.Module) -> Planned:
    """Runs Shardy's propagation and partitioning on a copy of a module.

    Raises:
        InternalError: Shardy refuses the module.
    """
    with stablehlo.context():
        return Reader(after(_PASSES, module), constrained_lines(module)).read()


def constrained_lines(module: ir.Module) -> Constrained:
    """The lines of constraints on where values are that nothing else takes.

    Propagation moves such a constraint to the operation that gives the value, and what that needs.
    """
    found: Constrained = {}

    def visit(operation: ir.Operation) -> ir.WalkResult:
        if operation.name == "sdy.sharding_constraint" and (line := _frame(operation.location)):
            giver = _operation_of(operation.operands[0])
            if giver is not None and len(list(operation.operands[0].uses)) == 1:
                found[_origin(giver)] = line
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def propagated(module: ir.Module, *, debug_info: bool = False, is_partitioned: bool = False) -> str:
    """The text of a module once Shardy has placed the values that the user has not.

    With `debug_info` it tells where operations come from; with `is_partitioned`, what moves too.

    Raises:
        InternalError: Shardy refuses the module.
    """
    passes = _PASSES if is_partitioned else PROPAGATION
    return str(after(passes, module).get_asm(enable_debug_info=debug_info))


def after(passes: str, module: ir.Module) -> Any:
    """A copy of a module on which passes have run."""
    copy = module.operation.clone()
    try:
        passmanager.PassManager.parse(passes, stablehlo.context()).run(copy)
    except ir.MLIRError as caught:
        problem = "Shardy refuses the module."
        error(InternalError, "explain.plan", problem, got=f"{caught}\n{module}", cause=None)
    return copy


class Reader:
    """Reads a module that the passes have run on."""

    def __init__(self, module: ir.OpView, lines: Constrained) -> None:
        self._lines = lines
        # Operations do not keep the module alive that they are in.
        self._module = module
        self._functions: dict[str, Any] = {}
        self._meshes: dict[str, dict[str, int]] = {}
        for operation in module.regions[0].blocks[0].operations:
            attributes = operation.attributes
            if operation.operation.name == "sdy.mesh":
                name = ir.StringAttr(attributes["sym_name"]).value
                self._meshes[name] = axis_sizes(attributes["mesh"])
            elif operation.operation.name == "func.func":
                name = ir.StringAttr(attributes["sym_name"]).value
                self._functions[name] = operation.operation

    def read(self) -> Planned:
        main = self._functions["main"]
        kind = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value)
        arguments = self._values(kind.inputs, main.attributes, "arg_attrs")
        names = [_name_of(x.location) for x in main.regions[0].blocks[0].arguments]
        return Planned(
            [x._replace(name=name) for x, name in zip(arguments, names, strict=True)],
            self._values(kind.results, main.attributes, "res_attrs"),
            list(self._walk(main, _Place())),
        )

    def _values(self, types: Sequence[Any], attributes: ir.OpAttributeMap, key: str) -> list[Value]:
        of_each: list[Any] = [{}] * len(types)
        if key in attributes:
            of_each = [ir.DictAttr(x) for x in ir.ArrayAttr(attributes[key])]
        found = []
        for type_, facts in zip(types, of_each, strict=True):
            value = self._value(type_, _sharding_among(facts))
            if "jax.result_info" in facts:
                value = value._replace(name=ir.StringAttr(facts["jax.result_info"]).value)
            found.append(value)
        return found

    def _value(self, type_: ir.Type, sharding: Any) -> Value:
        if not isinstance(type_, ir.RankedTensorType):
            return Value("", str(type_), (), (), (), 0)
        tensor = ir.RankedTensorType(type_)
        dtype, bits = _dtype(str(tensor.element_type))
        dims: tuple[tuple[Axis, ...], ...] = ((),) * tensor.rank
        unreduced: tuple[Axis, ...] = ()
        if sharding is not None:
            attribute = _sdy.TensorShardingAttr(sharding)
            sizes = self._sizes(attribute.mesh_or_ref)
            found = attribute.dimension_shardings
            dims = tuple(_axes(_sdy.DimensionShardingAttr(x).axes, sizes) for x in found)
            unreduced = _axes(attribute.unreduced_axes, sizes)
        return Value("", dtype, tuple(tensor.shape), dims, unreduced, bits)

    def _sizes(self, mesh: ir.Attribute) -> dict[str, int]:
        """Sizes of the axes of a mesh that a sharding refers to or spells out."""
        if isinstance(mesh, ir.FlatSymbolRefAttr):
            return self._meshes[ir.FlatSymbolRefAttr(mesh).value]
        return axis_sizes(mesh)

    def _walk(self, parent: Any, place: _Place) -> Iterator[Movement]:
        for number, region in enumerate(parent.regions):
            here = place.within(parent, number)
            for block in region.blocks:
                for operation in block.operations:
                    yield from self._visit(operation.operation, here)

    def _visit(self, operation: ir.Operation, place: _Place) -> Iterator[Movement]:
        name = operation.name
        if name in _AXES_ATTRIBUTES:
            yield self._movement_of_shardy(operation, place)
        elif name in _WRITTEN_BY_USER:
            yield self._movement_of_user(operation, place)
        elif name == "func.call":
            callee = ir.FlatSymbolRefAttr(operation.attributes["callee"]).value
            caller = _frame(operation.location) or place.caller
            yield from self._walk(self._functions[callee], place._replace(caller=caller))
        else:
            yield from self._walk(operation, place)

    def _movement_of_shardy(self, operation: ir.Operation, place: _Place) -> Movement:
        name = operation.name
        sharding = operation.attributes["out_sharding"]
        value = self._value(operation.results[0].type, sharding)
        sizes = self._sizes(_sdy.TensorShardingAttr(sharding).mesh_or_ref)
        if name == "sdy.collective_permute":
            axes = self._permuted_axes(operation.operands[0], value, sizes)
        else:
            axes = _axes_in_text(str(operation.attributes[_AXES_ATTRIBUTES[name]]), sizes)
        kind = name.removeprefix("sdy.")
        line = None if kind in REDUCTIONS else self._lines.get(_origin(operation))
        line = line or _frame_needing(operation, kind) or place.caller
        return Movement(kind, axes, None, (value,), *place[:3], line)

    def _movement_of_user(self, operation: ir.Operation, place: _Place) -> Movement:
        values = tuple(self._value(result.type, None) for result in operation.results)
        kind = operation.name.removeprefix("stablehlo.")
        line = _frame(operation.location) or place.caller
        return Movement(kind, None, _groups(operation.attributes), values, *place[:3], line)

    def _permuted_axes(
        self, operand: ir.Value[Any], value: Value, sizes: dict[str, int]
    ) -> tuple[Axis, ...]:
        """The axes of the dimensions that are split otherwise before than after."""
        before = self._value(operand.type, self.sharding_of(operand))
        pairs = list(zip(before.dims, value.dims, strict=True))
        moved = [axis for old, new in pairs if old != new for axis in (*old, *new)]
        moved = moved or [axis for _, new in pairs for axis in new]
        names = {axis.partition(":(")[0] for axis, _ in moved}
        return tuple((name, size) for name, size in sizes.items() if name in names)

    def sharding_of(self, value: ir.Value[Any]) -> Any:
        """The sharding that a value was given, by its operation or as an argument."""
        if isinstance(value, ir.BlockArgument):
            argument: ir.BlockArgument[Any] = ir.BlockArgument(value)
            owner = argument.owner.owner
            if "arg_attrs" not in owner.attributes:
                return None
            facts = ir.DictAttr(ir.ArrayAttr(owner.attributes["arg_attrs"])[argument.arg_number])
            return _sharding_among(facts)
        result: ir.OpResult[Any] = ir.OpResult(value)
        attributes = result.owner.attributes
        for key in ("out_sharding", "sharding"):
            if key in attributes:
                return attributes[key]
        if "sdy.sharding" not in attributes:
            return None
        return _sdy.TensorShardingPerValueAttr(attributes["sdy.sharding"]).shardings[
            result.result_number
        ]


def _sharding_among(facts: Any) -> Any:
    # An MLIR dictionary has no method `get`.
    if "sdy.sharding" in facts:
        return facts["sdy.sharding"]
    return None


def _axes(attributes: Sequence[Any], sizes: dict[str, int]) -> tuple[Axis, ...]:
    return tuple(axis for x in attributes for axis in _axes_in_text(str(x), sizes))


def _axes_in_text(text: str, sizes: dict[str, int]) -> tuple[Axis, ...]:
    """The axes that an attribute names, in the order in which it prints them."""
    found = []
    for printed, before, size in _AXIS.findall(text):
        name = hlo.axis_name(printed)
        found.append((f"{name}:({before}){size}", int(size)) if size else (name, sizes[name]))
    return tuple(found)


def _unescaped(text: str) -> str:
    """A string as it was before MLIR printed it: what is not ASCII is printed as bytes."""
    raw = _ESCAPE.sub(lambda match: bytes.fromhex(match[1].decode()), text.encode())
    return raw.replace(b"\\\\", b"\\").decode()


def _dtype(text: str) -> tuple[str, int]:
    """The name of an MLIR element type in the notation of jaxprs, and its bits."""
    found = _BITS.search(text)
    bits = int(found.group()) if found else 0
    if text.startswith("complex"):
        return f"c{2 * bits}", 2 * bits
    return ("bool", 8) if text == "i1" else (text.lower().replace("ui", "u"), bits)


def _groups(attributes: ir.OpAttributeMap) -> np.ndarray[Any, Any] | None:
    for key in ("replica_groups", "source_target_pairs"):
        if key in attributes:
            return np.array(ir.DenseIntElementsAttr(attributes[key]))
    return None


def _frame_needing(operation: ir.Operation, kind: str) -> Frame | None:
    """The user's line that needs an operation.

    A reduction belongs to the operation that it completes and has its location.  Other movements
    serve the operation that takes the result, and fall back on the one that gives the operand.
    """
    own = _frame(operation.location)
    if kind in REDUCTIONS:
        return own
    user = operation
    while True:
        uses = list(user.results[0].uses) if len(user.results) else []
        if not uses:
            return own
        user = uses[0].owner.operation
        if not user.name.startswith("sdy."):
            break
    needing = None if user.name.endswith(".return") else _frame(user.location)
    return needing or own


def _origin(operation: ir.Operation) -> tuple[str, Frame | None]:
    return _name_of(operation.location), _frame(operation.location)


def _frame(location: ir.Location) -> Frame | None:
    found = _FRAME.search(str(location))
    if found is None:
        return None
    function, file = _unescaped(found.group(1)), _unescaped(found.group(2))
    return Frame(file, int(found.group(3)), function)


def _name_of(location: ir.Location) -> str:
    found = _AXIS.search(str(location))
    return _unescaped(found.group(1)) if found else ""


def trip_count(loop: Any) -> int | None:
    """How often a `stablehlo.while` runs that counts by constant steps to a constant bound.

    None where the loop is of another form.
    """
    condition, body = (region.blocks[0] for region in loop.regions)
    compare = _operation_of(_last(condition).operands[0])
    if compare is None or compare.name != "stablehlo.compare":
        return None
    if "LT" not in str(compare.attributes["comparison_direction"]):
        return None
    counter = compare.operands[0]
    if not isinstance(counter, ir.BlockArgument):
        return None
    index = ir.BlockArgument(counter).arg_number
    step = _operation_of(_last(body).operands[index])
    if step is None or step.name != "stablehlo.add" or step.operands[0] != body.arguments[index]:
        return None
    numbers = [_constant(loop.operands[index]), _constant(compare.operands[1])]
    numbers.append(_constant(step.operands[1]))
    if any(number is None for number in numbers) or numbers[2] <= 0:  # type: ignore[operator]
        return None
    return len(range(*numbers))  # type: ignore[arg-type]


def _last(block: ir.Block) -> Any:
    return list(block.operations)[-1].operation


def _operation_of(value: ir.Value[Any]) -> Any:
    """The operation that gives a value; None for arguments of blocks."""
    return None if isinstance(value, ir.BlockArgument) else ir.OpResult(value).owner.operation


def _constant(value: ir.Value[Any]) -> int | None:
    operation = _operation_of(value)
    if operation is None or operation.name not in ("stablehlo.constant", "sdy.constant"):
        return None
    elements = np.array(ir.DenseElementsAttr(operation.attributes["value"]))
    return int(elements) if elements.ndim == 0 else None
