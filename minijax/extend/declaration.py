"""Primitives whose rules are given one by one, and what tools ask about jaxprs and values.

A `Primitive` here is a thin view of `minijax.core.primitive.Primitive`: each registration sets the
method of one object, be it by a decorator, by a function of `extend.ad` or `extend.mlir`, or as the
entry of a table of rules.  Whoever writes a new operation may as well subclass that class with the
rules as methods.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Iterator, MutableMapping, Sequence
from typing import Any

import numpy as np

from minijax.core import axes, dtypes, rules
from minijax.core import primitive as core_primitive
from minijax.core.aval import ShapedArray, aval_of, has_aval
from minijax.core.effects import Effect
from minijax.core.errors import ConcretizationTypeError, error
from minijax.core.jaxpr import Atom, ClosedJaxpr, Eqn, Var
from minijax.core.native import Traceback
from minijax.core.primitive import Zero
from minijax.core.trace import Params, Tracer
from minijax.interpreters import staging
from minijax.interpreters.jvp import jvp_of_linear
from minijax.interpreters.structural import add_tangents, to_batch_dim
from minijax.lowering.module import lower_function
from minijax.lowering.stablehlo import LoweringContext
from minijax.runtime.annotations import ArrayLike


class Primitive(core_primitive.Primitive):
    """An operation by name, which gets its rules one by one.

    With `def_impl` it runs eagerly; with `def_abstract_eval` it can be staged, and with
    `extend.mlir.register_lowering` compiled.  `extend.ad` has its derivatives, `extend.batching`
    what it does to batches.  Set `multiple_results = True` for one that returns a sequence.

    Example:
        >>> double = jax.extend.core.Primitive("doubled")
        >>> _ = double.def_impl(lambda x: x + x), double.def_abstract_eval(lambda x: x)
        >>> double.bind(21)
        42
        >>> jax.make_jaxpr(double.bind)(21)
        { lambda ; a:i32[]. let b:i32[] = doubled a in (b,) }
    """

    multiple_results = False

    def __init__(self, name: str) -> None:
        # Users declare the same name again when they run a cell or a test twice.
        core_primitive.PRIMITIVES.pop(name, None)
        super().__init__(name)

    def get_bind_params(self, params: Params) -> tuple[list[Any], Params]:
        """The functions and the parameters that `bind` takes for the parameters of an equation."""
        return [], params

    def def_impl(self, impl: Callable[..., Any]) -> Callable[..., Any]:
        """Gives the eager implementation.  Returns `impl`, so it is a decorator as well."""
        self.impl = impl
        return impl

    def def_abstract_eval(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Gives the rule from types of arguments to types of results."""
        self.abstract_eval = rule  # type: ignore[method-assign]
        return rule

    def def_effectful_abstract_eval(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """As `def_abstract_eval`, for a rule that returns (types, effects)."""
        self.abstract_eval = lambda *a, **k: rule(*a, **k)[0]  # type: ignore[method-assign]
        self.effects = lambda *a, **k: frozenset(rule(*a, **k)[1])  # type: ignore[method-assign]
        self.has_effects = True  # type: ignore[misc]
        return rule


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr) -> Callable[..., Any]:
    """A closed jaxpr as a function of its arguments, which returns a list of results.

    Example:
        >>> jaxpr = jax.make_jaxpr(lambda x: x * x + 1)(2)
        >>> jax.extend.core.jaxpr_as_fun(jaxpr)(5)
        [Array(26, dtype=int32, weak_type=True)]
    """
    return functools.partial(staging.eval_closed_jaxpr, closed_jaxpr)


no_effects: frozenset[Effect] = frozenset()


