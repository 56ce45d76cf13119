"""From programs for some sizes to one for all sizes.

Input: a function's module for several probes, each with other numbers for the symbols.  Output: one
module whose dimensions are unknown, and which computes what it needs of them.

The modules are followed side by side.  They must have the same operations on the same operands;
where they differ is in numbers, and numbers that differ must be those of a dimension that the
function has computed with (`lockstep.Meanings`).  So whatever took the number of a symbol for its
size, in a decision, in a loop or in a table, is found and refused: nothing is guessed of sizes.
Then the first module is rewritten: types lose the numbers, and operations that have them as
attributes become the dynamic operations of StableHLO, which take them as operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np
from jaxlib.mlir import ir

from minijax.core.aval import AbstractValue, ShapedArray
from minijax.core.errors import error
from minijax.export import artifacts, dynamic, solving, symbols
from minijax.export.dynamic import Number, Rewriter
from minijax.export.lockstep import Follower, Size
from minijax.export.polynomials import Polynomial
from minijax.export.scopes import PROBES, SymbolicScope
from minijax.lowering import stablehlo
from minijax.lowering.stablehlo import LoweringContext, boolean, integer, string

T = TypeVar("T")
_INT32 = np.dtype(np.int32)


def generalized(
    make: Callable[[int], tuple[ir.Module, T]],
    name: str,
    avals: Sequence[AbstractValue],
    scope: SymbolicScope,
    *,
    has_platform: bool,
) -> tuple[ir.Module, list[T], Callable[[Sequence[Sequence[int]]], tuple[int, ...]]]:
    """The module of a function for all sizes.

    Returns:
        The module, what is known of it at each probe, and a function that gives for a shape at
        each probe the shape with symbols.

    Args:
        make: the module at a probe, and what else is known of it.
        name: the function.
        avals: the types of its arguments, whose sizes are symbols.
        scope: what is known of the symbols.
        has_platform: whether the modules take the number of a platform first.

    Raises:
        InconclusiveDimensionOperation: the function depends on sizes in another way than types,
            shapes and arithmetic do.
        ValueError: a symbol does not follow from the arguments.
        NotImplementedError: an operation has no form for unknown sizes.
    """
    made = [make(probe) for probe in range(PROBES)]
    modules = [artifacts.copied(module) for module, _ in made]
    for module in modules:
        artifacts.inline(module)
    with stablehlo.context(), ir.Location.unknown():
        follower = Follower(name, modules, scope)
        _rewrite(follower, avals, int(has_platform))

    def shape_of(shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
        return tuple(map(follower.dimension, zip(*shapes, strict=True)))

    return modules[0], [one for _, one in made], shape_of


def _rewrite(follower: Follower, avals: Sequence[AbstractValue], skipped: int) -> None:
    """Makes the first module one for all sizes."""
    main = follower.mains[0]
    block = main.regions[0].blocks[0]
    for value, shape in follower.blocks:
        if shape is not None:
            value.set_type(dynamic.type_with(value.type, shape))
    # What is computed of sizes stands before all else, and before what stays there.
    start = ir.InsertionPoint.at_block_begin(block)
    token = ir.Type.parse("!stablehlo.token")
    anchor = ir.Operation.create("stablehlo.create_token", [token], [], ip=start)
    point = ir.InsertionPoint(anchor)
    ctx = LoweringContext(cast("Any", follower.module), "", point, ir.Location.unknown())
    rewriter = Rewriter(follower, ctx)
    tokens = sum(not isinstance(a.type, ir.RankedTensorType) for a in block.arguments)
    _define(rewriter, avals, list(block.arguments)[skipped + tokens :])
    for step in follower.steps:
        dynamic.rewrite(rewriter, step)
    anchor.erase()
    ins = [a.type for a in block.arguments]
    returned = list(block.operations)[-1].operation
    outs = [x.type for x in returned.operands]
    main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(ins, outs))
    try:
        follower.module.operation.verify()
    except ir.MLIRError as caught:
        problem = f"{follower.name} has an operation that has no form for unknown sizes."
        error(NotImplementedError, "export.export", problem, got=str(caught), cause=None)


def _define(
    rewriter: Rewriter, avals: Sequence[AbstractValue], arguments: Sequence[ir.Value[Any]]
) -> None:
    """Computes the symbols of the sizes of arguments, and checks that these fit."""
    ctx = rewriter.ctx
    scalar = stablehlo.tensor_type((), _INT32)
    follower = rewriter.follower

    def dimension(place: tuple[int, int]) -> Number:
        attributes = {"dimension": integer(place[1])}
        name = "stablehlo.get_dimension_size"
        return Number(ctx, ctx.op(name, [arguments[place[0]]], attributes, scalar))

    def number(size: Size) -> Number:
        known = size.constant if isinstance(size, Polynomial) else size
        return Number(ctx, rewriter.value(size if known is None else known))

    solved = set()
    for equation in solving.equations(follower.name, avals):
        value = dimension(equation.place)
        if equation.rest.terms:
            value = value - number(equation.rest)
        if equation.factor == 1:
            solved.add(equation.place)
        else:
            value = value.floordiv(number(equation.factor))
        rewriter.named[equation.name] = value.value
        _require(ctx, "GE", value, number(1), f"{equation.name} >= 1")
    places = [(i, j) for i, aval in enumerate(avals) for j in range(aval.ndim)]
    for i, j in places:
        d = avals[i].shape[j]
        if isinstance(d, symbols.Dimension) and (i, j) not in solved:
            text = f"dimension {j} of argument {i} to be {d}"
            _require(ctx, "EQ", number(d.polynomial), dimension((i, j)), text)
    known = rewriter.named.keys()
    for text, polynomial in solving.requirements(follower.scope):
        if polynomial.names() <= known:
            _require(ctx, "GE", number(polynomial), number(0), text)


def _require(ctx: LoweringContext, direction: str, x: Number, y: Number, text: str) -> None:
    """Refuses to compile the program for sizes that do not fit."""
    holds = ctx.compare(direction, x.value, y.value, ShapedArray((), _INT32))
    attributes = {
        "call_target_name": string("shape_assertion"),
        "error_message": string(
            "Input shapes do not match the polymorphic shapes specification. "
            f"Expected {text}, obtained {{0}} and {{1}}."
        ),
        "has_side_effect": boolean(True),
        "api_version": integer(2, 32),
    }
    ctx.ops("stablehlo.custom_call", [holds, x.value, y.value], attributes, [])
