"""Primitives whose rules are given one by one, and what tools ask about jaxprs and values.

A `Primitive` here is a thin view of `minijax.core.primitive.Primitive`: each registration sets the
method of one object.  Whoever writes a new operation may as well subclass that class with the rules
as methods.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable
from types import TracebackType
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core import primitive as core_primitive
from minijax.core.aval import ShapedArray, has_aval
from minijax.core.effects import Effect
from minijax.core.errors import ConcretizationTypeError, error
from minijax.core.jaxpr import Atom, ClosedJaxpr, Eqn, Var
from minijax.core.trace import Tracer
from minijax.interpreters import staging
from minijax.runtime.annotations import ArrayLike


class Primitive(core_primitive.Primitive):
    """An operation by name, which gets its rules one by one.

    With `def_impl` it runs eagerly; with `def_abstract_eval` it can be staged, and with
    `extend.mlir.register_lowering` compiled.  `extend.ad` has its derivatives, `extend.batching`
    what it does to batches.  Set `multiple_results = True` for one that returns a sequence.

    Source:     mirrors jax.extend.core.Primitive (0.10).

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

    Source:     mirrors jax.extend.core.jaxpr_as_fun (0.10).

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
    source_info: TracebackType | None = None,
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

    Source: mirrors jax.extend.core.new_jaxpr_eqn (0.10).

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
    """The type of one example of a batch along `axis`; None for what is no batch.

    Source: mirrors jax.extend.core.mapped_aval (0.10).

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
        error(
            ValueError,
            "extend.core.mapped_aval",
            "the dimension is of another size.",
            got={"aval": aval, "axis": axis, "size": size},
        )
    return aval.without_dim(axis)


def unmapped_aval(
    size: int, axis: int | None, aval: ShapedArray, explicit_mesh_axis: Hashable = None
) -> ShapedArray:
    """The type of a batch of `size` examples along `axis`; None for what is no batch.

    Source: mirrors jax.extend.core.unmapped_aval (0.10).

    Example:
        >>> jax.extend.core.unmapped_aval(8, 0, jax.typeof(jnp.zeros(3)))
        ShapedArray(float32[8,3])
    """
    if axis is None:
        return aval
    return aval.with_dim(range(aval.ndim + 1)[axis], size, explicit_mesh_axis)


def primal_dtype_to_tangent_dtype(primal_dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of derivatives by values of a dtype: `float0` where there are none.

    Source: mirrors jax.extend.core.primal_dtype_to_tangent_dtype (0.10).

    Example:
        >>> dtype_of = jax.extend.core.primal_dtype_to_tangent_dtype
        >>> dtype_of(np.dtype("float32")), dtype_of(np.dtype("int32")) == jax.dtypes.float0
        (dtype('float32'), True)
    """
    return primal_dtype if dtypes.issubdtype(primal_dtype, np.inexact) else dtypes.float0


def valid_jaxtype(x: object) -> bool:
    """Whether a value has a type: it is an array or a number.

    Source: mirrors jax.extend.core.valid_jaxtype (0.10).

    Example:
        >>> jax.extend.core.valid_jaxtype(1.0), jax.extend.core.valid_jaxtype("one")
        (True, False)
    """
    return has_aval(x)


def concrete_or_error(
    force: Callable[[Any], Any] | None, val: ArrayLike | Tracer, context: str = ""
) -> Any:
    """A value that is known, made what `force` makes of it; None leaves it as it is.

    Source: mirrors jax.extend.core.concrete_or_error (0.10).

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

    Source:     mirrors jax.extend.core.DropVar (0.10).

    Example:
        >>> jaxpr = jax.make_jaxpr(lambda x: x + 1)(1)
        >>> any(isinstance(v, jax.extend.core.DropVar) for v in jaxpr.eqns[0].outvars)
        False
    """
