"""New arrays: of one value, or of given ones.

Ranges are in `ranges.py`, matrices by place in `matrices.py`.

Where nothing is traced, small arrays with known elements are made on the host and copied, since
compiling a program for each shape would take thousands of times as long.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of, canonicalize_shape, shaped_array
from minijax.core.errors import error
from minijax.core.meshes import PartitionSpec
from minijax.core.trace import Tracer, current
from minijax.interpreters import casts
from minijax.lax import shape
from minijax.lax.creation import as_element, convert_to_type
from minijax.lowering import eager, relocation
from minijax.numpy.promotion import broadcast_to, check_array, check_that, named, one_program, title
from minijax.runtime import transfer
from minijax.runtime.annotations import ArrayLike, DTypeLike, Placement, ShapeLike, ShardingLike
from minijax.runtime.array import Array, array_from_host
from minijax.sharding import rules
from minijax.sharding.named import NamedSharding
from minijax.transforms import explicit

# Copying more elements than this takes longer than filling them on the device.
_FEW = 1 << 16


def made_on_host(size: int, dtype: Any) -> bool:
    """Whether an array with known elements is best made on the host: outside traces, if small."""
    return (
        size <= _FEW
        and current.value is eager.EAGER
        and not dtypes.is_extended(dtype)
        and dtypes.bit_width(dtype) >= 8
    )


def dtype_argument(name: str, dtype: DTypeLike | None, default: DTypeLike | None) -> Any:
    """The dtype that a `dtype=` argument means, or the default one.

    Raises:
        TypeError: it is not a dtype that arrays can have.
    """
    return default if dtype is None else dtypes.canonicalize_user_dtype(dtype, title(name))


def on_device(x: Any, device: Any, sharding: Any = None, *, name: str = "array") -> Array:
    """Moves `x` to the device or sharding that a public function was called with.

    Args:
        x: the result of the function.
        device: its argument `device=`.
        sharding: its argument `out_sharding=`, used if there is no device.
        name: the function, of `numpy` unless the name says where it is.
    """
    return explicit.placed(x, sharding if device is None else device, title(name))


def _constant(
    name: str, dims: ShapeLike, value: int, dtype: Any, device: Placement, sharding: ShardingLike
) -> Array:
    dtype = dtype_argument(name, dtype, dtypes.default_float_dtype())
    dims = canonicalize_shape(dims, f"numpy.{name}")
    if made_on_host(math.prod(dims), dtype):
        return on_device(array_from_host(np.full(dims, value, dtype)), device, sharding)
    return _repeated(name, _element(value, dtype), dims, device, sharding)


def _element(value: ArrayLike, dtype: np.dtype[Any]) -> Any:
    """A known number as an element of a dtype."""
    known = as_element(value, dtype)
    return known if dtypes.is_extended(dtype) else np.asarray(known).astype(dtype)[()]


def zeros(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Creates an array filled with zeros.

    Shapes:     -> dtype[shape].
    Dtypes:     float32, or float64 with x64, by default.

    Raises:
        TypeError: the shape or the dtype is invalid.

    Example:
        >>> jnp.zeros((2, 3))
        Array([[0., 0., 0.],
               [0., 0., 0.]], dtype=float32)
    """
    return _constant("zeros", shape, 0, dtype, device, out_sharding)


