"""Universal functions with their methods, and functions that map others over arrays.

What works on vectors or numbers is applied to whole arrays: element by element, along an axis,
over slices, and at indices.  The functions that JAX makes ufuncs are made so here; their
elementwise work is done in `elementary` and `logic`.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from minijax.core import dtypes, source, tree
from minijax.core.aval import Shape, aval_of
from minijax.core.errors import error
from minijax.lax import families, reduction
from minijax.lax.control_flow.scanning import scan
from minijax.lax.families import canonicalize_axis
from minijax.lax.shape import squeeze
from minijax.lowering.eager import check_callable
from minijax.numpy import elementary, logic, promotion, reductions, shaping
from minijax.numpy.creation import asarray
from minijax.numpy.joining import append, concatenate
from minijax.numpy.ranges import arange
from minijax.numpy.selection import take, where
from minijax.numpy.shaping import canonical_axes, expand_dims, moveaxis, ravel, reshape
from minijax.runtime.annotations import ArrayLike, Axis, DTypeLike
from minijax.runtime.array import Array
from minijax.transforms.jit.stages import ShapeDtypeStruct
from minijax.transforms.jit.tracing import eval_shape
from minijax.transforms.vmap import vmap

_CoreDims = tuple[tuple[str, ...], ...]
_LIST = r"\((?:\w+(?:,\w+)*)?\)"
_SIGNATURE = re.compile(rf"{_LIST}(?:,{_LIST})*->{_LIST}(?:,{_LIST})*")


def _parse_signature(signature: str) -> tuple[_CoreDims, _CoreDims]:
    """The names of the core dimensions of arguments and of results."""
    text = signature.replace(" ", "")
    if _SIGNATURE.fullmatch(text) is None:
        problem = "the signature is not understood."
        expected = "core dimensions of arguments and results, such as '(n,m),(m)->(n)'"
        error(ValueError, "numpy.vectorize", problem, got=repr(signature), expected=expected)
    sides = [
        tuple(
            tuple(name for name in found[1:-1].split(",") if name)
            for found in re.findall(_LIST, side)
        )
        for side in text.split("->")
    ]
    return sides[0], sides[1]


def _check_core_dims(
    dims: tuple[str, ...], shape: tuple[int, ...], sizes: dict[str, int], what: str
) -> None:
    """Checks the core dimensions of an argument or result, and remembers their sizes."""
    fits = len(shape) == len(dims)
    for name, size in zip(dims, shape, strict=False):
        fits = fits and sizes.setdefault(name, size) == size
    if not fits:
        got = {"core shape": shape, "signature": f"({','.join(dims)})", "sizes": sizes}
        error(ValueError, "numpy.vectorize", f"{what} does not fit the signature.", got=got)


def vectorize(
    pyfunc: Callable[..., Any],
    *,
    excluded: Collection[int | str] = frozenset(),
    signature: str | None = None,
) -> Callable[..., Any]:
    """Makes a function that maps `pyfunc` over arrays, which are broadcast together.

    Args:
        pyfunc: a function of numbers, or of arrays with the signature's core dimensions.
        excluded: positions and names of arguments that are passed as they are.
        signature: the core dimensions of arguments and results, such as "(n,m),(m)->(n)"; all
            scalars by default.

    Raises:
        ValueError: the signature is not understood; when called, arguments or results do not fit.

    Example:
        >>> dot = jnp.vectorize(lambda u, v: u @ v, signature="(n),(n)->()")
        >>> dot(jnp.ones((2, 3, 4)), jnp.ones(4)).shape
        (2, 3)
    """
    places = {i for i in excluded if isinstance(i, int)}
    if any(isinstance(i, int) and i < 0 for i in places):
        error(ValueError, "numpy.vectorize", "excluded positions count from 0.", got=repr(excluded))

    @source.result_of(pyfunc)
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        mapped = [i for i, x in enumerate(args) if i not in places and x is not None]
        by_name = [key for key in kwargs if key not in excluded]

        def call(*arrays: Any) -> Any:
            given = list(args)
            for i, x in zip(mapped, arrays, strict=False):
                given[i] = x
            named = dict(zip(by_name, arrays[len(mapped) :], strict=True))
            return pyfunc(*given, **{**kwargs, **named})

        arrays = [args[i] for i in mapped] + [kwargs[key] for key in by_name]
        return _map_over(call, arrays, signature)

    return vectorized


def _map_over(function: Callable[..., Any], args: Sequence[Any], signature: str | None) -> Any:
    arrays = [asarray(promotion.check_array("vectorize", x)) for x in args]
    inputs: _CoreDims = ((),) * len(arrays)
    outputs: _CoreDims | None = None
    if signature is not None:
        inputs, outputs = _parse_signature(signature)
    fits = len(inputs) == len(arrays)
    problem = "the number of arguments does not fit the signature."
    promotion.check_that(
        fits, "vectorize", problem, error=TypeError, got=f"{len(arrays)} arguments for {signature}"
    )
    sizes: dict[str, int] = {}
    loops = []
    for i, (x, dims) in enumerate(zip(arrays, inputs, strict=True)):
        split = x.ndim - len(dims)
        _check_core_dims(dims, x.shape[max(split, 0) :], sizes, f"argument {i}")
        loops.append(x.shape[:split])
    if outputs is not None:
        function = _checked(function, outputs, sizes)
    loop = promotion.broadcast_shapes("vectorize", *loops)
    for place in reversed(range(len(loop))):
        # Counted from the core, so that arguments of lower rank line up at the end.
        depth = len(loop) - place
        axes = tuple(0 if len(own) >= depth and own[-depth] != 1 else None for own in loops)
        size = loop[place]
        if any(axis is not None for axis in axes):
            function = vmap(function, in_axes=axes)
        else:
            function = _repeated(function, size)
    return function(*(_without_ones(x, own) for x, own in zip(arrays, loops, strict=True)))


def _without_ones(x: Array, loop: tuple[int, ...]) -> Any:
    """Dimensions of size 1 are not mapped over: each call takes the whole."""
    return squeeze(x, [d for d, n in enumerate(loop) if n == 1])


def _repeated(function: Callable[..., Any], size: int) -> Callable[..., Any]:
    """Results with a new leading dimension that nothing is mapped over."""

    def call(*args: Any) -> Any:
        return tree.map(lambda x: expand_dims(x, 0), function(*args))

    return call if size == 1 else vmap(function, in_axes=None, axis_size=size)


def _checked(
    function: Callable[..., Any], outputs: _CoreDims, sizes: dict[str, int]
) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        out = function(*args)
        results = out if isinstance(out, (tuple, list)) else (out,)
        if len(results) != len(outputs) or (len(outputs) > 1) != isinstance(out, (tuple, list)):
            problem = "the number of results does not fit the signature."
            got = f"{len(results)} results"
            error(TypeError, "numpy.vectorize", problem, got=got, expected=f"{len(outputs)}")
        known = dict(sizes)
        for i, (x, dims) in enumerate(zip(results, outputs, strict=True)):
            _check_core_dims(dims, np.shape(x), known, f"result {i}")
        return out

    return call


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any
) -> Array:
    """Applies a function of vectors to all slices of one dimension along `axis`.

    Shapes:     arr: T[.., n, ..] -> U[.., *t, ..], where func1d maps T[n] to U[t].

    Raises:
        ValueError: the axis is out of range.

    Example:
        >>> jnp.apply_along_axis(lambda v: v - v[0], 1, jnp.array([[1, 2], [5, 9]]))
        Array([[0, 1],
               [0, 4]], dtype=int32)
    """
    arr = asarray(promotion.check_array("apply_along_axis", arr))
    axis = families.canonicalize_axis(axis, arr.ndim, "numpy.apply_along_axis")

    def function(x: Array) -> Array:
        return func1d(x, *args, **kwargs)

    # From the inside out: dimensions behind the axis come after the results' own ones.
    for i in range(1, arr.ndim - axis):
        function = vmap(function, in_axes=i, out_axes=-1)
    for _ in range(axis):
        function = vmap(function, in_axes=0, out_axes=0)
    return function(arr)


def apply_over_axes(
    func: Callable[[Any, int], Any], a: ArrayLike, axes: int | Sequence[int]
) -> Array:
    """Applies a reducing function over several axes in turn, keeping the dimensions.

    Raises:
        ValueError: the function changes the number of dimensions by more than the reduced one.

    Example:
        >>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3, 4)), [0, 2])
        Array([[[8.],
                [8.],
                [8.]]], dtype=float32)
    """
    found = asarray(promotion.check_array("apply_over_axes", a))
    rank = found.ndim
    for given in np.atleast_1d(axes).tolist():
        axis = families.canonicalize_axis(given, rank, "numpy.apply_over_axes")
        found = func(found, axis)
        if found.ndim == rank - 1:
            found = expand_dims(found, axis)
        fits = found.ndim == rank
        problem = "the function must keep all dimensions, or drop the one it reduces."
        promotion.check_that(
            fits, "apply_over_axes", problem, got=f"{rank} dimensions before, {found.ndim} after"
        )
    return found


def piecewise(
    x: ArrayLike,
    condlist: ArrayLike | Sequence[ArrayLike],
    funclist: Sequence[Any],
    *args: Any,
    **kw: Any,
) -> Array:
    """Evaluates a piecewise-defined function; where conditions overlap, the last one holds.

    Args:
        x: the argument.
        condlist: the conditions, arrays of the shape of `x`.
        funclist: functions or numbers, one for each condition, and perhaps one for the rest.
        args: more arguments for the functions.
        kw: keyword arguments for the functions.

    Shapes:     x: T[s] -> T[s].

    Raises:
        ValueError: the numbers of conditions and functions do not fit.

    Example:
        >>> x = jnp.array([-2.0, -1.0, 3.0])
        >>> jnp.piecewise(x, [x < 0, x > 2], [lambda v: -v, 100.0])
        Array([  2.,   1., 100.], dtype=float32)
    """
    x = asarray(promotion.check_array("piecewise", x))
    conditions = [asarray(c).astype(bool) for c in cast(Iterable[Any], condlist)]
    functions = list(funclist)
    if len(functions) == len(conditions):
        functions.append(0)
    fits = len(functions) == len(conditions) + 1
    problem = "there must be a function for each condition, and at most one more."
    promotion.check_that(
        fits, "piecewise", problem, got=f"{len(conditions)} conditions, {len(funclist)} functions"
    )

    def values(function: Callable[..., Any]) -> Any:
        found = function(x, *args, **kw) if callable(function) else function
        return asarray(found).astype(x.dtype)

    result = values(functions[-1])
    for condition, function in zip(conditions, functions, strict=False):
        result = where(condition, values(function), result)
    return result


Function = Callable[..., Any]


def kept_dtype(function: Function, dtype: np.dtype[Any], *others: Any) -> Any:
    """The dtype of `function(x, *others)` once its results have taken the place of `x`.

    Args:
        function: of elements.
        dtype: that x has at first.
        *others: the dtypes of the other arguments.
    """
    elements = [ShapeDtypeStruct((), other) for other in others]
    found = eval_shape(function, ShapeDtypeStruct((), dtype), *elements).dtype
    return found if found == dtype else kept_dtype(function, found, *others)


def folded(
    function: Function,
    rows: Any,
    initial: Any = None,
    mask: Any = None,
    *,
    identity: Any,
    associative: bool,
) -> Array:
    """The rows combined into one, in their order.

    Args:
        function: of two elements.
        rows: what is combined.
        initial: what comes before them.
        mask: where there is an element at all; everywhere by default.
        identity: what stands in place of `initial` where there may be no element.
        associative: whether neighbours may be combined first, with the identity between them.
    """
    dtype = kept_dtype(function, rows.dtype, rows.dtype)
    # A neutral element of -1 has all bits of an unsigned number too.
    neutral = None if identity is None else asarray(np.asarray(identity).astype(dtype))
    if initial is None and (mask is not None or not rows.shape[0]):
        initial = neutral
    if not rows.shape[0]:
        return promotion.broadcast_to(initial.astype(dtype), rows.shape[1:])
    if not associative or (mask is not None and neutral is None):
        return _in_turn(function, rows, initial, dtype, mask)
    rows = rows.astype(dtype)
    if mask is not None:
        rows = where(mask, rows, neutral)
    while rows.shape[0] > 1:
        half = rows.shape[0] // 2
        pairs = function(rows[0 : 2 * half : 2], rows[1 : 2 * half : 2])
        rows = concatenate([pairs, rows[2 * half :]], 0)
    return rows[0] if initial is None else function(initial.astype(dtype), rows[0])


def _in_turn(
    function: Function, rows: Array, start: Array | None, dtype: np.dtype[Any], mask: Array | None
) -> Array:
    first = rows[0] if start is None else promotion.broadcast_to(start, rows.shape[1:])
    rest = (rows[1:] if start is None else rows, mask)

    def step(total: Array, item: tuple[Array, Array | None]) -> tuple[Array, None]:
        row, is_meant = item
        together = function(total, row).astype(dtype)
        return together if is_meant is None else where(is_meant, together, total), None

    total, _ = scan(step, first.astype(dtype), rest)
    return total


def accumulated(function: Function, rows: Array, *, associative: bool) -> Array:
    """What the rows up to each one are, combined in their order."""
    dtype = kept_dtype(function, rows.dtype, rows.dtype)
    totals = rows.astype(dtype)
    if associative:
        (result,) = reduction.scan(lambda x, y: [function(x, y)], [totals], 0)
        return result
    if rows.shape[0] < 2:
        return totals

    def step(total: Array, row: Array) -> tuple[Array, Array]:
        together = function(total, row).astype(dtype)
        return together, together

    _, later = scan(step, totals[0], rows[1:])
    return concatenate([totals[:1], later], 0)


def folded_slices(function: Function, rows: Array, starts: Array) -> Array:
    """The rows from each start to the next one combined; its first row if there are none."""
    size = rows.shape[0]
    rows = rows.astype(kept_dtype(function, rows.dtype, rows.dtype))
    starts = where(starts < 0, starts + size, starts)
    ends = append(starts[1:], asarray(size, starts.dtype))

    def joined(totals: Array, row: tuple[Array, Array]) -> tuple[Array, None]:
        number, value = row
        is_inside = (number > starts) & (number < ends)
        mask = expand_dims(is_inside, tuple(range(1, totals.ndim)))
        return where(mask, function(totals, value).astype(totals.dtype), totals), None

    totals, _ = scan(joined, take(rows, starts, 0), (arange(size, dtype=starts.dtype), rows))
    return totals


def applied_at(function: Function, x: Array, indices: Any, others: Sequence[Any]) -> Array:
    """An array to whose elements at `indices` the function was applied.

    An element whose index comes several times is changed as often, one after the other.
    """
    x = x.astype(kept_dtype(function, x.dtype, *(other.dtype for other in others)))
    parts = indices if isinstance(indices, tuple) else (indices,)
    if all(part is None or part is ... or isinstance(part, int | slice) for part in parts):
        place = x.at[indices]
        return place.set(function(place.get(), *others))
    # What lies outside has a number that no element has.
    numbers = arange(x.size).reshape(x.shape).at[indices].get(mode="fill", fill_value=x.size)
    operands = [ravel(promotion.broadcast_to(other, numbers.shape)) for other in others]

    def step(flat: Array, item: tuple[Array, ...]) -> tuple[Array, None]:
        number, *values = item
        place = flat.at[number]
        changed = function(place.get(mode="clip"), *values).astype(flat.dtype)
        return place.set(changed, mode="drop"), None

    flat, _ = scan(step, ravel(x), (ravel(numbers), *operands))
    return reshape(flat, x.shape)


@source.boundaries("__init__", "reduce", "accumulate", "at", "outer", "reduceat")
class ufunc:  # noqa: N801  NumPy's name
    """Represents a universal function: it works element by element, and along axes.

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
        self._parameters = nin, nout, identity
        self._function, self._source = func, cast(Any, func)
        self._associative = associative
        self._reduce, self._accumulate, self._update = reduce, accumulate, update
        self.__signature__ = _with_options(func)

    nin = property(lambda self: self._parameters[0], doc="How many arguments it takes.")
    nout = property(lambda self: self._parameters[1], doc="How many results it gives.")
    nargs = property(lambda self: self.nin + self.nout, doc="How many of both.")
    identity = property(
        lambda self: self._parameters[2], doc="What leaves other arguments as they are."
    )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ufunc) and self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash(self._compared()[:2])

    def _compared(self) -> tuple[Any, ...]:
        own = (self._associative, self._reduce, self._accumulate, self._update)
        return self._source, self.__name__, self._parameters, *own

    @source.is_boundary
    def __call__(self, *args: Any, out: None = None, where: None = None) -> Any:
        try:
            if out is not None or where is not None:
                fix = f"numpy.where(condition, numpy.{self.__name__}(...), otherwise)"
                self._refuse("takes neither `out` nor `where`: arrays do not change", fix=fix)
            return self._function(*args)
        except Exception as exception:
            source.filter_frames(exception)
            raise

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
        promotion.check_out(name, out)
        if self._reduce is not None:
            options = {"dtype": dtype, "initial": initial, "where": where}
            given = {key: value for key, value in options.items() if value is not None}
            return self._reduce(a, axis=axis, keepdims=keepdims, **given)
        a = asarray(promotion.check_array(name, a), dtype)
        every = tuple(range(a.ndim))
        axes = every if axis is None else canonical_axes(name, axis, a.ndim)
        if len(axes) != 1 and axis is not None and not self._associative:
            self._refuse("combines elements in their order, along one axis")
        total = self._folded(name, a, axes, initial, where)
        return expand_dims(total, axes) if keepdims else total

    def _folded(
        self, name: str, a: Array, axes: Shape, initial: ArrayLike | None, where: ArrayLike | None
    ) -> Array:
        rows = _rows(a, axes)
        start = None if initial is None else asarray(initial).astype(a.dtype)
        nothing = not rows.shape[0] or where is not None
        if nothing and start is None and self.identity is None:
            problem = "there is nothing to reduce, or with `where` there may be nothing."
            fix = "initial=, the result for nothing"
            error(ValueError, name, problem, got=str(aval_of(a)), fix=fix)
        if where is not None:
            where = _rows(shaping.broadcast_to(promotion.check_mask(name, where), a.shape), axes)
        order = {"identity": self.identity, "associative": self._associative}
        return folded(self._function, rows, start, where, **order)

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
        promotion.check_out(name, out)
        if axis is None:
            error(ValueError, name, "goes along one axis.", got="axis None", fix="a.ravel()")
        if self._accumulate is not None:
            return self._accumulate(a, axis, dtype)
        a = asarray(promotion.check_array(name, a), dtype)
        axis = canonicalize_axis(axis, a.ndim, name)
        rows = moveaxis(a, axis, 0)
        totals = accumulated(self._function, rows, associative=self._associative)
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
        a = asarray(promotion.check_array(self.__name__, a))
        if self.nin == 2 and self._update is not None and a.dtype != np.bool_:
            return getattr(a.at[indices], self._update)(b)
        others = [] if b is None else [asarray(b)]
        if len(others) + 1 != self.nin:
            problem = "takes as many operands as the function."
            got = f"{len(others) + 1} operand{'s' if others else ''}"
            error(TypeError, f"numpy.{self.__name__}.at", problem, got=got, expected=str(self.nin))
        return applied_at(self._function, a, indices, others)

    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Array:
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
        x, y = (asarray(promotion.check_array(self.__name__, v)) for v in (A, B))
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
                integers of one dimension, or `axis` is not one axis of the array.
            NotImplementedError: `out` is given.

        Example:
            >>> jnp.add.reduceat(jnp.array([1, 2, 3, 4]), jnp.array([0, 2]))
            Array([3, 7], dtype=int32)
        """
        self._check_is_binary("reduceat")
        name = f"numpy.{self.__name__}.reduceat"
        promotion.check_out(name, out)
        a = asarray(promotion.check_array(name, a), dtype)
        starts = asarray(promotion.check_array(name, indices, "indices"))
        _check_slices(name, a, starts, axis)
        totals = folded_slices(self._function, moveaxis(a, axis, 0), starts)
        return moveaxis(totals, 0, axis)

    def _check_is_binary(self, method: str) -> None:
        if self.nin != 2 or self.nout != 1:
            problem = "needs a function of two arguments with one result."
            got = f"{self.nin} arguments, {self.nout} results"
            error(ValueError, f"numpy.{self.__name__}.{method}", problem, got=got)

    def _refuse(self, reason: str, fix: str | None = None) -> Any:
        error(NotImplementedError, f"numpy.{self.__name__}", f"{reason}.", fix=fix)

    def __repr__(self) -> str:
        return f"<minijax.numpy.ufunc {self.__name__!r}>"


def _rows(a: Array, axes: Shape) -> Any:
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


def _check_slices(name: str, a: Array, indices: Array, axis: object) -> None:
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

    Example:
        >>> distance = jnp.frompyfunc(lambda x, y: abs(x - y), 2, 1)
        >>> distance.outer(jnp.array([1, 2]), jnp.array([5, 7]))
        Array([[4, 6],
               [3, 5]], dtype=int32)
    """
    check_callable("numpy.frompyfunc", func)
    made = ufunc(vectorize(func), nin, nout, identity=identity)
    made._source = frompyfunc, func
    return made


def _associative(function: Callable[..., Any], identity: Any, **options: Any) -> Any:
    return ufunc(function, 2, 1, identity=identity, associative=True, **options)


def _of_dtype(reduce: Callable[..., Any], combine: Callable[..., Any] | None = None) -> Any:
    """A reduction that takes a dtype, and an initial value, which `combine` adds."""

    def reduced(
        a: ArrayLike,
        *,
        dtype: DTypeLike | None = None,
        initial: ArrayLike | None = None,
        **options: Any,
    ) -> Any:
        if dtype is not None:
            a = asarray(promotion.check_array(reduce.__name__, a), dtype)
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
    elementary.add, 0, reduce=reductions.sum, accumulate=reductions.cumsum, update="add"
)
multiply: _Binary = _associative(
    elementary.multiply, 1, reduce=reductions.prod, accumulate=reductions.cumprod, update="multiply"
)
subtract: _Binary = _elementwise(elementary.subtract, 2, update="subtract")
negative: _Unary = _elementwise(elementary.negative, 1)
maximum: _Binary = _associative(
    elementary.maximum, None, reduce=_of_dtype(reductions.max), update="max"
)
minimum: _Binary = _associative(
    elementary.minimum, None, reduce=_of_dtype(reductions.min), update="min"
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
