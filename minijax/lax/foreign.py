"""Calls of foreign functions: machine code that XLA finds by name in its table.

The public function is in `minijax.ffi`; linear algebra uses `call`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from minijax.core import dtypes, effects, printing
from minijax.core.aval import AbstractToken, aval_of
from minijax.core.errors import ShardingTypeError, error, message
from minijax.core.meshes import PartitionSpec
from minijax.core.primitive import Primitive
from minijax.interpreters.structural import to_batch_dim
from minijax.lax import callbacks
from minijax.lowering import custom_calls, regions
from minijax.lowering.custom_calls import Attribute, Layout, attributes_of, to_mlir
from minijax.sharding import rules


class FfiEffect(effects.Effect):
    """A program calls a foreign function for more than its results; in any order.

    All such effects are equal.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is FfiEffect

    def __hash__(self) -> int:
        return hash(FfiEffect)

    def __repr__(self) -> str:
        return "Ffi"


ffi_effect = FfiEffect()
effects.lowerable_effects.add_type(FfiEffect)
effects.control_flow_allowed_effects.add_type(FfiEffect)
_FFI = frozenset({ffi_effect})


class FfiCall(Primitive):
    """Calls a foreign function; nothing is known of what it computes but the types of its results.

    Shapes:     operands and results as the function has them.
    Varying:    results vary wherever an operand does.
    Derivative: none, as nothing is known of the function.
    """

    name = "ffi_call"
    multiple_results = True
    has_effects = True

    def abstract_eval(
        self, *avals: Any, target_name: str, result_avals: Sequence[Any], **_: Any
    ) -> list[Any]:
        for aval in avals:
            _check_no_sum(target_name, aval)
        return list(result_avals)

    def effects(self, *avals: Any, has_side_effect: bool, **_: Any) -> frozenset[Any]:
        return _FFI if has_side_effect else frozenset()

    def shard(
        self, avals: Sequence[Any], outs: Sequence[Any], *, num_batch_dims: int | None, **_: Any
    ) -> list[PartitionSpec]:
        entries = rules.join_leading(self, list(filter(_is_array, avals)), num_batch_dims or 0)
        return [_result_spec(aval, entries) for aval in outs]

    def lower(
        self,
        ctx: Any,
        *values: Any,
        target_name: str,
        result_avals: Sequence[Any],
        attributes: tuple[tuple[str, Attribute], ...],
        input_layouts: tuple[Layout, ...],
        output_layouts: tuple[Layout, ...],
        input_output_aliases: tuple[tuple[int, int], ...],
        has_side_effect: bool,
        custom_call_api_version: int,
        legacy_backend_config: str | None,
        num_batch_dims: int | None,
        vmap_method: str | None,
    ) -> list[Any]:
        config: Mapping[str, Any] | str | None = legacy_backend_config
        if custom_call_api_version >= custom_calls.TYPED:
            config = {name: to_mlir(value) for name, value in attributes}

        def call(ctx: Any, *values: Any) -> list[Any]:
            return custom_calls.custom_call(
                ctx,
                target_name,
                values,
                ctx.avals_in,
                result_avals,
                config=config,
                operand_layouts=input_layouts,
                result_layouts=output_layouts,
                aliases=dict(input_output_aliases),
                has_side_effect=has_side_effect,
                api_version=custom_call_api_version,
                num_batch_dims=None if has_side_effect else num_batch_dims,
            )

        if has_side_effect and all(map(_is_array, [*ctx.avals_in, *result_avals])):
            types = list(map(ctx.type_of, result_avals))
            return regions.on_each_device(ctx, values, types, call)
        return call(ctx, *values)

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> NoReturn:
        raise ValueError(_no_derivative(params["target_name"]))

    def transpose(self, cts: Any, *args: Any, **params: Any) -> NoReturn:
        raise ValueError(_no_derivative(params["target_name"]))

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        method = params["vmap_method"]
        callbacks.check_chosen("ffi.ffi_call", repr(params["target_name"]), method)
        if callbacks.is_one_by_one(method):
            outs, out_dims = callbacks.call_for_each(
                method, lambda *xs: self.bind(*xs, **params), args, dims, size
            )
            return outs, list(out_dims)
        operands = _whole_operands(size, args, dims, params)
        before = zip(args, dims, operands, params["input_layouts"], strict=True)
        params["input_layouts"] = tuple(
            layout if d is None and whole is x else _with_batch(layout)
            for x, d, whole, layout in before
        )
        avals = params["result_avals"]
        return_dims = [0 if _is_array(aval) else None for aval in avals]
        params["result_avals"] = tuple(a.with_dim(0, size) if _is_array(a) else a for a in avals)
        params["output_layouts"] = tuple(
            _with_batch(layout) if _is_array(aval) else layout
            for aval, layout in zip(avals, params["output_layouts"], strict=True)
        )
        params["num_batch_dims"] = _batch_dims_of_batch(args, dims, params)
        return self.bind(*operands, **params), return_dims


