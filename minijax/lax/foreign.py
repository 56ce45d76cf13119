"""Operations that others define: calls of foreign functions, and compositions under a name.

Foreign functions are machine code that XLA finds by name in its table.  The public function is in
`minijax.ffi`; linear algebra uses `call`.

`Composed` is the family of operations that stand for a composition of others, and get their rules
from it.  `composite` is the one whose composition the user writes: in a module it has a name, by
which a compiler may put its own in place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from minijax.core import dtypes, effects, printing, tree, vma
from minijax.core.aval import AbstractToken, ShapedArray, aval_of
from minijax.core.errors import ShardingTypeError, UnexpectedTracerError, error
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.meshes import PartitionSpec
from minijax.core.primitive import Batched, Cotangents, Dual, Primitive, Zero
from minijax.core.trace import Tracer
from minijax.interpreters import batching, jvp, staging, transpose
from minijax.interpreters.jvp import is_linear, with_zeros
from minijax.interpreters.structural import in_front, to_batch_dim
from minijax.lax import callbacks
from minijax.lax.families import Avals, BatchDims, Params, Values
from minijax.lowering import custom_calls, eager, module, regions, stablehlo
from minijax.lowering.custom_calls import Attribute, DimOrder, attributes_of, to_mlir
from minijax.lowering.stablehlo import LoweringContext, Value
from minijax.runtime.array import Array
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
        self, avals: Avals, outs: Avals, *, num_batch_dims: int | None, **_: Any
    ) -> list[PartitionSpec]:
        entries = rules.join_leading(self, list(filter(_is_array, avals)), num_batch_dims or 0)
        return [_result_spec(aval, entries) for aval in outs]

    def lower(
        self,
        ctx: LoweringContext,
        *values: Value,
        target_name: str,
        result_avals: Sequence[Any],
        attributes: tuple[tuple[str, Attribute], ...],
        input_layouts: tuple[DimOrder, ...],
        output_layouts: tuple[DimOrder, ...],
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

        def call(ctx: LoweringContext, *values: Value) -> list[Any]:
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

    def jvp(self, *args: Any, target_name: str, **params: Any) -> NoReturn:
        problem = f"nothing is known of the derivative of the foreign function {target_name!r}."
        error(ValueError, "ffi.ffi_call", problem, fix=callbacks.NO_DERIVATIVE)

    transpose = jvp

    def batch(self, size: int, args: Sequence[Array], dims: BatchDims, **params: Any) -> Batched:
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


def _whole_operands(size: int, args: Sequence[Array], dims: BatchDims, params: Params) -> list[Any]:
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


def _batch_dims_of_batch(args: Values, dims: Sequence[int | None], params: Params) -> int | None:
    """How many leading dimensions all operands and results share in a call with a whole batch."""
    before: int | None = params["num_batch_dims"]
    lacks_batch = params["vmap_method"] == "legacy_vectorized" and None in dims
    return None if before is None or lacks_batch else before + 1


def _with_batch(layout: DimOrder) -> DimOrder:
    """The layout of an array with a new first dimension, which is the slowest."""
    return (*(d + 1 for d in layout), 0)


def _is_array(aval: object) -> bool:
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


def call(
    target: str,
    operands: Sequence[Any],
    result_avals: Sequence[Any],
    *,
    attributes: Mapping[str, Any] | None = None,
    input_layouts: Sequence[DimOrder | None] | None = None,
    output_layouts: Sequence[DimOrder | None] | None = None,
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


class Composed(Primitive):
    """Family: what is equal to a composition of other operations, given as a jaxpr.

    Under transformations the composition takes the place of the operation.
    """

    shard = rules.from_types

    def composition(self, avals: Avals, params: Params) -> ClosedJaxpr:
        """What the operation is equal to, for operands of some types."""
        raise NotImplementedError

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> Any:
        return self._outs(self.composition(avals, params).out_avals)

    def lower(self, ctx: LoweringContext, *values: Any, **params: Any) -> Any:
        closed = self.composition(ctx.avals_in, params)
        return self._outs(
            module.lower_jaxpr(ctx, closed.jaxpr, closed.consts, values, location=ctx.location)
        )

    def jvp(self, primals: Values, tangents: Sequence[Any], **params: Any) -> Dual:
        closed = self.composition([aval_of(x) for x in primals], params)
        nonzero = [type(t) is not Zero for t in tangents]
        derivative, out_nonzero = jvp.jvp_jaxpr(closed, nonzero)
        given = [t for t in tangents if type(t) is not Zero]
        outs = staging.eval_closed_jaxpr(derivative, *primals, *given)
        count = len(out_nonzero)
        dots = with_zeros(out_nonzero, outs[count:], closed.out_avals)
        return self._outs(outs[:count]), self._outs(dots)

    def transpose(self, ct: Any, *args: Any, **params: Any) -> Cotangents:
        linear = [is_linear(x) for x in args]
        closed = self.composition([x.aval if is_linear(x) else aval_of(x) for x in args], params)
        cts = ct if self.multiple_results else [ct]
        backward, nonzero = transpose.transpose_jaxpr(
            closed, linear, [type(c) is not Zero for c in cts]
        )
        known = [x for x, lin in zip(args, linear, strict=True) if not lin]
        given = [c for c in cts if type(c) is not Zero]
        found = staging.eval_closed_jaxpr(backward, *known, *given)
        return transpose.of_arguments(linear, nonzero, found)

    def batch(self, size: int, args: Values, dims: Sequence[Any], **params: Any) -> Batched:
        moved = in_front(args, dims)
        avals = [
            aval_of(x).with_shape(aval_of(x).shape[d is not None :])
            for x, d in zip(moved, dims, strict=True)
        ]
        closed = self.composition(avals, params)
        body, batched = batching.batch_jaxpr(closed, size, [d is not None for d in dims])
        outs = staging.eval_closed_jaxpr(body, *moved)
        return self._outs(outs), self._outs([0 if b else None for b in batched])

    def _outs(self, outs: Sequence[Any]) -> Any:
        return list(outs) if self.multiple_results else outs[0]


class Composite(Composed):
    """A composition under a name that compilers may know.

    Shapes: those of the jaxpr.  Derivatives and batches are those of the composition.
    """

    name = "composite"
    multiple_results = True

    def composition(self, avals: Avals, params: Params) -> ClosedJaxpr:
        closed: ClosedJaxpr = params["jaxpr"]
        return closed

    def lower(
        self,
        ctx: LoweringContext,
        *values: Value,
        jaxpr: ClosedJaxpr,
        name: str,
        version: int,
        attributes: tuple[tuple[str, Any], ...],
    ) -> list[Any]:
        function = ctx.module.fresh_name(name)
        ctx.module.function(function, jaxpr.jaxpr, jaxpr.consts)
        entries = {key: custom_calls.to_mlir(value) for key, value in attributes}
        given = {
            "name": stablehlo.string(name),
            "decomposition": stablehlo.symbol(function),
            "version": stablehlo.integer(version, 32),
            "composite_attributes": stablehlo.dictionary(entries),
        }
        types = [stablehlo.type_of(aval) for aval in jaxpr.out_avals]
        return list(ctx.ops("stablehlo.composite", values, given, types=types))


vma.vary.rule(Composite)(vma.from_types)


composite_p = Composite()
# What the StableHLO specification takes for the name of an operation.
_NAMESPACED = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*([.][a-zA-Z0-9_$]+)+")


def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """A function that a compiled module shows as one operation called `name`.

    A compiler that knows the name may compute it in its own way; any other calls `decomposition`.

    Derivative: that of the decomposition; with `custom_jvp` around it, another.
    Lowers to:  stablehlo.composite.
    Source:     mirrors jax.lax.composite (0.10); the StableHLO specification, "composite".

    Args:
        decomposition: a function of trees of arrays, and of keyword arguments that are known when
            the program is compiled: the attributes of the operation.
        name: of the operation, with the namespace of its library: "my.op".
        version: of what the name stands for.

    Raises:
        TypeError: `decomposition` is not a function, or an attribute has no form in a module.
        UnexpectedTracerError: the decomposition closes over traced values, or one is an attribute.
        ValueError: the name has no namespace.

    Example:
        >>> square = lax.composite(lambda x: x * x, "my.square")
        >>> square(np.float32(3.0))
        Array(9., dtype=float32)
    """
    eager.check_callable("lax.composite", decomposition)
    if not _NAMESPACED.fullmatch(str(name)):
        problem = "the name of an operation begins with that of its library."
        expected = "letters, digits, underscores, and a dot between: 'my_library.my_op'"
        error(ValueError, "lax.composite", problem, got={"name": repr(name)}, expected=expected)

    def call(*args: Any, **attributes: Any) -> Any:
        leaves, in_tree = tree.flatten(args)
        out_trees = []

        def flat(*values: Any) -> list[Any]:
            outs = decomposition(*tree.unflatten(in_tree, values), **attributes)
            found, out_tree = tree.flatten(outs)
            out_trees.append(out_tree)
            return found

        known = _attributes(attributes)
        jaxpr, consts = staging.stage(flat, [aval_of(x) for x in leaves])
        _check_known("a constant of the decomposition", consts)
        outs = composite_p.bind(
            *leaves,
            jaxpr=ClosedJaxpr(jaxpr, consts),
            name=str(name),
            version=int(version),
            attributes=known,
        )
        return tree.unflatten(out_trees[0], outs)

    return call


def _attributes(given: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    _check_known("an attribute", tree.leaves(dict(given)))
    kept = {key: _with_tuples(value) for key, value in given.items() if value is not None}
    return custom_calls.attributes_of("lax.composite", kept)


def _with_tuples(value: object) -> Any:
    """Attributes are compared, which lists cannot be."""
    if isinstance(value, list | tuple):
        return tuple(map(_with_tuples, value))
    if isinstance(value, dict):
        return {key: _with_tuples(part) for key, part in value.items()}
    return value


def _check_known(what: str, values: Values) -> None:
    for value in values:
        if isinstance(value, Tracer):
            error(
                UnexpectedTracerError,
                "lax.composite",
                f"{what} is traced.",
                got=str(aval_of(value)),
                expected="values that are known when the program is compiled",
                fix="pass it to the composite as a positional argument",
            )
