"""Callbacks into Python, optimization barriers, tokens, and values kept from dead code elimination.

The results of `pure_callback` and `io_callback` have the types that the caller promises; they are
checked when the function returns.  How `vmap` calls functions of which it knows nothing, the
values of `vmap_method`, is shared with foreign functions.  Calls that print, and return nothing,
are in `debugging.py`.

Barriers keep the compiler from moving operations across; tokens, values without content, put side
effects in order; a sink keeps values that a program shall compute though nobody reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from minijax.core import axes as core_axes
from minijax.core import dtypes, effects, tree, tree_errors, vma
from minijax.core.aval import AbstractToken, ShapedArray, abstract_token, aval_of
from minijax.core.errors import error
from minijax.core.primitive import Batched, Cotangents, Dual, Primitive, Zero
from minijax.interpreters import checking, flattening
from minijax.interpreters.structural import in_front, instantiate, moveaxis, new_axis, to_batch_dim
from minijax.lax import creation, shape, slicing
from minijax.lax.control_flow import scanning
from minijax.lax.families import BatchDims, Params, Values, jvp_without_results, no_results
from minijax.lax.families import operand as as_operand
from minijax.lax.shardings import from_bits
from minijax.lowering import eager, regions, stablehlo
from minijax.lowering.stablehlo import LoweringContext, Value
from minijax.runtime import callbacks, effect_tokens
from minijax.runtime.array import Array, ExtendedArray, physical_aval
from minijax.sharding import rules
from minijax.sharding.named import SingleDeviceSharding

_ONE_BY_ONE = ("sequential", "sequential_unrolled")
NAMES = (*_ONE_BY_ONE, "expand_dims", "broadcast_all", "legacy_vectorized")


def check(name: str, method: object) -> None:
    """Refuses what is not a method.

    Args:
        name: the public function, for messages.
        method: what the user gave as `vmap_method`.

    Raises:
        ValueError: there is no such method.
    """
    if method is not None and method not in NAMES:
        problem = f"unknown vmap_method {method!r}."
        error(ValueError, name, problem, expected=f"None or one of {', '.join(map(repr, NAMES))}")


def check_chosen(name: str, what: str, method: str | None) -> None:
    """Refuses to batch where the user has not said how.

    Raises:
        NotImplementedError: there is no method.
    """
    if method is None:
        error(
            NotImplementedError,
            name,
            f"vmap does not know how to call {what} for a batch.",
            got="vmap_method=None",
            expected=f"one of {', '.join(map(repr, NAMES))}",
            fix="vmap_method='sequential' calls it once per example; with 'expand_dims' "
            "or 'broadcast_all' it gets the whole batch along axis 0",
        )


def is_one_by_one(method: str) -> bool:
    """Whether the function is called for each example, not with the whole batch."""
    return method in _ONE_BY_ONE


def call_for_each(
    method: str,
    call: Callable[..., Sequence[Any]],
    args: Sequence[Array],
    dims: BatchDims,
    size: int,
) -> tuple[list[Any], list[int]]:
    """The results of `call` for each example of a batch in turn, stacked."""
    # Without examples, only a loop knows the types of the results.
    if method == "sequential" or size == 0:
        return call_in_loop(call, args, dims)
    rows = [call(*example(i, args, dims)) for i in range(size)]
    outs = [shape.stack(column) for column in zip(*rows, strict=True)]
    return outs, [0] * len(outs)


def example(i: int, args: Sequence[Array], dims: Sequence[int | None]) -> list[Any]:
    """The arguments of one example of a batch."""
    return [
        x if d is None else slicing.index_in_dim(x, i, d, keepdims=False)
        for x, d in zip(args, dims, strict=True)
    ]


def call_in_loop(
    call: Callable[..., Sequence[Any]], args: Values, dims: Sequence[int | None]
) -> tuple[list[Any], list[int]]:
    """The results of `call` for each example of a batch in turn, stacked, by a loop."""
    mapped = [moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True) if d is not None]

    def step(slices: Sequence[Any]) -> Sequence[Any]:
        given = iter(slices)
        return call(*(x if d is None else next(given) for x, d in zip(args, dims, strict=True)))

    outs = list(scanning.map(step, mapped))
    return outs, [0] * len(outs)


def whole_batch(method: str, x: Array, dim: int | None, size: int) -> Any:
    """An operand for a call with the whole batch.

    Args:
        method: `"expand_dims"`, `"broadcast_all"` or `"legacy_vectorized"`.
        x: the operand.
        dim: its batch dimension; None if it is the same for all examples.
        size: the size of the batch.
    """
    if dim is not None or method == "broadcast_all":
        return to_batch_dim(x, dim, 0, size)
    return new_axis(x, 1, 0) if method == "expand_dims" else x


class IOEffect(effects.Effect):
    """A program calls a function that reads or changes something outside; in any order."""

    __slots__ = ()


class OrderedIOEffect(effects.Effect):
    """As `IOEffect`, but calls happen in the order of the program."""

    __slots__ = ()


io_effect = IOEffect()
ordered_io_effect = OrderedIOEffect()
for _effect_type in (IOEffect, OrderedIOEffect):
    effects.lowerable_effects.add_type(_effect_type)
    effects.control_flow_allowed_effects.add_type(_effect_type)
effects.ordered_effects.add_type(OrderedIOEffect)
effects.shardable_ordered_effects.add_type(OrderedIOEffect)


class FlatCallback:
    """A user's function of trees as one of leaves, in the parameters of an operation.

    Attributes:
        function: the user's function.
        in_tree: tree of (args, kwargs).
        fixed: leaves that are not arrays, by position; the arrays are the others.
    """

    __slots__ = ("__name__", "fixed", "function", "in_tree")

    def __init__(
        self, function: Callable[..., Any], in_tree: Any, fixed: Mapping[int, Any]
    ) -> None:
        self.function = function
        self.in_tree = in_tree
        self.fixed = fixed
        self.__name__ = flattening.function_name(function)

    def __call__(self, *arrays: Any) -> list[Any]:
        given = iter(arrays)
        fixed = self.fixed
        leaves = [fixed[i] if i in fixed else next(given) for i in range(self.in_tree.num_leaves)]
        args, kwargs = tree.unflatten(self.in_tree, leaves)
        return tree.leaves(self.function(*args, **kwargs))

    def __repr__(self) -> str:
        return self.__name__


def lower_call(
    ctx: LoweringContext,
    name: str,
    function: Callable[..., Sequence[Any]],
    values: Sequence[Any],
    in_avals: Sequence[Any],
    effect: object = None,
    *,
    partitioned: bool = False,
) -> list[Any]:
    """Builds a call of a Python function; the values of its results.

    In a program on several devices the first one calls it, once and with whole values.

    Args:
        ctx: the context, whose equation has the results' types.
        name: the public function, for messages.
        function: a function of flat arrays.
        values: the operands.
        in_avals: types of the arrays that the function gets for them.
        effect: the effect of calling it; an ordered one takes and leaves a token.
        partitioned: whether each device calls it instead, with the pieces that it holds.
    """
    several = ctx.module.partitioning.partitions > 1
    by_all = partitioned and several
    targets = callbacks.PARTITIONED_TARGETS if by_all else callbacks.CUSTOM_CALL_TARGETS
    target = targets.get(ctx.platform)
    if target is None:
        error(ValueError, name, f"programs on {ctx.platform} cannot call Python functions.")
    is_ordered = effects.ordered_effects.contains(effect)
    axes: Any = ctx.module.device_axes
    if is_ordered and axes.manual and several:
        problem = "an ordered call cannot be made per device of some axes of a mesh only."
        fix = "all axes in axis_names of shard_map, or no ordered=True"
        error(NotImplementedError, name, problem, got=str(axes.mesh), fix=fix)
    called = callbacks.HostCallback(
        name,
        function,
        in_avals,
        ctx.avals_out,
        takes_token=is_ordered,
        goes_on=ctx.module.devices > 1,
    )
    index = len(ctx.module.host_callbacks)
    ctx.module.host_callbacks.append(called)
    called.turns = ctx.module.host_callbacks[0].turns
    taken = [ctx.tokens[effect]] if is_ordered else []
    ranks_in = [0] * is_ordered + [physical_aval(aval).ndim for aval in ctx.avals_in]
    shared = [callbacks.types_of_bits(a) if called.goes_on else [a] for a in ctx.avals_out]
    returned = [aval for avals in shared for aval in avals]
    ranks_out = [0] * is_ordered + [aval.ndim for aval in returned]
    attributes = {
        "call_target_name": ctx.string(target),
        "api_version": ctx.integer(4, 32),
        "backend_config": ctx.attribute(f"{{index = {index} : ui64}}"),
        "has_side_effect": ctx.boolean(effect is not None),
        "operand_layouts": _row_major(ctx, ranks_in),
        "result_layouts": _row_major(ctx, ranks_out),
        **ctx.module.partitioning.on_first_device(len(ranks_out)),
    }
    types = [t.type for t in taken] + list(map(ctx.type_of, returned))
    outs: list[Any] = ctx.ops("stablehlo.custom_call", [*taken, *values], attributes, types)
    if is_ordered:
        ctx.tokens[effect] = outs.pop(0)
    share = ctx.module.partitioning.broadcast
    there = iter([share(ctx, x, aval.ndim) for x, aval in zip(outs, returned, strict=True)])
    return [
        from_bits(ctx, [next(there) for _ in avals], aval)
        for avals, aval in zip(shared, ctx.avals_out, strict=True)
    ]


def _row_major(ctx: LoweringContext, ranks: Sequence[int]) -> Any:
    layouts = [f"dense<{list(range(n))[::-1] if n else ''}> : tensor<{n}xindex>" for n in ranks]
    return ctx.attribute(f"[{', '.join(layouts)}]")


def _without_keys(args: Values) -> list[Any]:
    """Arguments as callbacks get them: of strong types, random keys as the integers underneath."""
    eager.check_no_tracers(args)
    return [x.buffer if isinstance(x, ExtendedArray) else _strong(x) for x in args]


def _strong(x: object) -> Any:
    aval = aval_of(x)
    return creation.convert_to_type(x, aval.dtype, weak_type=False) if aval.weak_type else x


def _promised(
    primitive: Primitive, *avals: Any, result_avals: tuple[ShapedArray, ...], **_: Any
) -> list[ShapedArray]:
    """The types of the results, which the caller promises."""
    return list(result_avals)


NO_DERIVATIVE = (
    "wrap the call in minijax.custom_jvp or minijax.custom_vjp, or pass "
    "lax.stop_gradient(x) if the derivative does not matter"
)


def _refuse_derivative(
    primitive: Primitive, *_: Any, callback: Callable[..., Any], **params: Any
) -> NoReturn:
    problem = f"nothing is known of the derivative of {callback!r}."
    error(ValueError, primitive.name, problem, fix=NO_DERIVATIVE)


class _HostCallback(Primitive):
    """Calls a Python function on the host, of whose derivative nothing is known."""

    multiple_results = True
    shard = rules.nothing_sharded
    abstract_eval = _promised
    jvp = _refuse_derivative
    transpose = _refuse_derivative


core_axes.makes_different.set(True, _HostCallback)
dtypes.knows_extended.set(True, _HostCallback)


class PureCallback(_HostCallback):
    """Calls a Python function without side effects, which may be called any number of times.

    Results:    of the types `result_avals`.
    Derivative: none, as nothing is known of the function.
    """

    name = "pure_callback"

    def impl(self, *args: Any, callback: Any, result_avals: Any, **_: Any) -> list[Any]:
        return callbacks.call_at_once("pure_callback", callback, _without_keys(args), result_avals)

    def lower(self, ctx: LoweringContext, *values: Value, callback: Any, **_: Any) -> list[Any]:
        in_avals = list(map(physical_aval, ctx.avals_in))
        return lower_call(ctx, "pure_callback", callback, values, in_avals)

    def batch(self, size: int, args: Sequence[Array], dims: BatchDims, **params: Any) -> Batched:
        method = params["vmap_method"]
        check_chosen("pure_callback", repr(params["callback"]), method)
        if is_one_by_one(method):
            return call_for_each(method, lambda *xs: self.bind(*xs, **params), args, dims, size)
        whole = [whole_batch(method, x, d, size) for x, d in zip(args, dims, strict=True)]
        params["result_avals"] = tuple(
            x.with_shape((size, *x.shape)) for x in params["result_avals"]
        )
        outs = self.bind(*whole, **params)
        return outs, [0] * len(outs)


class IOCallback(_HostCallback):
    """Calls a Python function for its effect and its results, exactly once.

    Results:    of the types `result_avals`.
    Derivative: none, as nothing is known of the function.
    """

    name = "io_callback"
    has_effects = True

    def impl(
        self, *args: Any, callback: Any, result_avals: Any, ordered: bool, **_: Any
    ) -> list[Any]:
        if ordered:
            effect_tokens.wait_for(ordered_io_effect)
        return callbacks.call_at_once("io_callback", callback, _without_keys(args), result_avals)

    def effects(self, *avals: Any, ordered: bool, **_: Any) -> frozenset[Any]:
        return _ORDERED_IO if ordered else _IO

    def lower(
        self, ctx: LoweringContext, *values: Value, callback: Any, ordered: bool, **_: Any
    ) -> list[Any]:
        in_avals = list(map(physical_aval, ctx.avals_in))
        effect = ordered_io_effect if ordered else io_effect
        return lower_call(ctx, "io_callback", callback, values, in_avals, effect)

    def batch(self, size: int, args: Values, dims: BatchDims, **params: Any) -> Batched:
        if params["ordered"]:
            problem = f"vmap cannot order the calls of {params['callback']!r} for a batch."
            fix = "ordered=False, or a loop (lax.scan, lax.map) in place of vmap"
            error(ValueError, "io_callback", problem, got="ordered=True", fix=fix)
        return call_in_loop(lambda *xs: self.bind(*xs, **params), args, dims)


_IO = frozenset({io_effect})
_ORDERED_IO = frozenset({ordered_io_effect})

pure_callback_p = PureCallback()
io_callback_p = IOCallback()


def _result_avals(name: str, result_shape_dtypes: object) -> tuple[list[ShapedArray], Any]:
    """The types that a tree of promises promises, and its tree."""
    promises, out_tree = tree.flatten(result_shape_dtypes)
    avals = []
    for promise in promises:
        if not (hasattr(promise, "shape") and hasattr(promise, "dtype")):
            problem = "result_shape_dtypes promises something without shape and dtype."
            got = f"{promise!r} of type {type(promise).__name__}"
            expected = "a tree of minijax.ShapeDtypeStruct(shape, dtype), or of arrays"
            error(AttributeError, name, problem, got=got, expected=expected)
        dtype = promise.dtype
        if dtypes.canonicalize_dtype(dtype) != dtype:
            problem = "result_shape_dtypes promises a 64-bit result, which is disabled."
            expected = str(dtypes.canonicalize_dtype(dtype))
            fix = "minijax.config.update('enable_x64', True), or promise 32 bits"
            error(ValueError, name, problem, got=f"dtype {dtype}", expected=expected, fix=fix)
        avals.append(ShapedArray(promise.shape, dtype))
    return avals, out_tree


def _call(
    primitive: Primitive,
    callback: Callable[..., Any],
    result_shape_dtypes: object,
    sharding: object,
    args: Values,
    kwargs: Params,
    **params: Any,
) -> Any:
    """What the two public functions share: from trees to leaves and back."""
    name = primitive.name
    eager.check_callable(name, callback)
    if sharding is not None and not isinstance(sharding, SingleDeviceSharding):
        got = f"{sharding!r} of type {type(sharding).__name__}"
        error(NotImplementedError, name, "sharding must be a single device's, or None.", got=got)
    leaves, in_tree = tree.flatten((args, kwargs))
    flattening.avals_of(leaves, lambda: tree_errors.argument_paths(in_tree, None), name)
    avals, out_tree = _result_avals(name, result_shape_dtypes)
    outs = primitive.bind_all(
        *leaves,
        callback=FlatCallback(callback, in_tree, {}),
        result_avals=tuple(avals),
        sharding=sharding,
        **params,
    )
    return tree.unflatten(out_tree, outs)


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: object,
    *args: Any,
    sharding: object = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Calls a Python function without side effects, also from compiled programs.

    The compiler may drop the call, or repeat it.

    Shapes:     callback(*args, **kwargs) -> a tree like result_shape_dtypes.
    Derivative: none; wrap the call in custom_jvp or custom_vjp.
    Lowers to:  stablehlo.custom_call.

    Args:
        callback: a function of trees of arrays; it may use NumPy.
        result_shape_dtypes: a tree of things with shape and dtype: what the function returns.
        args: its arguments.
        sharding: where it is called; None or a single device.
        vmap_method: what vmap does: `"sequential"` calls the function once per example, in a
            loop, `"sequential_unrolled"` without one; `"expand_dims"` and `"broadcast_all"` call
            it once with a leading batch axis on all arguments, which has length 1 with
            `"expand_dims"` where an argument is not mapped; None refuses.
        kwargs: its keyword arguments.

    Raises:
        TypeError: `callback` cannot be called, or an argument is neither an array nor a number.
        ValueError: `vmap_method` is unknown, or a 64-bit result is promised while disabled.

    Example:
        >>> host = lambda x: np.sort(x)
        >>> sort = lambda x: jax.pure_callback(host, jax.typeof(x), x, vmap_method="sequential")
        >>> jax.jit(sort)(jnp.array([3, 1, 2]))
        Array([1, 2, 3], dtype=int32)
        >>> jax.vmap(sort)(jnp.array([[3, 1], [9, 8]]))
        Array([[1, 3],
               [8, 9]], dtype=int32)
    """
    check("pure_callback", vmap_method)
    return _call(
        pure_callback_p,
        callback,
        result_shape_dtypes,
        sharding,
        args,
        kwargs,
        vmap_method=vmap_method,
    )


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: object,
    *args: Any,
    sharding: object = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Calls a Python function that has side effects, also from compiled programs.

    The call happens exactly once, even if nobody uses its results.

    Shapes:     callback(*args, **kwargs) -> a tree like result_shape_dtypes.
    Derivative: none; wrap the call in custom_jvp or custom_vjp.
    Lowers to:  stablehlo.custom_call.

    Args:
        callback: a function of trees of arrays.
        result_shape_dtypes: a tree of things with shape and dtype: what the function returns.
        args: its arguments.
        sharding: where it is called; None or a single device.
        ordered: whether calls happen in the order of the program; vmap refuses such ones.
        kwargs: its keyword arguments.

    Raises:
        TypeError: `callback` cannot be called, or an argument is neither an array nor a number.
        ValueError: a 64-bit result is promised while disabled.

    Example:
        >>> log = []
        >>> def record(x):
        ...     log.append(x.tolist())
        ...     return np.int32(len(log))
        >>> count = jax.ShapeDtypeStruct((), jnp.int32)
        >>> step = jax.jit(lambda x: jax.experimental.io_callback(record, count, x))
        >>> step(jnp.array([1, 2])), log
        (Array(1, dtype=int32), [[1, 2]])
    """
    return _call(
        io_callback_p, callback, result_shape_dtypes, sharding, args, kwargs, ordered=bool(ordered)
    )


T = TypeVar("T")


class OptimizationBarrier(Primitive):
    """Returns its arguments; the compiler moves no operation across.

    Shapes: x_i: T_i[s_i] -> T_i[s_i].  Linear.
    """

    name = "optimization_barrier"
    multiple_results = True
    shard = rules.each_for_itself

    def abstract_eval(self, *avals: ShapedArray) -> list[ShapedArray]:
        return list(avals)

    def lower(self, ctx: LoweringContext, *values: Value) -> list[Any]:
        return ctx.ops("stablehlo.optimization_barrier", values)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Dual:
        outs = self.bind(*primals)
        moving = [i for i, t in enumerate(tangents) if type(t) is not Zero]
        out_dots: list[Any] = [Zero.like(x) for x in outs]
        passed = self.bind(*[tangents[i] for i in moving])
        for i, tangent in zip(moving, passed, strict=True):
            out_dots[i] = tangent
        return outs, out_dots

    def transpose(self, ct: Array, *args: Any) -> Cotangents:
        return tuple(self.bind(*map(instantiate, ct)))

    def batch(self, size: int, args: Values, dims: BatchDims) -> Batched:
        return self.bind(*args), dims


checking.fault_flow.set(checking.COPIES, OptimizationBarrier)
vma.vary.rule(OptimizationBarrier)(vma.from_types)


optimization_barrier_p = OptimizationBarrier()


def optimization_barrier(operand: T, /) -> T:
    """Returns `operand`, and keeps the compiler from moving operations across.

    What uses the result is computed after all of `operand` is; nothing is merged, reordered or
    computed anew across the barrier.

    Shapes:     operand: a tree of T_i[s_i] -> T_i[s_i].
    Derivative: tangents and cotangents pass a barrier of their own.
    Lowers to:  stablehlo.optimization_barrier.

    Example:
        >>> jax.make_jaxpr(lambda x: lax.optimization_barrier(x * 2) / 2)(1.0)
        { lambda ; a:f32[]. let
            b:f32[] = mul a 2.0:f32[]
            c:f32[] = optimization_barrier b
            d:f32[] = div c 2.0:f32[]
          in (d,) }
    """
    leaves, structure = tree.flatten(operand)
    if not leaves:
        return operand
    return tree.unflatten(structure, optimization_barrier_p.bind(*map(as_operand, leaves)))


class CreateToken(Primitive):
    """A new token.  It has no derivative, and is the same for all examples of a batch."""

    name = "create_token"
    shard = rules.from_types

    def abstract_eval(self) -> AbstractToken:
        return abstract_token

    def lower(self, ctx: LoweringContext) -> Any:
        return ctx.op("stablehlo.create_token", [])


dtypes.knows_extended.set(True, CreateToken)


class AfterAll(Primitive):
    """A token that comes after all its operands.  Tokens have neither derivative nor batch."""

    name = "after_all"
    shard = rules.from_types

    def abstract_eval(self, *tokens: Any) -> AbstractToken:
        for token in tokens:
            if not isinstance(token, AbstractToken):
                error(TypeError, "lax.after_all", "operands must be tokens.", got=str(token))
        return abstract_token

    def lower(self, ctx: LoweringContext, *tokens: Value) -> Any:
        return ctx.op("stablehlo.after_all", tokens)


dtypes.knows_extended.set(True, AfterAll)


create_token_p = CreateToken()
after_all_p = AfterAll()


def create_token(_: object = None) -> Any:
    """A new token.

    Example:
        >>> jax.typeof(lax.create_token())
        Token()
    """
    return create_token_p.bind()


def after_all(*operands: Any) -> Any:
    """A token that comes after all of `operands`.

    Raises:
        TypeError: an operand is not a token.

    Example:
        >>> jax.make_jaxpr(lambda: lax.after_all(lax.create_token(), lax.create_token()))()
        { lambda ; . let
            a:Tok = create_token
            b:Tok = create_token
            c:Tok = after_all a b
          in (c,) }
    """
    return after_all_p.bind(*operands)


class SinkEffect(effects.Effect):
    """An equation keeps its operands from being dropped."""

    __slots__ = ()


sink_effect = SinkEffect()
effects.lowerable_effects.add_type(SinkEffect)
effects.control_flow_allowed_effects.add_type(SinkEffect)
effects.unguarded_effects.add_type(SinkEffect)
effects.repeatable_effects.add_type(SinkEffect)


class DceSink(Primitive):
    """Takes values and returns none, so that they are not dropped from a jaxpr.

    Derivative: primal values are taken; without results there is nothing to transpose.
    """

    name = "dce_sink"
    multiple_results = True
    has_effects = True
    shard = rules.from_types
    abstract_eval = no_results
    jvp = jvp_without_results

    def effects(self, *avals: ShapedArray, prevent_mlir_dce: bool) -> frozenset[Any]:
        return frozenset({sink_effect})

    def impl(self, *args: Any, prevent_mlir_dce: bool) -> list[Any]:
        return []

    def lower(self, ctx: LoweringContext, *values: Value, prevent_mlir_dce: bool) -> list[Any]:
        if prevent_mlir_dce:
            attributes = {
                "call_target_name": stablehlo.string("dce_sink"),
                "has_side_effect": stablehlo.boolean(True),
                "api_version": stablehlo.integer(4, 32),
                "backend_config": stablehlo.dictionary({}),
            }

            def sink(ctx: LoweringContext, *values: Value) -> list[Any]:
                return list(ctx.ops("stablehlo.custom_call", values, attributes, types=[]))

            regions.on_each_device(ctx, values, [], sink)
        return []

    def batch(self, size: int, args: Values, dims: BatchDims, *, prevent_mlir_dce: bool) -> Batched:
        moved = in_front(args, dims)
        self.bind(*moved, prevent_mlir_dce=prevent_mlir_dce)
        return [], []


dce_sink_p = DceSink()


def dce_sink(val: object, *, prevent_mlir_dce: bool = False) -> None:
    """Keeps values in a program that does not use them, for those who look at it.

    Jaxprs keep what leads to `val`.  The compiler drops it, unless it may not either.

    Derivative: none; values pass by.
    Lowers to:  nothing, or a stablehlo.custom_call with a side effect.

    Args:
        val: a tree of arrays.
        prevent_mlir_dce: whether the module keeps them too.

    Raises:
        TypeError: a leaf is not an array.

    Example:
        >>> def f(x):
        ...     lax.dce_sink(lax.sin(x))
        ...     return x
        >>> [str(eqn.primitive) for eqn in minijax.make_jaxpr(f)(1.0).eqns]
        ['sin', 'dce_sink']
    """
    for leaf in tree.leaves(val):
        dce_sink_p.bind(as_operand(leaf), prevent_mlir_dce=bool(prevent_mlir_dce))
