"""Ranges, evenly spaced samples, functions of indices, and window functions.

The elements of these arrays follow from their positions by a rule.  Windows are weights that fall
off towards both ends.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of, canonicalize_shape
from minijax.core.errors import error
from minijax.core.trace import Tracer
from minijax.lax import binary, families, shape
from minijax.lax.creation import broadcasted_iota, convert_to_type, iota
from minijax.lax.unary import exp, floor, log, pow_p
from minijax.numpy.creation import asarray, astype, dtype_argument, made_on_host, on_device, ones
from minijax.numpy.elementary import absolute, cos, i0, is_kind, sqrt
from minijax.numpy.promotion import (
    broadcast_shapes,
    broadcast_to,
    check_array,
    check_that,
    known,
    lenient,
    one_program,
    pick,
    promote,
    with_one_rank,
)
from minijax.runtime.annotations import ArrayLike, DTypeLike, Placement, ShardingLike
from minijax.runtime.array import Array, array_from_host
from minijax.transforms.vmap import vmap


def _known_number(name: str, argument: str, x: ArrayLike) -> Any:
    """A bound of `arange` as a Python or NumPy scalar."""
    if type(x) in dtypes.python_scalar_dtypes:
        return x
    fix = "a Python number, such as x.shape[0]"
    if isinstance(x, Tracer):
        fix += x.static_alternative()
    problem = f"`{argument}` decides on the shape, so it must be known."
    value = known(name, check_array(name, x, argument), fix, problem)
    check_that(not value.ndim, name, f"`{argument}` must be a scalar.", got=f"shape {value.shape}")
    return value[()]


def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Returns evenly spaced numbers within the half-open interval from `start` to `stop`.

    Shapes:     -> T[ceil((stop - start) / step)].
    Dtypes:     real; by default the common one of the bounds.

    Raises:
        ConcretizationTypeError: a bound is traced.
        ValueError: a bound is complex.
        ZeroDivisionError: the step is 0.

    Example:
        >>> jnp.arange(4), jnp.arange(1, 2, 0.25)
        (Array([0, 1, 2, 3], dtype=int32), Array([1.  , 1.25, 1.5 , 1.75], dtype=float32))
    """
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    bounds = {"start": start, "stop": stop, "step": step}
    first, last, stride = (_known_number("arange", key, x) for key, x in bounds.items())
    if any(np.iscomplexobj(x) for x in (first, last, stride)):
        error(ValueError, "numpy.arange", "bounds must be real.", got=bounds)
    if stride == 0:
        error(ZeroDivisionError, "numpy.arange", "the step is zero.", got=bounds)
    joined, _ = dtypes.lattice_result_type(*bounds.values())
    dtype = dtype_argument("arange", dtype, joined)
    size = int(max(math.ceil((last - first) / stride), 0))
    if dtypes.issubdtype(dtype, np.integer) and made_on_host(size, dtype):
        found = array_from_host(_counted_on_host(first, stride, size, dtype))
    else:
        found = _counted(first, stride, size, dtype)
    return on_device(found, device, out_sharding)


def _counted_on_host(start: Any, step: Any, size: int, dtype: Any) -> np.ndarray[Any, Any]:
    count = np.arange(size, dtype=np.int64)
    if isinstance(start, (int, np.integer)) and isinstance(step, (int, np.integer)):
        count = count * int(step) + int(start)
    else:
        start, step = (np.asarray(x).astype(dtype).astype(np.int64) for x in (start, step))
        count = count * step + start
    return count.astype(dtype)


@one_program(static=("start", "step", "size", "dtype"))
def _counted(start: complex, step: complex, size: int, dtype: DTypeLike) -> Array:
    numbers = iota(dtype, size)
    if step != 1:
        numbers = binary.mul(numbers, np.asarray(step).astype(dtype)[()])
    return numbers if start == 0 else binary.add(np.asarray(start).astype(dtype)[()], numbers)


def _sample_count(name: str, num: Any) -> int:
    count = families.an_integer(num, f"numpy.{name}", "`num`")
    check_that(count >= 0, name, "the number of samples must not be negative.", got=str(num))
    return count


@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = ...,
    endpoint: bool = ...,
    retstep: Literal[False] = ...,
    dtype: DTypeLike | None = ...,
    axis: int = ...,
    *,
    device: Placement = ...,
) -> Array: ...
@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = ...,
    endpoint: bool = ...,
    *,
    retstep: Literal[True],
    dtype: DTypeLike | None = ...,
    axis: int = ...,
    device: Placement = ...,
) -> tuple[Array, Array]: ...
@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = ...,
    endpoint: bool = ...,
    retstep: bool = ...,
    dtype: DTypeLike | None = ...,
    axis: int = ...,
    *,
    device: Placement = ...,
) -> Array | tuple[Array, Array]: ...


