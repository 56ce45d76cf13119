"""Calls of foreign functions in StableHLO.

Input: the name of a function in XLA's table, values, attributes and layouts.  Output: the values
of its results.  What XLA may know of a function besides its name is said here: which result takes
the memory of which operand, in which order the elements lie, and that the leading dimensions are
a batch, whose entries devices may compute on their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from minijax.core.aval import AbstractToken, ShapedArray
from minijax.interpreters import hlo_build
from minijax.interpreters.hlo_build import LoweringContext
from minijax.runtime.array import physical_aval

TYPED = 4
"""The version of the interface between XLA and foreign functions that has attributes."""

Layout = tuple[int, ...]
"""The dimensions of an array, from the one whose neighbours lie closest: minor to major."""


def row_major(ndim: int) -> Layout:
    """The last dimension is contiguous, as in C."""
    return tuple(range(ndim))[::-1]


def column_major(ndim: int) -> Layout:
    """Matrices in the last two dimensions with contiguous columns, as in Fortran."""
    if ndim < 2:
        return row_major(ndim)
    return (ndim - 2, ndim - 1, *row_major(ndim - 2))


def custom_call(
    ctx: LoweringContext,
    target: str,
    operands: Sequence[Any],
    operand_avals: Sequence[Any],
    result_avals: Sequence[Any],
    *,
    config: Mapping[str, Any] | str | None = None,
    operand_layouts: Sequence[Layout | None] | None = None,
    result_layouts: Sequence[Layout | None] | None = None,
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
        batch = hlo_build.string(str(num_batch_dims))
        attributes["mhlo.frontend_attributes"] = hlo_build.dictionary({"num_batch_dims": batch})
        if ctx.module.partitioning.with_shardy:
            rule = batch_sharding_rule(
                _shapes(operand_avals), _shapes(result_avals), num_batch_dims
            )
            attributes["sdy.sharding_rule"] = hlo_build.attribute(rule)
    operation = build(
        ctx,
        target,
        operands,
        [hlo_build.type_of(aval) for aval in result_avals],
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
    operands: Sequence[Any],
    result_types: Sequence[Any],
    *,
    config: Mapping[str, Any] | str | None = None,
    operand_layouts: Sequence[Layout] | None = None,
    result_layouts: Sequence[Layout] | None = None,
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
        "call_target_name": hlo_build.string(target),
        "api_version": hlo_build.integer(api_version, 32),
        **_config(config),
        **(extra_attributes or {}),
    }
    if has_side_effect:
        attributes["has_side_effect"] = hlo_build.boolean(True)
    if operand_layouts is not None:
        attributes["operand_layouts"] = _layouts(operand_layouts)
    if result_layouts is not None:
        attributes["result_layouts"] = _layouts(result_layouts)
    if aliases:
        attributes["output_operand_aliases"] = _aliases(aliases, len(result_types))
    if called_computations:
        names = [hlo_build.symbol(name) for name in called_computations]
        attributes["called_computations"] = ir.ArrayAttr.get(names, hlo_build.context())
    if result_shapes:
        indices = np.arange(len(operands), len(operands) + len(result_shapes))
        attributes["indices_of_shape_operands"] = hlo_build.dense(indices)
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
    named = ", ".join(f"{_factor_name(i)}={size}" for i, size in enumerate(sizes))
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
        return {"backend_config": hlo_build.string(config)}
    return {"backend_config": hlo_build.dictionary(dict(config))}


def filled(
    avals: Sequence[Any], layouts: Sequence[Layout | None] | None = None
) -> tuple[Layout, ...]:
    """The layout of each value: row-major where none is given."""
    given = [None] * len(avals) if layouts is None else layouts
    return tuple(
        row_major(_rank(aval)) if layout is None else layout
        for aval, layout in zip(avals, given, strict=True)
    )


def _rank(aval: Any) -> int:
    return 0 if isinstance(aval, AbstractToken) else physical_aval(aval).ndim


def _layouts(layouts: Sequence[Layout]) -> Any:
    texts = [
        f"dense<{list(layout) if layout else ''}> : tensor<{len(layout)}xindex>"
        for layout in layouts
    ]
    return hlo_build.attribute(f"[{', '.join(texts)}]")


def _aliases(aliases: Mapping[int, int], results: int) -> Any:
    # A single result is no tuple, and has no index in one.
    texts = [
        "#stablehlo.output_operand_alias<output_tuple_indices = "
        f"{[result] if results > 1 else []}, operand_index = {operand}, operand_tuple_indices = []>"
        for operand, result in sorted(aliases.items())
    ]
    return hlo_build.attribute(f"[{', '.join(texts)}]")
