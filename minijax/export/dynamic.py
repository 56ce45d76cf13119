"""The dynamic operations of StableHLO, which take sizes as operands.

Input: steps of a module whose sizes are numbers.  Output: the same steps for unknown sizes: where a
result's type alone has a size, the type loses it; where an attribute or the shape asked for has
one, another operation takes the place, with the size computed as the program runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from jaxlib.mlir import ir

from minijax.core.errors import error
from minijax.export import artifacts
from minijax.export.lockstep import Follower, Size, Step, line
from minijax.export.polynomials import Operation, Polynomial
from minijax.export.scopes import PROBES
from minijax.lowering import stablehlo
from minijax.lowering.stablehlo import LoweringContext, i64_array, integer

_create = ir.Operation.create
_INT32 = np.dtype(np.int32)


class Number:
    """A scalar of 32 bits, with arithmetic."""

    def __init__(self, ctx: LoweringContext, value: ir.Value[Any]) -> None:
        self.ctx, self.value = ctx, value

    def _with(self, name: str, other: Number) -> Number:
        operands = [self.value, other.value]
        kind = self.value.type
        return Number(self.ctx, self.ctx.op(f"stablehlo.{name}", operands, None, kind))

    def __add__(self, other: Number) -> Number:
        return self._with("add", other)

    def __mul__(self, other: Number) -> Number:
        return self._with("multiply", other)

    def __sub__(self, other: Number) -> Number:
        return self._with("subtract", other)

    def mod(self, other: Number) -> Number:
        """The remainder with the sign of the divisor."""
        return (self._with("remainder", other) + other)._with("remainder", other)

    def floordiv(self, other: Number) -> Number:
        """The quotient, rounded down."""
        return (self - self.mod(other))._with("divide", other)

    def max(self, other: Number) -> Number:
        """The larger one."""
        return self._with("maximum", other)

    def min(self, other: Number) -> Number:
        """The smaller one."""
        return self._with("minimum", other)


def _operation(op: Operation, of: Callable[[Polynomial], Number]) -> Number:
    made: Number = getattr(of(op.left), op.name)(of(op.right))
    return made


class Rewriter:
    """What rewriting builds with: sizes as values, and operations in the place of others.

    Attributes:
        follower: the modules.
        ctx: builds at the beginning of the program, where sizes are computed.
        named: the values of the symbols.
    """

    def __init__(self, follower: Follower, ctx: LoweringContext) -> None:
        self.follower = follower
        self.ctx = ctx
        self.named: dict[str, ir.Value[Any]] = {}
        self._values: dict[Polynomial, ir.Value[Any]] = {}

    def value(self, size: Size) -> ir.Value[Any]:
        """A size as a scalar of 32 bits, computed at the beginning of the program."""
        if isinstance(size, int):
            return self.ctx.constant(size, _INT32)
        found = self._values.get(size)
        if found is None:
            number = size.evaluate(
                lambda name: Number(self.ctx, self.named[name]),
                lambda n: Number(self.ctx, self.value(n)),
                _operation,
            )
            found = self._values[size] = number.value
        return found

    def vector(self, shape: Sequence[Size]) -> ir.Value[Any]:
        """Sizes as a vector of 32 bits."""
        if all(isinstance(d, int) for d in shape):
            return self.ctx.constant(np.array(shape, np.int32), _INT32)
        parts = [self.ctx.reshape(self.value(d), (1,), _INT32) for d in shape]
        if len(parts) == 1:
            return parts[0]
        kind = stablehlo.tensor_type((len(parts),), _INT32)
        return self.ctx.op("stablehlo.concatenate", parts, {"dimension": integer(0)}, kind)

    def replace(
        self,
        step: Step,
        name: str,
        operands: Sequence[ir.Value[Any]],
        keep: Sequence[str] = (),
        more: Mapping[str, ir.Attribute] | None = None,
    ) -> None:
        """Puts another operation with one result in the place of one."""
        op = step.operation
        attributes = {key: op.attributes[key] for key in keep if key in op.attributes}
        (shape,) = step.types
        kind = op.results[0].type if shape is None else type_with(op.results[0].type, shape)
        made = _create(
            name,
            [kind],
            list(operands),
            {**attributes, **(more or {})},
            loc=op.location,
            ip=ir.InsertionPoint(op),
        )
        self.put(op, made.result)

    @staticmethod
    def put(op: ir.Operation, value: ir.Value[Any]) -> None:
        """Puts a value in the place of an operation's result."""
        op.results[0].replace_all_uses_with(value)
        op.erase()

    def shape(self, step: Step) -> list[Size]:
        """The shape of the only result of an operation."""
        (shape,) = step.types
        return (
            list(ir.RankedTensorType(step.operation.results[0].type).shape)
            if shape is None
            else shape
        )


