"""Custom calls in StableHLO: calls of foreign functions, and the attributes that they are given.

Input: the name of a function in XLA's table, values, attributes and layouts.  Output: the values of
its results.  What XLA may know of a function besides its name is said here: which result takes the
memory of which operand, in which order the elements lie, and that the leading dimensions are a
batch, whose entries devices may compute on their own.

Attributes are Python and NumPy values that are known when a program is compiled.  They are copied,
so that nobody changes them, and compared by value and type, so that they can stand among the
parameters of an equation; `to_mlir` makes MLIR attributes of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from minijax.core import dtypes
from minijax.core.aval import AbstractToken, AbstractValue, ShapedArray
from minijax.core.errors import error
from minijax.core.operators import Avals
from minijax.core.sequences import ByValue
from minijax.lowering import stablehlo
from minijax.lowering.stablehlo import LoweringContext
from minijax.runtime.array import physical_aval

EXPECTED = (
    "a bool, int, float, str, dtype, NumPy scalar or array, or a tuple or dict (with names as "
    "keys) of these"
)


class Attribute(ByValue):
    """A value of such a kind.  1, True, 1.0 and np.int32(1) are four different ones.

    Attributes:
        value: a copy of what was given.
    """

    __slots__ = ("_key", "value")

    def __init__(self, value: ir.Value[Any]) -> None:
        self.value, self._key = _frozen(value)

    def _facts(self) -> Any:
        return self._key

    def __repr__(self) -> str:
        return repr(self.value)


def attributes_of(name: str, given: Mapping[str, Any]) -> tuple[tuple[str, Attribute], ...]:
    """Attributes by name, as a parameter of an equation.

    Args:
        name: the public function that was given them, for messages.
        given: their values.

    Raises:
        TypeError: there is no attribute for such a value.
        OverflowError: an integer needs more than 64 bits.
    """
    frozen = []
    for key, value in sorted(given.items()):
        try:
            frozen.append((key, Attribute(value)))
        except TypeError as caught:
            error(
                TypeError,
                name,
                f"the attribute {key!r} has no form that foreign functions know: {caught}.",
                got=f"{value!r} of type {type(value).__name__}",
                expected=EXPECTED,
                fix="pass arrays that the program computes by position, and lists as tuples or "
                "as np.array(...)",
                cause=None,
            )
        except OverflowError:
            problem = f"the attribute {key!r} does not fit into 64 bits."
            expected = "an integer from -2**63 to 2**63 - 1"
            error(OverflowError, name, problem, got=repr(value), expected=expected, cause=None)
    return tuple(frozen)


def _frozen(value: ir.Value[Any]) -> tuple[Any, tuple[Any, ...]]:
    """A copy of a value, and what tells it from others.

    Raises:
        TypeError: it is of no kind that there are attributes for.
        OverflowError: it is an integer of more than 64 bits.
    """
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("the keys of a dict must be str")
        parts = {key: _frozen(value[key]) for key in sorted(value)}
        frozen = {key: part for key, (part, _) in parts.items()}
        return frozen, (dict, tuple((key, facts) for key, (_, facts) in parts.items()))
    if isinstance(value, tuple):
        each = [_frozen(part) for part in value]
        return tuple(part for part, _ in each), (tuple, *(facts for _, facts in each))
    if isinstance(value, str):
        return str(value), (str, str(value))
    if isinstance(value, bytes):
        return bytes(value), (bytes, bytes(value))
    if isinstance(value, np.ndarray | np.generic):
        return _frozen_array(value)
    return _frozen_scalar(value)


def _frozen_scalar(value: ir.Value[Any]) -> tuple[Any, tuple[Any, ...]]:
    if isinstance(value, bool | np.dtype):
        return value, (type(value), value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise OverflowError
        return int(value), (int, int(value))
    if isinstance(value, float):
        return float(value), (float, value.hex())
    raise TypeError(f"nothing stands for values of type {type(value).__name__}")


def _frozen_array(value: Any) -> tuple[Any, tuple[Any, ...]]:
    dtype = value.dtype
    if dtype.kind not in "biufc" and not dtypes.issubdtype(dtype, np.inexact):
        raise TypeError(f"nothing stands for elements of dtype {dtype}")
    if isinstance(value, np.generic):
        if dtype.kind == "c":
            raise TypeError("nothing stands for a complex number")
        return value, (np.generic, dtype, value.tobytes())
    copied = value.copy()
    copied.flags.writeable = False
    return copied, (np.ndarray, dtype, copied.shape, copied.tobytes())


def to_mlir(value: Any) -> Any:
    """The MLIR attribute of a value.

    bool is i1, int i64, float f64; NumPy scalars keep their width, arrays are dense.

    Raises:
        TypeError: it is of no kind that there are attributes for.
    """
    return _to_mlir(value.value if isinstance(value, Attribute) else _frozen(value)[0])


def _to_mlir(value: ir.Value[Any]) -> Any:
    if isinstance(value, dict):
        return stablehlo.dictionary({key: _to_mlir(part) for key, part in value.items()})
    if isinstance(value, tuple):
        return ir.ArrayAttr.get(list(map(_to_mlir, value)), stablehlo.context())
    if isinstance(value, np.ndarray):
        return stablehlo.dense(value)
    if isinstance(value, str):
        return stablehlo.string(value)
    if isinstance(value, bytes):
        return ir.StringAttr.get(value, stablehlo.context())
    if isinstance(value, np.dtype):
        return ir.TypeAttr.get(stablehlo.element_type(value), stablehlo.context())
    return _number_to_mlir(value)


def _number_to_mlir(value: Any) -> Any:
    if isinstance(value, bool | np.bool_):
        return stablehlo.boolean(bool(value))
    dtype = value.dtype if isinstance(value, np.generic) else np.dtype(type(value))
    kind = stablehlo.element_type(dtype)
    with stablehlo.context(), ir.Location.unknown():
        if dtype == np.uint64:
            value = value.view(np.int64)
        if dtypes.issubdtype(dtype, np.integer):
            return ir.IntegerAttr.get(kind, int(value))
        return ir.FloatAttr.get(kind, float(value))


TYPED = 4
"""The version of the interface between XLA and foreign functions that has attributes."""

DimOrder = tuple[int, ...]
"""The dimensions of an array in memory, minor to major: the contiguous one is first."""


def row_major(ndim: int) -> DimOrder:
    """The last dimension is contiguous, as in C."""
    return tuple(range(ndim))[::-1]


def column_major(ndim: int) -> DimOrder:
    """Matrices in the last two dimensions with contiguous columns, as in Fortran."""
    if ndim < 2:
        return row_major(ndim)
    return (ndim - 2, ndim - 1, *row_major(ndim - 2))


def custom_call(
    ctx: LoweringContext,
    target: str,
    operands: Sequence[ir.Value[Any]],
    operand_avals: Sequence[Any],
    result_avals: Sequence[Any],
    *,
    config: Mapping[str, Any] | str | None = None,
    operand_layouts: Sequence[DimOrder | None] | None = None,
    result_layouts: Sequence[DimOrder | None] | None = None,
    aliases: Mapping[int, int] | None = None,
    has_side_effect: bool = False,
    api_version: int = TYPED,
    num_batch_dims: int | None = None,
    extra_attributes: Mapping[str, Any] | None = None,
) -> list[Any]:
    """Builds a call of a foreign function; the values of its results.

    Args:
        ctx: where to build.
        target: the function's name in XLA's table.
        operands: MLIR values.
        operand_avals: their types.
        result_avals: the types of the results.
        config: attributes by name, in MLIR, for the typed interface (version 4); a text before.
        operand_layouts: the order of dimensions of each operand; row-major where None.
        result_layouts: likewise of each result.
        aliases: which operands' memory the results take: operand to result.
        has_side_effect: whether the call shall stay although nothing uses its results.
        api_version: of the interface between XLA and the function.
        num_batch_dims: so many leading dimensions of all operands and results are a batch that
            devices may divide among them, if the function is known to be batch partitionable.
        extra_attributes: more attributes of the operation, in MLIR.
    """
    attributes = dict(extra_attributes or {})
    if num_batch_dims is not None:
        batch = stablehlo.string(str(num_batch_dims))
        attributes["mhlo.frontend_attributes"] = stablehlo.dictionary({"num_batch_dims": batch})
        if ctx.module.partitioning.with_shardy:
            rule = batch_sharding_rule(
                _shapes(operand_avals), _shapes(result_avals), num_batch_dims
            )
            attributes["sdy.sharding_rule"] = stablehlo.attribute(rule)
    operation = build(
        ctx,
        target,
        operands,
        [stablehlo.type_of(aval) for aval in result_avals],
        config=config,
        operand_layouts=filled(operand_avals, operand_layouts),
        result_layouts=filled(result_avals, result_layouts),
        aliases=aliases,
        has_side_effect=has_side_effect,
        api_version=api_version,
        extra_attributes=attributes,
    )
    return list(operation.results)


def build(
    ctx: LoweringContext,
    target: str,
    operands: Sequence[ir.Value[Any]],
    result_types: Sequence[Any],
    *,
    config: Mapping[str, Any] | str | None = None,
    operand_layouts: Sequence[DimOrder] | None = None,
    result_layouts: Sequence[DimOrder] | None = None,
    aliases: Mapping[int, int] | None = None,
    has_side_effect: bool = False,
    api_version: int = TYPED,
    result_shapes: Sequence[Any] = (),
    called_computations: Sequence[str] = (),
    extra_attributes: Mapping[str, Any] | None = None,
) -> Any:
    """Builds the operation alone, of MLIR types: `custom_call` without what avals tell.

    Args:
        ctx: where to build.
        target: the function's name in XLA's table.
        operands: MLIR values.
        result_types: MLIR types.
        config: as for `custom_call`.
        operand_layouts: the order of dimensions of each operand; XLA chooses where all are None.
        result_layouts: likewise of each result.
        aliases: as for `custom_call`.
        has_side_effect: as for `custom_call`.
        api_version: as for `custom_call`.
        result_shapes: MLIR values of the shapes of the results, where types leave them open.
        called_computations: names of functions in the module that the foreign function calls.
        extra_attributes: more attributes of the operation, in MLIR.
    """
    attributes = {
        "call_target_name": stablehlo.string(target),
        "api_version": stablehlo.integer(api_version, 32),
        **_config(config),
        **(extra_attributes or {}),
    }
    if has_side_effect:
        attributes["has_side_effect"] = stablehlo.boolean(True)
    if operand_layouts is not None:
        attributes["operand_layouts"] = _layouts(operand_layouts)
    if result_layouts is not None:
        attributes["result_layouts"] = _layouts(result_layouts)
    if aliases:
        attributes["output_operand_aliases"] = _aliases(aliases, len(result_types))
    if called_computations:
        names = [stablehlo.symbol(name) for name in called_computations]
        attributes["called_computations"] = ir.ArrayAttr.get(names, stablehlo.context())
    if result_shapes:
        indices = np.arange(len(operands), len(operands) + len(result_shapes))
        attributes["indices_of_shape_operands"] = stablehlo.dense(indices)
    return ctx.operation(
        "stablehlo.custom_call", [*operands, *result_shapes], attributes, result_types
    )


def batch_sharding_rule(
    operands: Sequence[Sequence[int]], results: Sequence[Sequence[int]], batch: int
) -> str:
    """Shardy's rule of an operation of which only the batch dimensions are known.

    Args:
        operands: the shapes of the operands.
        results: those of the results.
        batch: how many leading dimensions they share.
    """
    sizes: list[int] = []

    def factors(shape: Sequence[int]) -> str:
        # What a kernel is not asked for may be a scalar, and no batch.
        shared = range(min(batch, len(shape)))
        own = range(len(sizes), len(sizes) + len(shape[batch:]))
        sizes.extend(shape[batch:])
        return f"[{', '.join(_factor_name(i) for i in (*shared, *own))}]"

    sizes.extend((*operands, *results)[0][:batch])
    sides = [", ".join(map(factors, side)) for side in (operands, results)]
    named = ", ".join(f"{_factor_name(i)}={int(size)}" for i, size in enumerate(sizes))
    return f"#sdy.op_sharding_rule<({sides[0]})->({sides[1]}) {{{named}}}, custom>"


def _factor_name(index: int) -> str:
    """i to z, then z_1, z_2, …, as Shardy names the factors of dimensions."""
    letters = "ijklmnopqrstuvwxyz"
    beyond = index - len(letters)
    return letters[index] if beyond < 0 else f"z_{beyond + 1}"


def _shapes(avals: Iterable[Any]) -> list[Sequence[int]]:
    return [physical_aval(a).shape for a in avals if isinstance(a, ShapedArray)]


def _config(config: Mapping[str, Any] | str | None) -> dict[str, Any]:
    if config is None:
        return {}
    if isinstance(config, str):
        return {"backend_config": stablehlo.string(config)}
    return {"backend_config": stablehlo.dictionary(dict(config))}


def filled(avals: Avals, layouts: Sequence[DimOrder | None] | None = None) -> tuple[DimOrder, ...]:
    """The layout of each value: row-major where none is given."""
    given = [None] * len(avals) if layouts is None else layouts
    return tuple(
        row_major(_rank(aval)) if layout is None else layout
        for aval, layout in zip(avals, given, strict=True)
    )


def _rank(aval: AbstractValue) -> int:
    return 0 if isinstance(aval, AbstractToken) else physical_aval(aval).ndim


def _layouts(layouts: Sequence[DimOrder]) -> Any:
    texts = [
        f"dense<{list(layout) if layout else ''}> : tensor<{len(layout)}xindex>"
        for layout in layouts
    ]
    return stablehlo.attribute(f"[{', '.join(texts)}]")


def _aliases(aliases: Mapping[int, int], results: int) -> Any:
    # A single result is no tuple, and has no index in one.
    texts = [
        "#stablehlo.output_operand_alias<output_tuple_indices = "
        f"{[result] if results > 1 else []}, operand_index = {operand}, operand_tuple_indices = []>"
        for operand, result in sorted(aliases.items())
    ]
    return stablehlo.attribute(f"[{', '.join(texts)}]")