def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Placement = None,
) -> Array | tuple[Array, Array]:
    """Returns `num` evenly spaced numbers from `start` to `stop`.

    Args:
        start: the first number, or an array of them.
        stop: the last number, or an array of them.
        num: how many numbers.
        endpoint: whether `stop` itself is among them.
        retstep: whether the distance of neighbours is returned too.
        dtype: the dtype of the result; numbers are rounded down for an integer one.
        axis: where the new dimension stands.
        device: where the array is placed.

    Shapes:     start: T[s], stop: U[t] -> V[.., num, ..] of the broadcast of s and t.
    Dtypes:     inexact by default.

    Raises:
        ValueError: `num` is negative.

    Example:
        >>> jnp.linspace(0, 1, 5)
        Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
        >>> jnp.linspace(0, 1, 4, endpoint=False)
        Array([0.  , 0.25, 0.5 , 0.75], dtype=float32)
    """
    num = _sample_count("linspace", num)
    dtype = dtype_argument("linspace", dtype, None)
    if retstep:
        samples, distance = _linspace(start, stop, num, endpoint, dtype, axis)
        return on_device(samples, device), distance
    return on_device(_samples(start, stop, num, endpoint, dtype, axis), device)


@one_program(static=("num", "endpoint", "dtype", "axis"))
def _samples(start: Any, stop: Any, num: int, endpoint: bool, dtype: Any, axis: int) -> Any:
    return _linspace(start, stop, num, endpoint, dtype, axis)[0]


@one_program(static=("num", "endpoint", "dtype", "axis"))
def _linspace(
    start: ArrayLike, stop: ArrayLike, num: int, endpoint: bool, dtype: DTypeLike | None, axis: int
) -> Any:
    """The numbers, and the distance of neighbours."""
    start, stop, computed = _ends("linspace", start, stop, dtype)
    dims = broadcast_shapes("linspace", aval_of(start).shape, aval_of(stop).shape)
    start, stop = broadcast_to(start, dims), broadcast_to(stop, dims)
    gaps = num - 1 if endpoint else num
    distance = binary.div(binary.sub(stop, start), float(gaps) if gaps > 0 else np.nan)
    axis = families.an_integer(axis, "numpy.linspace", "the axis") % (len(dims) + 1)
    whole = (*dims[:axis], num, *dims[axis:])
    kept = [d for d in range(len(whole)) if d != axis]
    place = broadcasted_iota(computed, whole, axis)
    first, last, step = (shape.broadcast_in_dim(x, whole, kept) for x in (start, stop, distance))
    samples = first if gaps <= 0 else binary.add(first, binary.mul(place, step))
    if endpoint and num > 1:
        samples = pick(binary.eq(place, num - 1), last, samples)
    if dtype is None:
        return samples, distance
    if dtypes.issubdtype(dtype, np.integer) and not is_kind(samples, np.complexfloating):
        samples = floor(samples)
    return convert_to_type(samples, dtype, weak_type=False), distance


def _ends(
    name: str, start: ArrayLike, stop: ArrayLike, dtype: DTypeLike | None
) -> tuple[Any, Any, Any]:
    """Where a range starts and stops, as the dtype in which it is computed, and that."""
    ends = with_one_rank(name, check_array(name, start), check_array(name, stop))
    given = dtypes.lattice_result_type(*ends)[0]
    with lenient():
        wide = given if dtype is None else dtypes.lattice_result_type(given, dtype)[0]
    computed = dtypes.to_inexact_dtype(wide)
    # Not by way of the promoted dtype: uint8 has no room for a Python scalar of -1.
    start, stop = (convert_to_type(x, computed, weak_type=False) for x in ends)
    return start, stop, computed


def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Returns `num` numbers evenly spaced on a log scale, `base ** start` to `base ** stop`.

    Shapes:     start: T[s], stop: U[t] -> V[.., num, ..] of the broadcast of s and t.
    Dtypes:     inexact by default.

    Raises:
        ValueError: `num` is negative.

    Example:
        >>> jnp.logspace(0, 3, 4, base=2)
        Array([1., 2., 4., 8.], dtype=float32)
    """
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    powers = _power_program(base, exponents)
    return powers if dtype is None else astype(powers, dtype)


@one_program()
def _power_program(base: ArrayLike, exponents: ArrayLike) -> Any:
    return pow_p.bind(*promote("logspace", base, exponents))


def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Returns `num` numbers from `start` to `stop` in a geometric progression.

    Shapes:     start: T[s], stop: U[t] -> V[.., num, ..] of the broadcast of s and t.
    Dtypes:     inexact by default.

    Raises:
        ValueError: `num` is negative.

    Example:
        >>> jnp.geomspace(1, 8, 4).round()
        Array([1., 2., 4., 8.], dtype=float32)
    """
    num = _sample_count("geomspace", num)
    dtype = dtype_argument("geomspace", dtype, None)
    return _geomspace(start, stop, num, endpoint, dtype, axis)


