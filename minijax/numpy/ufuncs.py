"""Universal functions: elementwise functions that can also reduce, accumulate and update arrays.

The functions that JAX makes ufuncs are made so here; their elementwise work is done elsewhere.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import Shape, aval_of
from minijax.core.errors import error
from minijax.lax.arguments import canonicalize_axis
from minijax.lowering.eager import check_callable
from minijax.numpy import accumulations, arithmetic, elementary, functional, logic, reductions
from minijax.numpy.creation import asarray
from minijax.numpy.functional import vectorize
from minijax.numpy.promotion import check_array, check_out
from minijax.numpy.shaping import (
    broadcast_to,
    canonical_axes,
    expand_dims,
    moveaxis,
    ravel,
    reshape,
)
from minijax.runtime.annotations import ArrayLike, Axis, DTypeLike
from minijax.runtime.array import Array


class ufunc:  # noqa: N801  NumPy's name
    """Represents a universal function: it works element by element, and along axes.

    Source:     mirrors jax.numpy.ufunc.

    Args:
        func: the function of scalars or arrays.
        nin: how many arguments it takes.
        nout: how many results it gives.
        name: its name; that of `func` by default.
        identity: what it leaves other arguments as they are with; None if there is nothing such.
        associative: whether reductions may combine elements in any grouping.
        reduce: what reduces arrays in place of repeated application.
        accumulate: what accumulates arrays in place of repeated application.
        update: the method of `x.at[indices]` that applies it.

    Example:
        >>> jnp.add.reduce(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([4, 6], dtype=int32)
        >>> jnp.multiply.outer(jnp.array([1, 2]), jnp.array([10, 20]))
        Array([[10, 20],
               [20, 40]], dtype=int32)
    """

    def __init__(
        self,
        func: Callable[..., Any],
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        identity: Any = None,
        associative: bool = False,
        reduce: Callable[..., Any] | None = None,
        accumulate: Callable[..., Any] | None = None,
        update: str | None = None,
    ) -> None:
        functools.update_wrapper(self, func)
        self.__name__ = name or func.__name__
        self.nin, self.nout, self.nargs, self.identity = nin, nout, nin + nout, identity
        self._function = func
        self._associative = associative
        self._reduce, self._accumulate, self._update = reduce, accumulate, update
        self.__signature__ = _with_options(func)

    def __call__(self, *args: Any, out: None = None, where: None = None) -> Any:
        if out is not None or where is not None:
            self._refuse(
                "takes neither `out` nor `where`: arrays do not change",
                fix=f"numpy.where(condition, numpy.{self.__name__}(...), otherwise)",
            )
        return self._function(*args)

    def reduce(
        self,
        a: ArrayLike,
        axis: Axis = 0,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """Reduces the array along the given axes by applying the function repeatedly.

        Shapes:     a: T[s] -> T[s without axis].

        Raises:
            ValueError: the function does not combine two arguments into one, or there is nothing
                to combine.
            NotImplementedError: `out` is given; or several axes, for a function whose elements
                must be combined in their order.

        Example:
            >>> jnp.maximum.reduce(jnp.array([[1, 5], [3, 2]]))
            Array([3, 5], dtype=int32)
        """
        self._check_is_binary("reduce")
        name = f"numpy.{self.__name__}.reduce"
        check_out(name, out)
        if self._reduce is not None:
            options = {"dtype": dtype, "initial": initial, "where": where}
            given = {key: value for key, value in options.items() if value is not None}
            return self._reduce(a, axis=axis, keepdims=keepdims, **given)
        a = asarray(check_array(name, a), dtype)
        every = tuple(range(a.ndim))
        axes = every if axis is None else canonical_axes(name, axis, a.ndim)
        if len(axes) != 1 and axis is not None and not self._associative:
            self._refuse("combines elements in their order, along one axis")
        total = self._folded(name, a, axes, initial, where)
        return expand_dims(total, axes) if keepdims else total

    def _folded(self, name: str, a: Any, axes: Shape, initial: Any, where: Any) -> Array:
        rows = _rows(a, axes)
        start = None if initial is None else asarray(initial).astype(a.dtype)
        nothing = not rows.shape[0] or where is not None
        if nothing and start is None and self.identity is None:
            error(
                ValueError,
                name,
                "there is nothing to reduce, or with `where` there may be nothing.",
                got=str(aval_of(a)),
                fix="initial=, the result for nothing",
            )
        mask = None if where is None else _rows(broadcast_to(where, a.shape), axes)
        return functional.folded(
            self._function, rows, start, mask, identity=self.identity, associative=self._associative
        )

    def accumulate(
        self, a: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None, out: None = None
    ) -> Array:
        """Accumulates the results of applying the function along `axis`.

        Shapes:     a: T[s] -> T[s].

        Raises:
            ValueError: the function does not combine two arguments into one.
            NotImplementedError: `out` is given.

        Example:
            >>> jnp.maximum.accumulate(jnp.array([1, 3, 2, 5]))
            Array([1, 3, 3, 5], dtype=int32)
        """
        self._check_is_binary("accumulate")
        name = f"numpy.{self.__name__}.accumulate"
        check_out(name, out)
        if axis is None:
            error(ValueError, name, "goes along one axis.", got="axis None", fix="a.ravel()")
        if self._accumulate is not None:
            return self._accumulate(a, axis, dtype)
        a = asarray(check_array(name, a), dtype)
        axis = canonicalize_axis(axis, a.ndim, name)
        rows = moveaxis(a, axis, 0)
        totals = functional.accumulated(self._function, rows, associative=self._associative)
        return moveaxis(totals, 0, axis)

    def at(
        self, a: ArrayLike, indices: Any, b: ArrayLike | None = None, /, *, inplace: bool = True
    ) -> Array:
        """Returns a copy of `a` with the function applied to the elements at `indices`.

        An element whose index comes several times is changed as often.

        Args:
            a: the array.
            indices: what stands in the brackets of an index.
            b: the second argument, for a function of two.
            inplace: must be False: arrays do not change.

        Raises:
            NotImplementedError: `inplace` is True.

        Example:
            >>> jnp.add.at(jnp.zeros(3), jnp.array([0, 0, 2]), 1.0, inplace=False)
            Array([2., 0., 1.], dtype=float32)
        """
        if inplace:
            self._refuse("does not change arrays: pass inplace=False, and use the result")
        a = asarray(check_array(self.__name__, a))
        if self.nin == 2 and self._update is not None and a.dtype != np.bool_:
            return getattr(a.at[indices], self._update)(b)
        others = [] if b is None else [asarray(b)]
        if len(others) + 1 != self.nin:
            error(
                TypeError,
                f"numpy.{self.__name__}.at",
                "takes as many operands as the function.",
                got=f"{len(others) + 1} operand{'s' if others else ''}",
                expected=str(self.nin),
            )
        return functional.applied_at(self._function, a, indices, others)

    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Array:  # noqa: N803  NumPy's names
        """Applies the function to all pairs of an element of A and an element of B.

        Shapes:     A: T[s], B: U[t] -> V[s + t].

        Raises:
            ValueError: the function does not take two arguments.

        Example:
            >>> jnp.subtract.outer(jnp.array([10, 20]), jnp.array([1, 2]))
            Array([[ 9,  8],
                   [19, 18]], dtype=int32)
        """
        self._check_is_binary("outer")
        x, y = (asarray(check_array(self.__name__, v)) for v in (A, B))
        return self._function(expand_dims(x, tuple(range(x.ndim, x.ndim + y.ndim))), y)

    def reduceat(
        self,
        a: ArrayLike,
        indices: ArrayLike,
        axis: int = 0,
        dtype: DTypeLike | None = None,
        out: None = None,
    ) -> Array:
        """Reduces the slices of the array along `axis` that start at `indices`.

        Slice `i` goes from `indices[i]` to `indices[i + 1]`, the last one to the end; a slice
        that would be empty has its first element.

        Shapes:     a: T[s], indices: integer[k] -> T[s with k in place of the axis].

        Raises:
            ValueError: the function does not combine two arguments into one, `indices` are no
                integers of one dimension, or `axis` is no single one of the array's.
            NotImplementedError: `out` is given.

        Example:
            >>> jnp.add.reduceat(jnp.array([1, 2, 3, 4]), jnp.array([0, 2]))
            Array([3, 7], dtype=int32)
        """
        self._check_is_binary("reduceat")
        name = f"numpy.{self.__name__}.reduceat"
        check_out(name, out)
        a = asarray(check_array(name, a), dtype)
        starts = asarray(check_array(name, indices, "indices"))
        _check_slices(name, a, starts, axis)
        totals = functional.folded_slices(self._function, moveaxis(a, axis, 0), starts)
        return moveaxis(totals, 0, axis)

    def _check_is_binary(self, method: str) -> None:
        if self.nin != 2 or self.nout != 1:
            error(
                ValueError,
                f"numpy.{self.__name__}.{method}",
                "needs a function of two arguments with one result.",
                got=f"{self.nin} arguments, {self.nout} results",
            )

    def _refuse(self, reason: str, fix: str | None = None) -> Any:
        error(NotImplementedError, f"numpy.{self.__name__}", f"{reason}.", fix=fix)

    def __repr__(self) -> str:
        return f"<minijax.numpy.ufunc {self.__name__!r}>"


def _rows(a: Any, axes: Shape) -> Any:
    """`a` with what lies along some axes in front, as one dimension."""
    if len(axes) == a.ndim:
        return ravel(a)
    moved = moveaxis(a, axes, tuple(range(len(axes))))
    count = math.prod(a.shape[d] for d in axes)
    return reshape(moved, (count, *moved.shape[len(axes) :]))


def _with_options(function: Callable[..., Any]) -> inspect.Signature | None:
    """The parameters of a function and those that every ufunc has."""
    try:
        known = list(inspect.signature(function).parameters.values())
    except ValueError:
        return None
    named = inspect.Parameter.KEYWORD_ONLY
    options = [inspect.Parameter(name, named, default=None) for name in ("out", "where")]
    last = known[-1:] if known and known[-1].kind is inspect.Parameter.VAR_KEYWORD else []
    return inspect.Signature([*known[: len(known) - len(last)], *options, *last])


def _check_slices(name: str, a: Any, indices: Any, axis: Any) -> None:
    problem = None
    if not dtypes.issubdtype(indices.dtype, np.integer):
        problem = "the indices of slices are integers"
    elif indices.ndim != 1:
        problem = "the indices of slices have one dimension"
    elif not a.ndim:
        problem = "a scalar has no slices"
    elif not isinstance(axis, int | np.integer):
        problem = "slices are taken along one axis"
    if problem is not None:
        got = {"a": aval_of(a), "indices": aval_of(indices), "axis": repr(axis)}
        error(ValueError, name, f"{problem}.", got=got)


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """Makes a ufunc of a Python function of scalars.

    Source:     mirrors jax.numpy.frompyfunc.

    Example:
        >>> distance = jnp.frompyfunc(lambda x, y: abs(x - y), 2, 1)
        >>> distance.outer(jnp.array([1, 2]), jnp.array([5, 7]))
        Array([[4, 6],
               [3, 5]], dtype=int32)
    """
    check_callable("numpy.frompyfunc", func)
    return ufunc(vectorize(func), nin, nout, identity=identity)


def _associative(function: Callable[..., Any], identity: Any, **options: Any) -> Any:
    return ufunc(function, 2, 1, identity=identity, associative=True, **options)


def _of_dtype(reduce: Callable[..., Any], combine: Callable[..., Any] | None = None) -> Any:
    """A reduction that takes a dtype, and an initial value, which `combine` adds."""

    def reduced(a: Any, *, dtype: Any = None, initial: Any = None, **options: Any) -> Any:
        if dtype is not None:
            a = asarray(check_array(reduce.__name__, a), dtype)
        if combine is None:
            return reduce(a, initial=initial, **options)
        found = reduce(a, **options)
        return found if initial is None else combine(asarray(initial), found)

    return reduced


def _elementwise(function: Callable[..., Any], count: int, **options: Any) -> Any:
    return ufunc(function, count, 1, **options)


if TYPE_CHECKING:

    class _Unary(ufunc):
        def __call__(  # type: ignore[override]
            self, x: ArrayLike, /, *, out: None = None, where: None = None
        ) -> Array: ...

    class _Binary(ufunc):
        def __call__(  # type: ignore[override]
            self, x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None
        ) -> Array: ...


add: _Binary = _associative(
    arithmetic.add, 0, reduce=reductions.sum, accumulate=accumulations.cumsum, update="add"
)
multiply: _Binary = _associative(
    arithmetic.multiply,
    1,
    reduce=reductions.prod,
    accumulate=accumulations.cumprod,
    update="multiply",
)
subtract: _Binary = _elementwise(arithmetic.subtract, 2, update="subtract")
negative: _Unary = _elementwise(arithmetic.negative, 1)
maximum: _Binary = _associative(
    arithmetic.maximum, None, reduce=_of_dtype(reductions.max), update="max"
)
minimum: _Binary = _associative(
    arithmetic.minimum, None, reduce=_of_dtype(reductions.min), update="min"
)
logaddexp: _Binary = _associative(elementary.logaddexp, -math.inf)
logaddexp2: _Binary = _associative(elementary.logaddexp2, -math.inf)
logical_and: _Binary = _associative(
    logic.logical_and, True, reduce=_of_dtype(reductions.all, logic.logical_and)
)
logical_or: _Binary = _associative(
    logic.logical_or, False, reduce=_of_dtype(reductions.any, logic.logical_or)
)
logical_xor: _Binary = _associative(logic.logical_xor, False)
bitwise_and: _Binary = _associative(logic.bitwise_and, -1)
bitwise_or: _Binary = _associative(logic.bitwise_or, 0)
bitwise_xor: _Binary = _associative(logic.bitwise_xor, 0)