def rewrite(rewriter: Rewriter, step: Step) -> None:
    """Rewrites one operation.

    Raises:
        NotImplementedError: it has no form for unknown sizes.
    """
    op = step.operation
    handler = _HANDLERS.get(op.name)
    if handler is not None and (step.attributes or any(t is not None for t in step.types)):
        handler(rewriter, step)
        return
    if step.attributes:
        key = next(iter(step.attributes))
        problem = f"{op.name} has no form for unknown sizes in its attribute {key}."
        error(NotImplementedError, "export.export", problem, got=line(op))
    for result, shape in zip(op.results, step.types, strict=True):
        if shape is not None:
            result.set_type(type_with(result.type, shape))


def _constant(rewriter: Rewriter, step: Step) -> None:
    """A constant: a number of a size, or one that is repeated."""
    values = step.attributes.get("value", [step.operation.attributes["value"]] * PROBES)
    dense = [ir.DenseElementsAttr(value) for value in values]
    if not all(value.is_splat for value in dense):
        rewriter.follower.refuse(
            "a table of numbers is another for other sizes.", line(step.operation)
        )
    kind = ir.RankedTensorType(step.operation.results[0].type)
    scalar = ir.RankedTensorType.get([], kind.element_type)
    numbers: list[Any] = [value.get_splat_value() for value in dense]
    if all(n == numbers[0] for n in numbers):
        made = ir.DenseElementsAttr.get_splat(scalar, numbers[0])
        value = rewriter.ctx.op("stablehlo.constant", [], {"value": made}, scalar)
    else:
        value = _computed(rewriter, [n.value for n in numbers], scalar, step)
    shape = rewriter.shape(step)
    if not shape:
        rewriter.put(step.operation, value)
        return
    empty = {"broadcast_dimensions": i64_array(())}
    name = "stablehlo.dynamic_broadcast_in_dim"
    rewriter.replace(step, name, [value, rewriter.vector(shape)], more=empty)


def _computed(rewriter: Rewriter, numbers: Sequence[Any], kind: Any, step: Step) -> ir.Value[Any]:
    """A number that follows of sizes, of a type of scalars."""
    ctx = rewriter.ctx
    whole = all(float(n).is_integer() for n in numbers)
    found = rewriter.follower.meanings.resolved([int(n) for n in numbers]) if whole else None
    if found is not None:
        return _converted(ctx, rewriter.value(found), kind)
    dtype = np.dtype({"f64": np.float64, "f16": np.float16}.get(str(kind.element_type), np.float32))
    meanings, scaled = rewriter.follower.meanings, None
    if not isinstance(kind.element_type, ir.IntegerType):
        scaled = meanings.ratio(numbers, dtype) or meanings.scaled(numbers, dtype)
    if scaled is None:
        got = f"numbers {', '.join(map(str, numbers))} at three probes"
        rewriter.follower.refuse(
            "a number follows from it in an unknown way.", line(step.operation), got
        )

    def scalar(part: Any) -> ir.Value[Any]:
        if isinstance(part, int | Polynomial):
            return _converted(ctx, rewriter.value(part), kind)
        number = ir.FloatAttr.get(kind.element_type, part)
        made = ir.DenseElementsAttr.get_splat(kind, number)
        return ctx.op("stablehlo.constant", [], {"value": made}, kind)

    first, second, *more = map(scalar, scaled)
    if not more:
        return ctx.op("stablehlo.divide", [first, second], None, kind)
    product = ctx.op("stablehlo.multiply", [first, second], None, kind)
    return ctx.op("stablehlo.add", [product, *more], None, kind)


def _broadcast(rewriter: Rewriter, step: Step) -> None:
    """A broadcast to a shape of sizes."""
    operands = [step.operation.operands[0], rewriter.vector(rewriter.shape(step))]
    rewriter.replace(step, "stablehlo.dynamic_broadcast_in_dim", operands, ["broadcast_dimensions"])


