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
from minijax.core.aval import aval_of
from minijax.core.errors import message
from minijax.lax import folding
from minijax.lax.control_flow.scanning import scan
from minijax.numpy import accumulations, arithmetic, elementary, logic, reductions
from minijax.numpy.creation import asarray
from minijax.numpy.functional import vectorize
from minijax.numpy.joining import append, concatenate, stack
from minijax.numpy.promotion import check_array, check_out
from minijax.numpy.ranges import arange
from minijax.numpy.selection import take, where
from minijax.numpy.shaping import expand_dims, moveaxis, ravel
from minijax.runtime.annotations import ArrayLike, Axis, DTypeLike
from minijax.runtime.array import Array


class ufunc:  # noqa: N801  NumPy's name
    """An elementwise function, with NumPy's ways to apply it along axes and at indices.

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
        """The elements along `axis` combined into one.

        Shapes:     a: T[s] -> T[s without axis].

        Raises:
            ValueError: the function does not combine two arguments into one, or there is nothing
                to combine.
            NotImplementedError: `out` is given; or `where` or several axes, for a function whose
                elements are combined one after the other.

        Example:
            >>> jnp.maximum.reduce(jnp.array([[1, 5], [3, 2]]))
            Array([3, 5], dtype=int32)
        """
        self._check_is_binary("reduce")
        check_out(self.__name__, out)
        if self._reduce is not None:
            options = {"dtype": dtype, "initial": initial, "where": where}
            given = {key: value for key, value in options.items() if value is not None}
            return self._reduce(a, axis=axis, keepdims=keepdims, **given)
        if where is not None or isinstance(axis, (tuple, list)):
            self._refuse("reduces along one axis, and all of it")
        a = asarray(check_array(self.__name__, a), dtype)
        rank = a.ndim
        rows = ravel(a) if axis is None else moveaxis(a, axis, 0)
        total = self._folded(rows, initial)
        if not keepdims:
            return total
        return expand_dims(total, tuple(range(rank)) if axis is None else axis)

    def _folded(self, rows: Any, initial: Any) -> Any:
        if initial is None and not rows.shape[0]:
            initial = self.identity
        if initial is None and not rows.shape[0]:
            raise ValueError(message(f"numpy.{self.__name__}", "there is nothing to reduce."))
        parts = [] if initial is None else [initial]
        if self._associative and rows.shape[0]:
            while rows.shape[0] > 1:
                half = rows.shape[0] // 2
                pairs = self._function(rows[0 : 2 * half : 2], rows[1 : 2 * half : 2])
                odd = rows[2 * half :].astype(pairs.dtype)
                rows = concatenate([pairs, odd], 0)
        return functools.reduce(self._function, [*parts, *rows])

    def accumulate(
        self, a: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None, out: None = None
    ) -> Array:
        """The elements along `axis` combined up to each one.

        Shapes:     a: T[s] -> T[s].

        Raises:
            ValueError: the function does not combine two arguments into one.
            NotImplementedError: `out` is given.

        Example:
            >>> jnp.maximum.accumulate(jnp.array([1, 3, 2, 5]))
            Array([1, 3, 3, 5], dtype=int32)
        """
        self._check_is_binary("accumulate")
        check_out(self.__name__, out)
        if self._accumulate is not None:
            return self._accumulate(a, axis, dtype)
        a = moveaxis(asarray(check_array(self.__name__, a), dtype), axis, 0)
        if self._associative:
            (result,) = folding.scan(lambda x, y: [self._function(x, y)], [a], 0)
            return moveaxis(result, 0, axis)
        totals: list[Any] = []
        for row in a:
            totals.append(self._function(totals[-1], row) if totals else row)
        return moveaxis(stack(totals), 0, axis)

    def at(
        self, a: ArrayLike, indices: Any, b: ArrayLike | None = None, /, *, inplace: bool = True
    ) -> Array:
        """A copy of `a` to whose elements at `indices` the function was applied.

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
        place = a.at[indices]
        if self.nin == 1:
            return place.set(self._function(place.get()))
        if self._update is not None:
            return getattr(place, self._update)(b)
        return place.set(self._function(place.get(), b))

    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Array:  # noqa: N803  NumPy's names
        """The function of each element of A with each element of B.

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
        """The elements of slices along `axis` combined into one for each slice.

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
        name = f"{self.__name__}.reduceat"
        check_out(name, out)
        a = asarray(check_array(name, a), dtype)
        starts = asarray(check_array(name, indices, "indices"))
        _check_slices(name, a, starts, axis)
        rows = moveaxis(a, axis, 0)
        size = rows.shape[0]
        starts = where(starts < 0, starts + size, starts)
        ends = append(starts[1:], asarray(size, starts.dtype))

        def joined(totals: Any, row: Any) -> tuple[Any, None]:
            number, value = row
            is_inside = (number > starts) & (number < ends)
            mask = expand_dims(is_inside, tuple(range(1, totals.ndim)))
            together = self._function(totals, value).astype(totals.dtype)
            return where(mask, together, totals), None

        totals, _ = scan(joined, take(rows, starts, 0), (arange(size, dtype=starts.dtype), rows))
        return moveaxis(totals, 0, axis)

    def _check_is_binary(self, method: str) -> None:
        if self.nin != 2 or self.nout != 1:
            raise ValueError(
                message(
                    f"numpy.{self.__name__}.{method}",
                    "needs a function of two arguments with one result.",
                    got=f"{self.nin} arguments, {self.nout} results",
                )
            )

    def _refuse(self, reason: str, fix: str | None = None) -> Any:
        raise NotImplementedError(message(f"numpy.{self.__name__}", f"{reason}.", fix=fix))

    def __repr__(self) -> str:
        return f"<minijax.numpy.ufunc {self.__name__!r}>"


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
        raise ValueError(message(f"numpy.{name}", f"{problem}.", got=got))


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """A ufunc that applies a function of scalars to each element.

    Source:     mirrors jax.numpy.frompyfunc.

    Example:
        >>> distance = jnp.frompyfunc(lambda x, y: abs(x - y), 2, 1)
        >>> distance.outer(jnp.array([1, 2]), jnp.array([5, 7]))
        Array([[4, 6],
               [3, 5]], dtype=int32)
    """
    return ufunc(vectorize(func), nin, nout, identity=identity)


def _associative(function: Callable[..., Any], identity: Any, **options: Any) -> Any:
    return ufunc(function, 2, 1, identity=identity, associative=True, **options)


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
    arithmetic.add,
    0,
    reduce=reductions.sum,
    accumulate=accumulations.cumsum,
    update="add",
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
maximum: _Binary = _associative(arithmetic.maximum, None, reduce=reductions.max, update="max")
minimum: _Binary = _associative(arithmetic.minimum, None, reduce=reductions.min, update="min")
logaddexp: _Binary = _associative(elementary.logaddexp, -math.inf)
logaddexp2: _Binary = _associative(elementary.logaddexp2, -math.inf)
logical_and: _Binary = _associative(logic.logical_and, True, reduce=reductions.all)
logical_or: _Binary = _associative(logic.logical_or, False, reduce=reductions.any)
logical_xor: _Binary = _associative(logic.logical_xor, False)
bitwise_and: _Binary = _associative(logic.bitwise_and, -1)
bitwise_or: _Binary = _associative(logic.bitwise_or, 0)
bitwise_xor: _Binary = _associative(logic.bitwise_xor, 0)