def ones(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Creates an array filled with ones.

    Shapes:     -> dtype[shape].
    Dtypes:     float32, or float64 with x64, by default.

    Raises:
        TypeError: the shape or the dtype is invalid.

    Example:
        >>> jnp.ones(3, dtype=jnp.int8)
        Array([1, 1, 1], dtype=int8)
    """
    return _constant("ones", shape, 1, dtype, device, out_sharding)


def empty(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Creates an array whose elements are unspecified; they are zeros.

    Shapes:     -> dtype[shape].
    Dtypes:     float32, or float64 with x64, by default.

    Raises:
        TypeError: the shape or the dtype is invalid.

    Example:
        >>> jnp.empty(2)
        Array([0., 0.], dtype=float32)
    """
    return zeros(shape, dtype, device=device, out_sharding=out_sharding)


def full(
    shape: ShapeLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Creates an array filled with a value, or with an array broadcast to a shape.

    Shapes:     fill_value: T[t] -> T[shape], where t broadcasts to the shape.
    Dtypes:     that of `fill_value` by default, and as weak.

    Raises:
        TypeError: the shape or the dtype is invalid, or the value is not an array.
        ValueError: the value does not broadcast to the shape.

    Example:
        >>> jnp.full((2, 3), jnp.array([1, 2, 3]))
        Array([[1, 2, 3],
               [1, 2, 3]], dtype=int32)
    """
    fill_value = check_array("full", fill_value, "fill_value")
    dims = canonicalize_shape(shape, "numpy.full")
    if dtype is not None and isinstance(fill_value, int):
        # Of a wide integer only the bits that fit count.
        fill_value = _element(fill_value, dtype_argument("full", dtype, None))
    aval = aval_of(fill_value)
    weak = dtype is None and aval.weak_type
    dtype = dtype_argument("full", dtype, aval.dtype)
    is_known = not hasattr(fill_value, "aval")
    if is_known and aval.ndim == 0 and made_on_host(math.prod(dims), dtype):
        host = np.full(dims, np.asarray(fill_value).astype(dtype))
        return on_device(
            array_from_host(host, shaped_array(dims, dtype, weak)), device, out_sharding
        )
    value = convert_to_type(as_element(fill_value, dtype), dtype, weak)
    return _repeated("full", value, dims, device, out_sharding)


def _repeated(
    name: str, x: Array, dims: tuple[int, ...], device: Placement, sharding: ShardingLike
) -> Any:
    source = aval_of(x).shape
    try:
        fits = not source or np.broadcast_shapes(source, dims) == dims
    except ValueError:
        fits = False
    check_that(fits, name, "the value does not broadcast to the shape.", fill_value=x, shape=dims)
    target = sharding if device is None else device
    if current.value is not eager.EAGER and isinstance(target, (NamedSharding, PartitionSpec)):
        wanted = rules.resolve(target, f"numpy.{name}")
        kept = range(len(dims) - len(source), len(dims))
        return shape.broadcast_in_dim(x, dims, kept, out_sharding=wanted)
    return on_device(_broadcast_program(x, dims), target)


_broadcast_program = one_program(static=("shape",))(broadcast_to)


def _like(
    name: str,
    x: ArrayLike,
    value: ArrayLike,
    dtype: DTypeLike | None,
    dims: ShapeLike | None,
    device: Placement,
    sharding: ShardingLike,
) -> Array:
    described = x if hasattr(x, "shape") and hasattr(x, "dtype") else aval_of(check_array(name, x))
    dims = canonicalize_shape(described.shape if dims is None else dims, f"numpy.{name}")
    is_asked = device is not None or sharding is not None
    if not is_asked and not hasattr(value, "aval") and current.value is eager.EAGER:
        device = transfer.placement_beside(dims, [x])
    weak = dtype is None and dtypes.is_weakly_typed(x)
    dtype = dtype_argument(name, dtype, dtypes.canonicalize_dtype(described.dtype))
    if device is None and sharding is None and dims == described.shape:
        sharding = _sharding_in_type(described)
    value = as_element(value, dtype)
    if not hasattr(value, "aval"):
        value = np.asarray(value).astype(dtype)[()]
    if isinstance(value, np.generic) and made_on_host(math.prod(dims), dtype):
        found = array_from_host(np.full(dims, value), shaped_array(dims, dtype, weak))
        return casts.varying_as(on_device(found, device, sharding), x)
    found = _repeated(name, convert_to_type(value, dtype, weak), dims, device, sharding)
    return casts.varying_as(found if is_asked else relocation.beside(found, x), x)


def _sharding_in_type(x: Any) -> Any:
    """How `x` is split, where its type shows that."""
    typed = getattr(getattr(x, "aval", None), "split", None)
    return typed if typed is None or isinstance(x, Tracer) else x.sharding


def zeros_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Creates an array of zeros with the shape and dtype of `a`.

    Shapes:     a: T[s] -> T[s].

    Raises:
        TypeError: `a` is not an array and has no shape and dtype.

    Example:
        >>> jnp.zeros_like(jnp.array([1, 2]))
        Array([0, 0], dtype=int32)
    """
    return _like("zeros_like", a, 0, dtype, shape, device, out_sharding)


def ones_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Creates an array of ones with the shape and dtype of `a`.

    Shapes:     a: T[s] -> T[s].

    Raises:
        TypeError: `a` is not an array and has no shape and dtype.

    Example:
        >>> jnp.ones_like(jnp.array([1, 2]), dtype=float)
        Array([1., 1.], dtype=float32)
    """
    return _like("ones_like", a, 1, dtype, shape, device, out_sharding)


def empty_like(
    prototype: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Placement = None,
) -> Array:
    """Creates an array with the shape and dtype of `prototype` and unspecified elements.

    Shapes:     prototype: T[s] -> T[s].

    Raises:
        TypeError: `prototype` is not an array and has no shape and dtype.

    Example:
        >>> jnp.empty_like(jnp.array([1, 2]), shape=(1, 3))
        Array([[0, 0, 0]], dtype=int32)
    """
    return _like("empty_like", prototype, 0, dtype, shape, device, None)


def full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Creates an array filled with a value, with the shape and dtype of `a`.

    Shapes:     a: T[s] -> T[s].

    Raises:
        TypeError: `a` is not an array and has no shape and dtype, or `fill_value` is not an array.
        ValueError: `fill_value` does not broadcast to the shape.

    Example:
        >>> jnp.full_like(jnp.array([1, 2]), 7.9)  # in the dtype of the array
        Array([7, 7], dtype=int32)
    """
    fill_value = check_array("full_like", fill_value, "fill_value")
    return _like("full_like", a, fill_value, dtype, shape, device, out_sharding)


def array(
    object: Any,
    dtype: DTypeLike | None = None,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    *,
    device: Placement = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Creates an array from numbers, arrays, nested lists, or anything that NumPy can read.

    Python scalars make weakly typed arrays; lists of them do not.

    Args:
        object: the elements.
        dtype: the dtype; by default the common one of the elements.
        copy: whether an array of ours is copied.
        order: "K" or "C"; others are refused.
        ndmin: the least number of dimensions; missing ones are put in front.
        device: where the array is placed.
        out_sharding: the sharding of the array.

    Shapes:     those of the nesting, with those of the arrays within.

    Raises:
        TypeError: an element is not a number, or the dtype is invalid.
        ValueError: an element is None, or the nesting is uneven.
        OverflowError: a Python int does not fit into the dtype.
        NotImplementedError: `order` is neither "K" nor "C".

    Example:
        >>> jnp.array([[1, 2.5], [3, 4]])
        Array([[1. , 2.5],
               [3. , 4. ]], dtype=float32)
        >>> jnp.array(np.arange(3), dtype=jnp.bfloat16)
        Array([0, 1, 2], dtype=bfloat16)
    """
    fits = order in {None, "K", "C"}
    problem = "elements are in row-major order."
    check_that(fits, "array", problem, error=NotImplementedError, got=f"order: {order!r}")
    made = _array_of(object, dtype_argument("array", dtype, None), copy)
    missing = ndmin - aval_of(made).ndim
    if missing > 0:
        made = shape.expand_dims(made, range(missing))
    return on_device(made, device, out_sharding)


def _array_of(x: Any, dtype: Any, copy: bool) -> Any:
    if isinstance(x, (Array, Tracer)):
        aval = x.aval
        if dtype is None or (aval.dtype == dtype and not aval.weak_type):
            return _copy_program(x) if copy else x
        return astype(x, dtype)  # type: ignore[arg-type]
    if hasattr(x, "__jax_array__"):
        return _array_of(x.__jax_array__(), dtype, copy)
    if isinstance(x, (list, tuple)):
        return _array_of_list(x, dtype)
    if type(x) in dtypes.python_scalar_dtypes:
        if dtype is None:
            return array_from_host(x)
        if type(x) is complex and not dtypes.issubdtype(dtype, np.complexfloating):
            problem = "a complex number cannot become a real one."
            fix = "numpy.real(x)"
            error(TypeError, "numpy.array", problem, got={"object": x, "dtype": dtype}, fix=fix)
        return array_from_host(_host_array([x], dtype)[0])
    return array_from_host(_checked_host_array(x, dtype), may_alias=False if copy else None)


_copy_program = one_program()(shape.copy)


def _checked_host_array(x: object, dtype: np.dtype[Any] | None) -> np.ndarray[Any, Any]:
    """What NumPy reads from an object, if it is numbers."""
    if x is None:
        error(ValueError, "numpy.array", "None is no array.", got="None")
    host = np.asarray(x)
    if host.dtype.kind in "US" and dtype is not None:
        # NumPy reads numbers in texts where it is told their dtype.
        with contextlib.suppress(TypeError, ValueError):
            return host.astype(dtype)
    if host.dtype.kind in "OUSMm":
        got = f"{x!r}, in NumPy of dtype {host.dtype}"
        error(TypeError, "numpy.array", "the elements are not numbers.", got=got)
    return host if dtype is None else host.astype(dtype)


def _array_of_list(x: Sequence[Any], dtype: np.dtype[Any] | None) -> Any:
    leaves = _leaves(x)
    if any(isinstance(leaf, (Array, Tracer)) or hasattr(leaf, "aval") for leaf in leaves):
        return _stacked(x, dtype)
    if dtype is None:
        dtype = dtypes.default_float_dtype()
        if leaves:
            dtype, _ = dtypes.lattice_result_type(*{_kind(leaf): leaf for leaf in leaves}.values())
    return array_from_host(_host_array(x, dtype))


def _leaves(x: object) -> list[Any]:
    """The elements of nested lists.

    Raises:
        ValueError: one is None.
        TypeError: one is not a number.
    """
    if isinstance(x, (list, tuple)):
        if x and all(type(item) is type(x[0]) for item in x) and type(x[0]) in _PLAIN:
            return [x[0]]
        return [leaf for item in x for leaf in _leaves(item)]
    if hasattr(x, "__jax_array__"):
        x = x.__jax_array__()
    if not hasattr(x, "aval") and not isinstance(x, np.generic):
        x = x if type(x) in _PLAIN else _checked_host_array(x, None)
    return [x]


_PLAIN = frozenset(dtypes.python_scalar_dtypes)


def _kind(leaf: Any) -> Any:
    """What promotion asks of an element."""
    return type(leaf) if type(leaf) in _PLAIN else aval_of(leaf).dtype


def _host_array(x: object, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(x, dtype)
    except OverflowError as caught:
        problem, expected = f"a Python int does not fit into {dtype}.", None
        fix = "a wider dtype, or float"
        if dtypes.issubdtype(dtype, np.integer):
            limits = dtypes.iinfo(dtype)
            expected = f"numbers from {limits.min} to {limits.max}"
            if limits.min == 0:
                fix += "; a signed dtype for negative numbers"
            fix += f"; numpy.array(x).astype({dtype}) lets numbers wrap around"
        error(OverflowError, "numpy.array", problem, expected=expected, fix=fix, cause=caught)
    except ValueError as caught:
        problem = "the nesting is uneven."
        expected = "lists of equal lengths at each depth"
        error(ValueError, "numpy.array", problem, got=str(caught), expected=expected, cause=caught)
    except TypeError:
        # A float where an integer dtype was asked for, in a dtype that NumPy does not know itself.
        return np.asarray(x).astype(dtype)


def _stacked(x: object, dtype: np.dtype[Any] | None) -> Array:
    """Nested lists with arrays among their elements."""
    if not isinstance(x, (list, tuple)):
        return _array_of(x, dtype, False)
    parts = [_stacked(item, dtype) for item in x]
    shapes = {aval_of(part).shape for part in parts}
    if len(shapes) > 1:
        got = f"elements of shapes {', '.join(map(str, sorted(shapes)))}"
        expected = "elements of one shape at each depth"
        error(ValueError, "numpy.array", "the nesting is uneven.", got=got, expected=expected)
    if not parts:
        return zeros((0,), dtype)
    return _stack_program(*parts)


@one_program()
def _stack_program(*parts: Any) -> Any:
    dtype, _ = dtypes.lattice_result_type(*parts)
    parts = tuple(convert_to_type(part, dtype, weak_type=False) for part in parts)
    return shape.concatenate([shape.expand_dims(part, (0,)) for part in parts], 0)


def array_or_list(name: str, x: Any, argument: str) -> Array:
    """An argument of the public function `name`, of which lists are arrays too.

    Raises:
        TypeError: it is neither an array nor a number, nor a list of these.
    """
    return asarray(x) if isinstance(x, (list, tuple)) else check_array(name, x, argument)


def asarray(
    a: Any,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Placement = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Converts the input to an array; it copies arrays only where `copy` says so.

    Shapes:     those of the nesting, with those of the arrays within.

    Raises:
        TypeError: an element is not a number, or the dtype is invalid.
        ValueError: an element is None, or the nesting is uneven.
        OverflowError: a Python int does not fit into the dtype.

    Example:
        >>> x = jnp.arange(3)
        >>> jnp.asarray(x) is x, jnp.asarray(x, copy=True) is x
        (True, False)
    """
    return array(a, dtype, bool(copy), order or "K", device=device, out_sharding=out_sharding)


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """Returns a copy of an array.

    Shapes:     a: T[s] -> T[s].

    Example:
        >>> x = jnp.arange(3)
        >>> jnp.copy(x) is x, jnp.array_equal(jnp.copy(x), x)
        (False, Array(True, dtype=bool))
    """
    return array(check_array("copy", a), copy=True, order=order)


def astype(
    x: ArrayLike, dtype: DTypeLike, /, *, copy: bool = False, device: Placement = None
) -> Array:
    """Converts an array to a dtype.

    Floats become integers by dropping the fraction, complex numbers become real by dropping the
    imaginary part, booleans say whether an element differs from zero.

    Shapes:     x: T[s] -> dtype[s].

    Raises:
        TypeError: `x` is not an array, or the dtype is invalid.

    Example:
        >>> jnp.astype(jnp.array([1.9, -1.9]), int)
        Array([ 1, -1], dtype=int32)
    """
    x = check_array("astype", x)
    dtype = dtype_argument("astype", dtype, dtypes.default_float_dtype())
    aval = aval_of(x)
    if hasattr(x, "aval") and aval.dtype == dtype and not aval.weak_type:
        return on_device(_copy_program(x) if copy else x, device)
    return on_device(_convert_program(x, dtype), device)


@one_program(static=("dtype",))
def _convert_program(x: ArrayLike, dtype: DTypeLike) -> Array:
    return convert_to_type(x, dtype, weak_type=False)


def from_dlpack(x: Any, /, *, device: Placement = None, copy: bool | None = None) -> Array:
    """Creates an array from an object that supports the DLPack protocol.

    Shapes:     x: T[s] -> T[s].

    Raises:
        TypeError: the object does not speak DLPack.

    Example:
        >>> jnp.from_dlpack(np.arange(3, dtype=np.int16))
        Array([0, 1, 2], dtype=int16)
    """
    return transfer.from_dlpack(x, device=device, copy=copy)


def frombuffer(buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """Interprets a buffer as an array of one dimension.

    Shapes:     -> dtype[count].

    Raises:
        ValueError: the buffer's size does not fit.

    Example:
        >>> jnp.frombuffer(b"abc", dtype=jnp.uint8)
        Array([97, 98, 99], dtype=uint8)
    """
    try:
        host = np.frombuffer(buffer, np.dtype(dtype), count, offset)
    except ValueError as caught:
        problem = f"the buffer does not hold such elements: {caught}."
        got = {"dtype": np.dtype(dtype), "count": count, "offset": offset}
        error(ValueError, "numpy.frombuffer", problem, got=got, cause=None)
    return array(host)


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """Creates an array of one dimension from the numbers in a string.

    Shapes:     -> dtype[count].

    Raises:
        ValueError: the text does not hold such numbers.

    Example:
        >>> jnp.fromstring("1, 2, 3", dtype=int, sep=",")
        Array([1, 2, 3], dtype=int32)
    """
    return array(np.fromstring(string, np.dtype(dtype), count, sep=sep))


def _refused(name: str) -> Callable[..., Any]:
    def function(*_: Any, **__: Any) -> Any:
        """Refuses: what it reads may change.

        Source:     mirrors jax.numpy.{name}.

        Raises:
            NotImplementedError: always.

        Example:
            >>> jnp.{name}(...)
            Traceback (most recent call last):
                ...
            NotImplementedError: numpy.{name}: reads from outside, ...
        """
        problem = "reads from outside, which transformed functions must not."
        fix = f"minijax.numpy.asarray(numpy.{name}(...))"
        error(NotImplementedError, f"numpy.{name}", problem, fix=fix)

    return named(function, name)


fromfile = _refused("fromfile")
fromiter = _refused("fromiter")

dtypes.ScalarType.make_array = staticmethod(lambda value, dtype: asarray(value, dtype=dtype))
