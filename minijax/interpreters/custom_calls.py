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
from minijax.core.errors import message
from minijax.interpreters import hlo_build
from minijax.interpreters.hlo_build import LoweringContext
from minijax.runtime.array import physical_aval

Layout = Sequence[int]
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
    api_version: int = 4,
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
    attributes = {
        "call_target_name": ctx.string(target),
        "api_version": ctx.integer(api_version, 32),
        "has_side_effect": ctx.boolean(has_side_effect),
        "operand_layouts": _layouts(operand_avals, operand_layouts),
        "result_layouts": _layouts(result_avals, result_layouts),
        **_config(config),
        **(extra_attributes or {}),
    }
    if aliases:
        attributes["output_operand_aliases"] = _aliases(aliases, len(result_avals))
    if num_batch_dims is not None:
        batch = hlo_build.string(str(num_batch_dims))
        attributes["mhlo.frontend_attributes"] = hlo_build.dictionary({"num_batch_dims": batch})
        if ctx.module.partitioning.with_shardy:
            rule = batch_sharding_rule(
                _shapes(operand_avals), _shapes(result_avals), num_batch_dims
            )
            attributes["sdy.sharding_rule"] = hlo_build.attribute(rule)
    types = [hlo_build.type_of(aval) for aval in result_avals]
    return ctx.ops("stablehlo.custom_call", operands, attributes, types)


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
        own = range(len(sizes), len(sizes) + len(shape) - batch)
        sizes.extend(shape[batch:])
        return f"[{', '.join(_factor_name(i) for i in (*range(batch), *own))}]"

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


def _layouts(avals: Sequence[Any], given: Sequence[Layout | None] | None) -> Any:
    each = given or [None] * len(avals)
    texts = [_layout(aval, layout) for aval, layout in zip(avals, each, strict=True)]
    return hlo_build.attribute(f"[{', '.join(texts)}]")


def _layout(aval: Any, layout: Layout | None) -> str:
    ndim = 0 if isinstance(aval, AbstractToken) else physical_aval(aval).ndim
    order = row_major(ndim) if layout is None else layout
    return f"dense<{list(order) if ndim else ''}> : tensor<{ndim}xindex>"


def _aliases(aliases: Mapping[int, int], results: int) -> Any:
    # A single result is no tuple, and has no index in one.
    texts = [
        "#stablehlo.output_operand_alias<output_tuple_indices = "
        f"{[result] if results > 1 else []}, operand_index = {operand}, operand_tuple_indices = []>"
        for operand, result in sorted(aliases.items())
    ]
    return hlo_build.attribute(f"[{', '.join(texts)}]")


def attribute_of(value: Any) -> Any:
    """The MLIR attribute by which a foreign function gets a Python or NumPy value.

    bool is i1, int is i64, float is f64; NumPy's scalars keep their width, arrays are dense, and
    mappings are dictionaries.

    Raises:
        TypeError: there is no attribute for such a value.
    """
    if isinstance(value, str):
        return hlo_build.string(value)
    if isinstance(value, bool | np.bool_):
        return hlo_build.boolean(bool(value))
    if isinstance(value, int):
        return hlo_build.integer(value)
    if isinstance(value, float) and not isinstance(value, np.generic):
        return ir.FloatAttr.get(hlo_build.element_type(np.dtype(np.float64)), value)
    if isinstance(value, Mapping):
        return hlo_build.dictionary({k: attribute_of(v) for k, v in sorted(value.items())})
    if isinstance(value, np.ndarray):
        return hlo_build.dense(value)
    if isinstance(value, np.generic) and value.dtype.kind in "iuf":
        kind = hlo_build.element_type(value.dtype)
        make = ir.FloatAttr if value.dtype.kind == "f" else ir.IntegerAttr
        with hlo_build.context(), ir.Location.unknown():
            return make.get(kind, value.item())
    raise TypeError(
        message(
            "ffi_call",
            f"there is no attribute for values of type {type(value).__name__}.",
            got=repr(value),
            expected="a bool, int, float, str, NumPy scalar or array, or a dict of these",
        )
    )