def _iota(rewriter: Rewriter, step: Step) -> None:
    """Counting along a dimension."""
    shape = rewriter.vector(rewriter.shape(step))
    rewriter.replace(step, "stablehlo.dynamic_iota", [shape], ["iota_dimension"])


def _reshape(rewriter: Rewriter, step: Step) -> None:
    """Another shape of as many elements."""
    operands = [step.operation.operands[0], rewriter.vector(rewriter.shape(step))]
    rewriter.replace(step, "stablehlo.dynamic_reshape", operands)


def _slice(rewriter: Rewriter, step: Step) -> None:
    """A part with bounds of sizes."""
    keys = ("start_indices", "limit_indices", "strides")
    bounds = [rewriter.vector(rewriter.follower.sizes(step, key)) for key in keys]
    operands = [step.operation.operands[0], *bounds]
    rewriter.replace(step, "stablehlo.real_dynamic_slice", operands)


def _pad(rewriter: Rewriter, step: Step) -> None:
    """Padding by sizes."""
    keys = ("edge_padding_low", "edge_padding_high", "interior_padding")
    widths = [rewriter.vector(rewriter.follower.sizes(step, key)) for key in keys]
    rewriter.replace(step, "stablehlo.dynamic_pad", [*step.operation.operands, *widths])


def _gather(rewriter: Rewriter, step: Step) -> None:
    """Parts of sizes."""
    operands = [
        *step.operation.operands,
        rewriter.vector(rewriter.follower.sizes(step, "slice_sizes")),
    ]
    keep = ["dimension_numbers", "indices_are_sorted"]
    rewriter.replace(step, "stablehlo.dynamic_gather", operands, keep)


def _dynamic_slice(rewriter: Rewriter, step: Step) -> None:
    """A part of a size, from a start that is known when the program runs."""
    op = step.operation
    operand, *starts = op.operands
    sizes = rewriter.follower.sizes(step, "slice_sizes")
    ctx = LoweringContext(
        cast("Any", rewriter.follower.module), "", ir.InsertionPoint(op), op.location
    )
    scalar = stablehlo.tensor_type((), _INT32)
    parts = []
    for d, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        given = _converted(ctx, start, scalar)
        name, where = "stablehlo.get_dimension_size", {"dimension": integer(d)}
        whole = Number(ctx, ctx.op(name, [operand], where, scalar))
        last = whole - Number(ctx, rewriter.value(size))
        zero = rewriter.value(0)
        clamped = ctx.op("stablehlo.clamp", [zero, given, last.value], None, scalar)
        parts.append(ctx.reshape(clamped, (1,), _INT32))
    kind = stablehlo.tensor_type((len(parts),), _INT32)
    begin = parts[0]
    if len(parts) > 1:
        begin = ctx.op("stablehlo.concatenate", parts, {"dimension": integer(0)}, kind)
    end = ctx.op("stablehlo.add", [begin, rewriter.vector(sizes)], None, kind)
    ones = rewriter.vector([1] * len(sizes))
    rewriter.replace(step, "stablehlo.real_dynamic_slice", [operand, begin, end, ones])