dtypes.knows_extended.set(True, FfiCall)
printing.hidden_when_empty.set(frozenset({"num_batch_dims"}), FfiCall)


ffi_call_p = FfiCall()


def _whole_operands(
    size: int, args: Sequence[Any], dims: Sequence[int | None], params: Mapping[str, Any]
) -> list[Any]:
    """The operands of a call with the whole batch."""
    method = params["vmap_method"]
    # What gives its memory to a result must have the result's shape, and what devices divide among
    # them must have all of the batch: where a leading 1 is welcome, so is the size of the batch.
    filled = {operand for operand, _ in params["input_output_aliases"]}
    if params["num_batch_dims"] is not None and method == "expand_dims":
        method = "broadcast_all"
    return [
        to_batch_dim(x, d, 0, size)
        if i in filled and _is_array(aval_of(x))
        else callbacks.whole_batch(method, x, d, size)
        if _is_array(aval_of(x))
        else x
        for i, (x, d) in enumerate(zip(args, dims, strict=True))
    ]


def _batch_dims_of_batch(
    args: Sequence[Any], dims: Sequence[int | None], params: Mapping[str, Any]
) -> int | None:
    """How many leading dimensions all operands and results share in a call with a whole batch."""
    before: int | None = params["num_batch_dims"]
    lacks_batch = params["vmap_method"] == "legacy_vectorized" and None in dims
    return None if before is None or lacks_batch else before + 1


def _with_batch(layout: Layout) -> Layout:
    """The layout of an array with a new first dimension, which is the slowest."""
    return (*(d + 1 for d in layout), 0)


def _is_array(aval: Any) -> bool:
    return not isinstance(aval, AbstractToken)


def _result_spec(aval: Any, entries: Sequence[Any]) -> PartitionSpec:
    """How a result is split: as the user promises it, or along the batch as the operands are."""
    if not _is_array(aval):
        return PartitionSpec()
    if aval.split is not None:
        return rules.spec_of(aval)
    return PartitionSpec(*entries[: aval.ndim], *[None] * (aval.ndim - len(entries)))


def _check_no_sum(target: str, aval: Any) -> None:
    """Refuses operands of which devices hold summands, or whose cotangents are such.

    Raises:
        ShardingTypeError: the type says so.
    """
    kind = aval.manual_axis_type
    spec = PartitionSpec() if aval.split is None else aval.split.spec
    axes = {*kind.unreduced, *kind.reduced, *spec.unreduced, *spec.reduced}
    if axes:
        error(
            ShardingTypeError,
            "ffi.ffi_call",
            f"an operand of {target!r} is unreduced or reduced over mesh axes, and nothing is "
            "known of sums of what a foreign function computes.",
            got=str(aval),
            fix="lax.psum(x, axis) on it, or reshard(x, spec) outside of shard_map",
        )


def _no_derivative(target: str) -> str:
    return message(
        "ffi.ffi_call",
        f"nothing is known of the derivative of the foreign function {target!r}.",
        fix="wrap the call in minijax.custom_jvp or minijax.custom_vjp, or pass "
        "lax.stop_gradient(x) if the derivative does not matter",
    )


def call(
    target: str,
    operands: Sequence[Any],
    result_avals: Sequence[Any],
    *,
    attributes: Mapping[str, Any] | None = None,
    input_layouts: Sequence[Layout | None] | None = None,
    output_layouts: Sequence[Layout | None] | None = None,
    aliases: Mapping[int, int] | None = None,
    has_side_effect: bool = False,
    api_version: int = custom_calls.TYPED,
    legacy_backend_config: str | None = None,
    num_batch_dims: int | None = None,
    vmap_method: str | None = None,
) -> list[Any]:
    """Calls a foreign function.

    Args:
        target: its name in XLA's table.
        operands: arrays.
        result_avals: the types of the results.
        attributes: what it gets besides arrays.
        input_layouts: minor to major, of each operand; row-major where None.
        output_layouts: likewise of each result.
        aliases: which operands' memory the results take: operand to result.
        has_side_effect: whether the call shall stay although nothing uses its results.
        api_version: of the interface between XLA and the function.
        legacy_backend_config: what it gets instead of attributes by interfaces before the typed.
        num_batch_dims: how many leading dimensions of all operands and results are a batch.
        vmap_method: how `vmap` calls it.
    """
    return list(
        ffi_call_p.bind(
            *operands,
            target_name=target,
            result_avals=tuple(result_avals),
            attributes=attributes_of("ffi.ffi_call", attributes or {}),
            input_layouts=custom_calls.filled([aval_of(x) for x in operands], input_layouts),
            output_layouts=custom_calls.filled(result_avals, output_layouts),
            input_output_aliases=tuple(sorted((aliases or {}).items())),
            has_side_effect=has_side_effect,
            custom_call_api_version=api_version,
            legacy_backend_config=legacy_backend_config,
            num_batch_dims=num_batch_dims,
            vmap_method=vmap_method,
        )
    )