def new_jaxpr_eqn(
    invars: Iterable[Atom],
    outvars: Iterable[Var],
    primitive: core_primitive.Primitive,
    params: dict[str, Any],
    effects: Iterable[Effect],
    source_info: Traceback | None = None,
    ctx: object = None,
) -> Eqn:
    """An equation of a jaxpr, made by hand.

    Args:
        invars: the variables and literals that it reads.
        outvars: the variables that it binds.
        primitive: the operation.
        params: the operation's parameters.
        effects: what it does besides computing.
        source_info: where it comes from, as of another equation.
        ctx: accepted for compatibility.

    Example:
        >>> core, number = jax.extend.core, jax.typeof(1.0)
        >>> x, y = core.Var(number), core.Var(number)
        >>> eqn = core.new_jaxpr_eqn([x], [y], lax.neg_p, {}, core.no_effects)
        >>> core.Jaxpr([], [x], [y], [eqn])
        { lambda ; a:f32[]. let b:f32[] = neg a in (b,) }
    """
    return Eqn(
        list(invars), list(outvars), primitive, dict(params), frozenset(effects), source_info
    )


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of one example of a batch along `axis`; None for what is not a batch.

    Raises:
        ValueError: the batch is not of this size.

    Example:
        >>> jax.extend.core.mapped_aval(8, 0, jax.typeof(jnp.zeros((8, 3))))
        ShapedArray(float32[3])
    """
    if axis is None:
        return aval
    axis = range(aval.ndim)[axis]
    if aval.shape[axis] != size:
        got = {"aval": aval, "axis": axis, "size": size}
        error(ValueError, "extend.core.mapped_aval", "the dimension is of another size.", got=got)
    return aval.without_dim(axis)


def unmapped_aval(
    size: int, axis: int | None, aval: ShapedArray, explicit_mesh_axis: Hashable = None
) -> ShapedArray:
    """The type of a batch of `size` examples along `axis`; None for what is not a batch.

    Example:
        >>> jax.extend.core.unmapped_aval(8, 0, jax.typeof(jnp.zeros(3)))
        ShapedArray(float32[8,3])
    """
    if axis is None:
        return aval
    return aval.with_dim(range(aval.ndim + 1)[axis], size, explicit_mesh_axis)


def primal_dtype_to_tangent_dtype(primal_dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of derivatives by values of a dtype: `float0` where there are none.

    Example:
        >>> dtype_of = jax.extend.core.primal_dtype_to_tangent_dtype
        >>> dtype_of(np.dtype("float32")), dtype_of(np.dtype("int32")) == jax.dtypes.float0
        (dtype('float32'), True)
    """
    return primal_dtype if dtypes.issubdtype(primal_dtype, np.inexact) else dtypes.float0


def valid_jaxtype(x: object) -> bool:
    """Whether a value has a type: it is an array or a number.

    Example:
        >>> jax.extend.core.valid_jaxtype(1.0), jax.extend.core.valid_jaxtype("one")
        (True, False)
    """
    return has_aval(x)


def concrete_or_error(
    force: Callable[[Any], Any] | None, val: ArrayLike | Tracer, context: str = ""
) -> Any:
    """A value that is known, made what `force` makes of it; None leaves it as it is.

    Raises:
        ConcretizationTypeError: it is traced.

    Example:
        >>> jax.extend.core.concrete_or_error(int, jnp.int32(3))
        3
        >>> def zeros(n):
        ...     return jnp.zeros(jax.extend.core.concrete_or_error(int, n, "It is a size."))
        >>> jax.jit(zeros, static_argnums=0)(2)
        Array([0., 0.], dtype=float32)
    """
    known: Any = val
    if isinstance(val, Tracer):
        known = val.concrete()
        if known is None:
            error(
                ConcretizationTypeError,
                "extend.core.concrete_or_error",
                "a traced value is not known." + (f" {context}" if context else ""),
                got=f"{val.aval}, {val.origin()}",
                fix="mark the argument as static (jit's static_argnums)",
            )
    return known if force is None else force(known)


class DropVar(Var):
    """A variable that nothing reads, which jaxprs print as `_`.

    Jaxprs do not tell such variables from others; the class serves `isinstance` in programs that
    ask for it.

    Example:
        >>> jaxpr = jax.make_jaxpr(lambda x: x + 1)(1)
        >>> any(isinstance(v, jax.extend.core.DropVar) for v in jaxpr.eqns[0].outvars)
        False
    """