def _convolution(rewriter: Rewriter, step: Step) -> None:
    """A convolution, whose padding may be of sizes."""
    op = step.operation
    keep = [key for key in op.attributes if key != "padding"]
    if "padding" not in step.attributes:
        rewriter.replace(step, op.name, op.operands, [*keep, "padding"])
        return
    widths = rewriter.follower.sizes(step, "padding")
    padding = rewriter.ctx.reshape(rewriter.vector(widths), (len(widths) // 2, 2), _INT32)
    rewriter.replace(step, "stablehlo.dynamic_conv", [*op.operands, padding], keep)


def _custom_call(rewriter: Rewriter, step: Step) -> None:
    """A call of a foreign function, which is told the shapes of its results."""
    op = step.operation
    shapes = [
        list(ir.RankedTensorType(r.type).shape) if shape is None else shape
        for r, shape in zip(op.results, step.types, strict=True)
    ]
    key = next((key for key in step.attributes if key != "sdy.sharding_rule"), None)
    if key is not None:
        problem = f"a foreign function depends on sizes in its attribute {key}."
        error(NotImplementedError, "export.export", problem, got=line(op))
    count = len(op.operands)
    attributes = {key: op.attributes[key] for key in op.attributes}
    places = np.arange(count, count + len(shapes), dtype=np.int64)
    # It names sizes, and there is one device.
    attributes.pop("sdy.sharding_rule", None)
    attributes["indices_of_shape_operands"] = cast("Any", ir.DenseElementsAttr).get(places)
    if "operand_layouts" in attributes:
        of_vector = cast("Any", ir.DenseIntElementsAttr).get(
            np.zeros(1, np.int64), type=ir.IndexType.get()
        )
        given = list(ir.ArrayAttr(attributes["operand_layouts"]))
        attributes["operand_layouts"] = ir.ArrayAttr.get([*given, *[of_vector] * len(shapes)])
    kinds = [
        r.type if shape is None else type_with(r.type, shape)
        for r, shape in zip(op.results, step.types, strict=True)
    ]
    operands = [*op.operands, *map(rewriter.vector, shapes)]
    where: dict[str, Any] = {"loc": op.location, "ip": ir.InsertionPoint(op)}
    made = _create(op.name, kinds, operands, attributes, **where)
    for old, new in zip(op.results, made.results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()


def _reduce_window(rewriter: Rewriter, step: Step) -> None:
    """A reduction over windows, whose sizes may follow from those of operands."""
    op = step.operation
    if not step.attributes:
        for result, shape in zip(op.results, step.types, strict=True):
            result.set_type(type_with(result.type, shape))
        return
    rank = len(cast("Any", op.attributes["window_dimensions"]))
    numbers = [
        rewriter.vector(rewriter.follower.sizes(step, key) if key in op.attributes else [1] * rank)
        for key in ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    ]
    widths: list[Size] = [0] * (2 * rank)
    if "padding" in op.attributes:
        widths = rewriter.follower.sizes(step, "padding")
    padding = rewriter.ctx.reshape(rewriter.vector(widths), (rank, 2), _INT32)
    function = _function_of(rewriter, op)
    attributes = {
        "call_target_name": stablehlo.string("stablehlo.dynamic_reduce_window"),
        "called_computations": ir.ArrayAttr.get([stablehlo.symbol(function)]),
    }
    kinds = [
        r.type if shape is None else type_with(r.type, shape)
        for r, shape in zip(op.results, step.types, strict=True)
    ]
    where: dict[str, Any] = {"loc": op.location, "ip": ir.InsertionPoint(op)}
    operands = [*op.operands, *numbers, padding]
    made = _create("stablehlo.custom_call", kinds, operands, attributes, **where)
    for old, new in zip(op.results, made.results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()


def _function_of(rewriter: Rewriter, op: ir.Operation) -> str:
    """Adds a function that computes what the only region of an operation does; its name."""
    body = op.regions[0].blocks[0]
    ins = [a.type for a in body.arguments]
    *_, last = (x.operation for x in body.operations)
    outs = [x.type for x in last.operands]
    module = rewriter.follower.module
    name = f"reducer_{len(list(module.body.operations))}"
    attributes = {
        "sym_name": stablehlo.string(name),
        "sym_visibility": stablehlo.string("private"),
        "function_type": ir.TypeAttr.get(ir.FunctionType.get(ins, outs)),
    }
    made = _create("func.func", [], [], attributes, regions=1, ip=ir.InsertionPoint(module.body))
    block = made.regions[0].blocks.append(*ins, arg_locs=[ir.Location.unknown()] * len(ins))
    point = ir.InsertionPoint(block)
    results = artifacts.clone_body(body, list(block.arguments), point)
    _create("func.return", [], results, ip=point)
    return name


_HANDLERS: Mapping[str, Callable[[Rewriter, Step], None]] = {
    "stablehlo.constant": _constant,
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.iota": _iota,
    "stablehlo.reshape": _reshape,
    "stablehlo.slice": _slice,
    "stablehlo.pad": _pad,
    "stablehlo.gather": _gather,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.convolution": _convolution,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.reduce_window": _reduce_window,
}


def _converted(ctx: LoweringContext, value: ir.Value[Any], kind: ir.Type) -> ir.Value[Any]:
    return value if value.type == kind else ctx.op("stablehlo.convert", [value], None, kind)


def type_with(kind: ir.Type, shape: Sequence[Size]) -> ir.Type:
    """A type of tensors with another shape, whose symbols are unknown dimensions."""
    dynamic = ir.ShapedType.get_dynamic_size()
    dims = [d if isinstance(d, int) else dynamic for d in shape]
    return ir.RankedTensorType.get(dims, ir.RankedTensorType(kind).element_type)