@one_program(static=("num", "endpoint", "dtype", "axis"))
def _geomspace(
    start: ArrayLike, stop: ArrayLike, num: int, endpoint: bool, dtype: DTypeLike | None, axis: int
) -> Any:
    start, stop, computed = _ends("geomspace", start, stop, dtype)
    dims = broadcast_shapes("linspace", aval_of(start).shape, aval_of(stop).shape)
    start, stop = broadcast_to(start, dims), broadcast_to(stop, dims)
    # start * (stop / start) ** t for t from 0 to 1: negative and complex numbers need no care.
    exponents, _ = _linspace(
        np.zeros((), computed), log(binary.div(stop, start)), num, endpoint, None, axis
    )
    axis = families.an_integer(axis, "numpy.linspace", "the axis") % (len(dims) + 1)
    kept = [d for d in range(len(dims) + 1) if d != axis]
    whole = aval_of(exponents).shape
    first, last = (shape.broadcast_in_dim(x, whole, kept) for x in (start, stop))
    samples = binary.mul(first, exp(exponents))
    if endpoint and num > 1:
        place = broadcasted_iota(dtypes.int32, whole, axis)
        samples = pick(binary.eq(place, num - 1), last, samples)
    return samples if dtype is None else convert_to_type(samples, dtype, weak_type=False)


def fromfunction(
    function: Callable[..., Any], shape: Sequence[int], *, dtype: DTypeLike = float, **kwargs: Any
) -> Array:
    """Creates an array by calling a function on the indices of each element.

    Shapes:     -> T[shape], where the function maps indices to T[].

    Raises:
        TypeError: the shape is invalid.

    Example:
        >>> jnp.fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=int)
        Array([[ 0,  1,  2],
               [10, 11, 12]], dtype=int32)
    """
    dims = canonicalize_shape(shape, "numpy.fromfunction")
    dtype = dtypes.canonicalize_user_dtype(dtype, "numpy.fromfunction")
    mapped: Callable[..., Any] = functools.partial(function, **kwargs)
    for axis in reversed(range(len(dims))):
        in_axes: list[int | None] = [None] * len(dims)
        in_axes[axis] = 0
        mapped = vmap(mapped, in_axes=tuple(in_axes))
    return mapped(*(arange(n, dtype=dtype) for n in dims))


def _window(name: str, count: int, weight: Callable[[Any, int], Any]) -> Any:
    """The weights at places 0 to count - 1; a single place has weight 1."""
    size = int(count) if isinstance(count, (float, np.floating)) else operator.index(count)
    check_that(size >= 0, name, "the number of weights must not be negative.", got=str(size))
    dtype = dtypes.default_float_dtype()
    return ones(size, dtype) if size <= 1 else weight(arange(size, dtype=dtype), size - 1)


def bartlett(M: int) -> Array:
    """Returns the Bartlett window of M points: a triangle that is 0 at both ends.

    Shapes:     -> float[M].

    Example:
        >>> jnp.bartlett(5)
        Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _window("bartlett", M, lambda n, last: 1 - absolute(2 * n / last - 1))


def blackman(M: int) -> Array:
    """Returns the Blackman window of M points: a sum of three cosine terms.

    Shapes:     -> float[M].

    Example:
        >>> (100 * jnp.blackman(5)).round()
        Array([ -0.,  34., 100.,  34.,  -0.], dtype=float32)
    """

    def weight(n: Array, last: int) -> Any:
        turn = 2 * math.pi * n / last
        return 0.42 - 0.5 * cos(turn) + 0.08 * cos(2 * turn)

    return _window("blackman", M, weight)


def hamming(M: int) -> Array:
    """Returns the Hamming window of M points: a raised cosine that is 0.08 at both ends.

    Shapes:     -> float[M].

    Example:
        >>> (100 * jnp.hamming(5)).round()
        Array([  8.,  54., 100.,  54.,   8.], dtype=float32)
    """
    return _window("hamming", M, lambda n, last: 0.54 - 0.46 * cos(2 * math.pi * n / last))


def hanning(M: int) -> Array:
    """Returns the Hann window of M points: a raised cosine that is 0 at both ends.

    Shapes:     -> float[M].

    Example:
        >>> (100 * jnp.hanning(5)).round()
        Array([  0.,  50., 100.,  50.,   0.], dtype=float32)
    """
    return _window("hanning", M, lambda n, last: 0.5 - 0.5 * cos(2 * math.pi * n / last))


def kaiser(M: int, beta: ArrayLike) -> Array:
    """Returns the Kaiser window of M points, narrower for a larger `beta`.

    Shapes:     beta: T[] -> float[M].

    Example:
        >>> (100 * jnp.kaiser(5, 4.0)).round()
        Array([  9.,  63., 100.,  63.,   9.], dtype=float32)
    """
    beta = asarray(beta, dtypes.default_float_dtype())

    def weight(n: Array, last: int) -> Any:
        place = 2 * n / last - 1
        return i0(beta * sqrt(1 - place * place)) / i0(beta)

    return _window("kaiser", M, weight)