class RuleTable(MutableMapping[core_primitive.Primitive, Callable[..., Any]]):
    """The rules of one kind as a table: setting an entry sets the primitive's own rule.

    A jvp rule is `rule(primals, tangents, **params)` and returns the results with their tangents; a
    transpose rule is `rule(ct, *args, **params)` and returns a cotangent for each argument, None
    for one that is known; rules for batches stand in `extend.batching`.

    Source:     mirrors jax.interpreters.ad.primitive_jvps and its like (0.10).

    Raises:
        KeyError: a primitive is looked up that has no rule of the kind.

    Example:
        >>> square = jax.extend.core.Primitive("squared")
        >>> _ = square.def_impl(lambda x: x * x)
        >>> jax.extend.ad.primitive_jvps[square] = lambda xs, ts: (xs[0] ** 2, 2 * xs[0] * ts[0])
        >>> jax.jvp(square.bind, (3.0,), (1.0,))
        (9.0, 6.0)
    """

    def __init__(self, rule: str, adapt: Callable[[Any], Any] = lambda rule: rule) -> None:
        self._rule = rule
        self._adapt = adapt

    def __setitem__(self, primitive: core_primitive.Primitive, rule: Callable[..., Any]) -> None:
        setattr(primitive, self._rule, self._adapt(rule))

    def __getitem__(self, primitive: core_primitive.Primitive) -> Callable[..., Any]:
        return getattr(self._checked(primitive), self._rule)

    def _checked(self, primitive: core_primitive.Primitive) -> core_primitive.Primitive:
        if primitive not in self:
            error(KeyError, primitive.name, f"the primitive has no rule {self._rule!r}.")
        return primitive

    def __delitem__(self, primitive: core_primitive.Primitive) -> None:
        delattr(primitive, self._rule)

    def __contains__(self, primitive: Any) -> bool:
        inherited = getattr(type(primitive), self._rule, None)
        return self._rule in vars(primitive) or inherited is not getattr(
            core_primitive.Primitive, self._rule
        )

    def __iter__(self) -> Iterator[core_primitive.Primitive]:
        return (p for p in core_primitive.PRIMITIVES.values() if p in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


primitive_jvps = RuleTable("jvp")
primitive_transposes = RuleTable("transpose")


def defjvp(primitive: core_primitive.Primitive, *rules: Callable[..., Any] | None) -> None:
    """Gives the derivative with respect to each argument: `rule(tangent, *primals, **params)`.

    Args:
        primitive: an operation with one result.
        rules: one for each argument; None where the result does not follow the argument.

    Source:     mirrors jax.interpreters.ad.defjvp (0.10).

    Example:
        >>> square = jax.extend.core.Primitive("squared")
        >>> _ = square.def_impl(lambda x: x * x)
        >>> jax.extend.ad.defjvp(square, lambda t, x: 2 * x * t)
        >>> jax.jvp(square.bind, (3.0,), (1.0,))
        (9.0, 6.0)
    """

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        total: Any = Zero.like(out)
        for tangent, rule in zip(tangents, rules, strict=True):
            if type(tangent) is not Zero and rule is not None:
                total = add_tangents(total, rule(tangent, *primals, **params))
        return out, total

    primitive_jvps[primitive] = jvp


def deflinear2(primitive: core_primitive.Primitive, transpose: Callable[..., Any]) -> None:
    """Says that a primitive is linear in all its arguments, with this transpose rule.

    Args:
        primitive: an operation with one result.
        transpose: `transpose(ct, *args, **params)`, a cotangent for each argument; the arguments
            are `UndefinedPrimal`s, which tell their types only.

    Source:     mirrors jax.interpreters.ad.deflinear2 (0.10).

    Example:
        >>> double = jax.extend.core.Primitive("doubled")
        >>> _ = double.def_impl(lambda x: x + x), double.def_abstract_eval(lambda x: x)
        >>> jax.extend.ad.deflinear2(double, lambda ct, x: [ct + ct])
        >>> jax.linear_transpose(double.bind, 1.0)(3.0)
        (6.0,)
    """
    primitive_jvps[primitive] = functools.partial(jvp_of_linear, primitive)
    primitive_transposes[primitive] = transpose


def zeros_like(primal: ArrayLike) -> Zero:
    """The zero tangent of a value.

    Source:     own.

    Example:
        >>> jax.extend.ad.zeros_like(jnp.arange(3.0))
        Zero(f32[3])
    """
    return Zero(aval_of(primal).tangent_aval())


def _plain(rule: Callable[..., Any]) -> Callable[..., Any]:
    """JAX's form, without the size of the batch, as our own."""

    def batch(size: int, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        return rule(tuple(args), tuple(dims), **params)

    return batch


class _Declared(RuleTable):
    """A table of rules of the package: setting an entry declares the rule of one primitive.

    Source:     minijax's own.

    Example:
        >>> lax.sin_p in jax.extend.batching.spmd_primitive_batchers
        False
    """

    def __init__(self, table: rules.Rules) -> None:
        super().__init__(table.name)
        self._table = table

    def __setitem__(self, primitive: core_primitive.Primitive, rule: Callable[..., Any]) -> None:
        self._table.set(rule, primitive)

    def __getitem__(self, primitive: core_primitive.Primitive) -> Callable[..., Any]:
        return self._table.of(self._checked(primitive))

    def __delitem__(self, primitive: core_primitive.Primitive) -> None:
        self._table.remove(primitive)

    def __contains__(self, primitive: Any) -> bool:
        return self._table.of(primitive) is not None


primitive_batchers = RuleTable("batch", _plain)
"""Rules for batches: `rule(args, dims, **params)` gives the result and its batch dimension."""

fancy_primitive_batchers = RuleTable("batch")
"""As `primitive_batchers`, told the size of the batch: `rule(size, args, dims, **params)`."""

spmd_primitive_batchers = _Declared(axes.batch_spmd)
"""Rules for batches that mesh axes split: `rule(size, mesh axes, args, dims, **params)`."""


def bdim_at_front(x: ArrayLike, dim: int | None, size: int) -> Any:
    """A value with its batch dimension in front; repeated where it is not mapped.

    Args:
        x: an array.
        dim: which of its dimensions runs over the batch; None for none.
        size: the size of the batch.

    Source:     mirrors jax.interpreters.batching.bdim_at_front (0.10).

    Example:
        >>> jax.extend.batching.bdim_at_front(jnp.zeros((2, 3)), 1, 3).shape
        (3, 2)
        >>> jax.extend.batching.bdim_at_front(jnp.arange(2), None, 3).tolist()
        [[0, 1], [0, 1], [0, 1]]
    """
    return to_batch_dim(x, dim, 0, size)


def defvectorized(primitive: core_primitive.Primitive) -> None:
    """Says that a primitive with one argument treats every element alike.

    Source:     mirrors jax.interpreters.batching.defvectorized (0.10).

    Example:
        >>> double = jax.extend.core.Primitive("doubled")
        >>> _ = double.def_impl(lambda x: x + x), double.def_abstract_eval(lambda x: x)
        >>> jax.extend.batching.defvectorized(double)
        >>> jax.vmap(double.bind)(jnp.arange(3))
        Array([0, 2, 4], dtype=int32)
    """
    primitive_batchers[primitive] = lambda args, dims, **params: (
        primitive.bind(args[0], **params),
        dims[0],
    )


def register_lowering(
    primitive: core_primitive.Primitive, rule: Callable[..., Any], platform: str | None = None
) -> Callable[..., Any]:
    """Gives the rule from MLIR values of arguments to those of results.

    Source: mirrors jax.interpreters.mlir.register_lowering (0.10).

    Args:
        primitive: the operation.
        rule: `(ctx, *values, **params)`, returns a sequence of values.
        platform: where the rule holds; everywhere by default.

    Returns:
        The rule.

    Example:
        >>> flip = jax.extend.core.Primitive("flipped_sign")
        >>> _ = flip.def_abstract_eval(lambda x: x)
        >>> rule = lambda ctx, x: [ctx.op("stablehlo.negate", [x])]
        >>> _ = jax.extend.mlir.register_lowering(flip, rule)
        >>> jax.jit(flip.bind)(3)
        Array(-3, dtype=int32, weak_type=True)
    """
    general = vars(primitive).get("lower")

    def lower(ctx: LoweringContext, *values: Any, **params: Any) -> Any:
        chosen = rule if platform in (None, ctx.platform) else general
        if chosen is None:
            return core_primitive.Primitive.lower(primitive, ctx, *values, **params)
        outs = chosen(ctx, *values, **params)
        if primitive.multiple_results:
            return list(outs)
        # MLIR's lists of results are sequences by their methods only.
        return outs[0] if hasattr(outs, "__getitem__") else outs

    primitive.lower = lower  # type: ignore[method-assign]
    return rule


def lower_fun(function: Callable[..., Any], multiple_results: bool = True) -> Callable[..., Any]:
    """A lowering rule that composes the operations that `function` calls.

    Source: mirrors jax.interpreters.mlir.lower_fun (0.10).

    Args:
        function: takes the arguments and parameters of a primitive.
        multiple_results: whether it returns a sequence of results, and not one.

    Returns:
        A rule, `(ctx, *values, **params)`.

    Example:
        >>> triple = jax.extend.core.Primitive("tripled")
        >>> _ = triple.def_abstract_eval(lambda x: x)
        >>> rule = jax.extend.mlir.lower_fun(lambda x: 3 * x, multiple_results=False)
        >>> _ = jax.extend.mlir.register_lowering(triple, rule)
        >>> jax.jit(triple.bind)(2)
        Array(6, dtype=int32, weak_type=True)
    """

    def rule(ctx: LoweringContext, *values: Any, **params: Any) -> list[Any]:
        def flat(*args: Any) -> Any:
            out = function(*args, **params)
            return out if multiple_results else [out]

        return lower_function(ctx, flat, *values)

    return rule
