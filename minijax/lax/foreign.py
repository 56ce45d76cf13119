"""Calls of foreign functions: machine code that XLA finds by name in its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from minijax.core.primitive import Primitive
from minijax.core.specs import PartitionSpec
from minijax.interpreters import custom_calls
from minijax.sharding import rules


class FfiCall(Primitive):
    """Calls a foreign function; nothing is known of what it computes but the types of its results.

    Shapes: operands and results as the function has them.
    """

    name = "ffi_call"
    multiple_results = True

    def abstract_eval(self, *avals: Any, result_avals: Sequence[Any], **params: Any) -> list[Any]:
        return list(result_avals)

    def shard(
        self,
        avals: Sequence[Any],
        outs: Sequence[Any],
        *,
        num_batch_dims: int | None,
        **params: Any,
    ) -> list[PartitionSpec]:
        batch = num_batch_dims or 0
        for aval in avals:
            rules.check_unsharded(self, [aval], range(batch, aval.ndim))
        columns = zip(*(tuple(rules.spec_of(aval))[:batch] for aval in avals), strict=True)
        entries = [rules.join_entries(self, avals, dim, c) for dim, c in enumerate(columns)]
        return [PartitionSpec(*entries, *[None] * (out.ndim - batch)) for out in outs]

    def lower(
        self,
        ctx: Any,
        *values: Any,
        target_name: str,
        result_avals: Sequence[Any],
        attributes: tuple[tuple[str, Any], ...],
        input_layouts: tuple[tuple[int, ...] | None, ...],
        output_layouts: tuple[tuple[int, ...] | None, ...],
        input_output_aliases: tuple[tuple[int, int], ...],
        num_batch_dims: int | None,
    ) -> list[Any]:
        return custom_calls.custom_call(
            ctx,
            target_name,
            values,
            ctx.avals_in,
            result_avals,
            config={name: custom_calls.attribute_of(value) for name, value in attributes},
            operand_layouts=input_layouts,
            result_layouts=output_layouts,
            aliases=dict(input_output_aliases),
            num_batch_dims=num_batch_dims,
        )


ffi_call_p = FfiCall()


def call(
    target: str,
    operands: Sequence[Any],
    result_avals: Sequence[Any],
    *,
    attributes: Mapping[str, Any] | None = None,
    input_layouts: Sequence[tuple[int, ...] | None] | None = None,
    output_layouts: Sequence[tuple[int, ...] | None] | None = None,
    aliases: Mapping[int, int] | None = None,
    num_batch_dims: int | None = None,
) -> list[Any]:
    """Calls a function by the typed interface; see `custom_calls.custom_call`.

    Args:
        target: its name in XLA's table.
        operands: arrays.
        result_avals: the types of the results.
        attributes: what it gets besides arrays.
        input_layouts: minor to major, of each operand; row-major where None.
        output_layouts: likewise of each result.
        aliases: which operands' memory the results take: operand to result.
        num_batch_dims: how many leading dimensions are a batch.
    """
    return list(
        ffi_call_p.bind(
            *operands,
            target_name=target,
            result_avals=tuple(result_avals),
            attributes=tuple(sorted((attributes or {}).items())),
            input_layouts=tuple(input_layouts or [None] * len(operands)),
            output_layouts=tuple(output_layouts or [None] * len(result_avals)),
            input_output_aliases=tuple(sorted((aliases or {}).items())),
            num_batch_dims=num_batch_dims,
        )
    )
