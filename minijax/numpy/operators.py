"""The operators and methods of arrays and tracers: what `x + y`, `x.sum()` and `x.T` mean.

They are functions of this room, given to `core/operators.py` through its hook.  Two arrays, or an
array and a Python scalar, outside traces go straight to the C++ program of the function.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from minijax.core import dtypes, hooks, source
from minijax.core.errors import error
from minijax.core.native import Buffer
from minijax.core.refs import AbstractRef
from minijax.core.trace import Tracer
from minijax.lax import references, unary
from minijax.lax.creation import bitcast_convert_type, convert_element_type
from minijax.numpy import (
    contraction,
    creation,
    elementary,
    indexing,
    joining,
    logic,
    matrices,
    namespace,
    ordering,
    reductions,
    selection,
    shaping,
    updates,
)
from minijax.numpy.promotion import check_array, native_program, one_program, unchecked
from minijax.runtime import array
from minijax.runtime.annotations import ArrayLike, DTypeLike, Placement, ShardingLike
from minijax.runtime.array import Array, explain_deleted
from minijax.transforms.device_put import device_put

_FAST = frozenset((Buffer, bool, int, float, complex))
_OPERANDS = (Array, Tracer, np.ndarray, np.generic, bool, int, float, complex)

_Operator = Callable[[Any, Any], Any]


def _is_operand(x: object) -> bool:
    """Whether an operator takes `x`; other classes may know what to do with an array.

    Raises:
        TypeError: `x` is a list or a tuple, which NumPy would take for an array.
    """
    if isinstance(x, (list, tuple)):
        problem = "lists and tuples are no arrays."
        got = f"an operand of type {type(x).__name__}"
        fix = "numpy.asarray(x), or one of its elements"
        error(TypeError, "", problem, got=got, fix=fix)
    return isinstance(x, _OPERANDS) or hasattr(x, "__jax_array__")


def _binary(function: Callable[..., Any], name: str) -> dict[str, _Operator]:
    """An operator and its reflection, `__add__` and `__radd__`, from a function of two arrays."""
    body = getattr(function, "__wrapped__", function)
    # An exponent may be static: the function itself sees to that.
    native = function if function is elementary.power else native_program(body)
    made = function, body, native
    return {f"__{name}__": _operator(*made), f"__r{name}__": _operator(*made, True)}


def _operator(
    function: Callable[..., Any],
    body: Callable[..., Any],
    native: Callable[..., Any],
    is_reflected: bool = False,
) -> _Operator:
    @source.is_boundary
    def operate(self: Any, other: ArrayLike) -> Any:
        own, kind = type(self), type(other)
        if is_reflected:
            self, other = other, self
        try:
            try:
                if kind in _FAST or kind is own:
                    return native(self, other) if own is Buffer else body(self, other)
                if not _is_operand(self if is_reflected else other):
                    return NotImplemented
                return function(check_array("", self), check_array("", other))
            except ValueError as caught:
                explain_deleted(caught, self, other)
                raise
        except Exception as exception:
            again = unchecked()
            if again is None:
                source.filter_frames(exception)
                raise
        with again:
            return function(self, other)

    return operate


def _unary(function: Callable[..., Any]) -> Callable[[Any], Any]:
    body = getattr(function, "__wrapped__", function)
    native = native_program(body)

    @source.is_boundary
    def operate(self: Any) -> Any:
        try:
            try:
                return native(self) if type(self) is Buffer else body(self)
            except ValueError as caught:
                explain_deleted(caught, self)
                raise
        except Exception as exception:
            source.filter_frames(exception)
            raise

    return operate


def _round(self: Any, ndigits: int | None = None) -> Any:
    if ndigits is None:
        return creation.astype(elementary.round(self), int)
    return elementary.round(self, ndigits)


def _set_item(self: Any, index: object, value: object) -> None:
    if type(self.aval) is AbstractRef:
        references.set(self, index, value)
        return
    got = f"an assignment to elements of {self.aval}"
    error(TypeError, "indexing", "arrays do not change.", got=got, fix="x = x.at[index].set(value)")


def _contains(self: Any, item: ArrayLike) -> bool:
    if self.ndim != 1:
        problem = "only an array of one dimension can be searched."
        error(ValueError, "in", problem, got=str(self.aval))
    return bool(reductions.any(logic.equal(self, item)))


def _iterate(self: Any) -> Iterator[Any]:
    if self.ndim == 0:
        error(TypeError, "iter", "a scalar array has no elements.", got=str(self.aval))
    return iter(joining.unstack(self))


def _reshape(self: Any, *args: Any, order: str = "C", out_sharding: ShardingLike = None) -> Any:
    """Gives the array a new shape: `x.reshape(2, 3)` or `x.reshape((2, 3))`.

    Source:     mirrors jax.Array.reshape; see numpy.reshape.

    Example:
        >>> jnp.arange(6).reshape(2, -1)
        Array([[0, 1, 2],
               [3, 4, 5]], dtype=int32)
    """
    dims = args[0] if len(args) == 1 else args
    return shaping.reshape(self, dims, order, out_sharding=out_sharding)


def _transpose(self: Any, *args: Any) -> Any:
    """Permutes the axes: `x.transpose()`, `x.transpose(1, 0)` or `x.transpose((1, 0))`.

    Source:     mirrors jax.Array.transpose; see numpy.transpose.

    Example:
        >>> jnp.ones((2, 3, 4)).transpose(2, 0, 1).shape
        (4, 2, 3)
    """
    if not args:
        return shaping.transpose(self)
    axes = args[0] if len(args) == 1 and not isinstance(args[0], int) else args
    return shaping.transpose(self, axes)


def _flatten(self: Any, order: str = "C", *, out_sharding: ShardingLike = None) -> Any:
    """Flattens the array to one dimension.

    Source:     mirrors jax.Array.flatten; see numpy.ravel.

    Example:
        >>> jnp.array([[1, 2], [3, 4]]).flatten()
        Array([1, 2, 3, 4], dtype=int32)
    """
    return shaping.ravel(self, order, out_sharding=out_sharding)


def _astype(self: Any, dtype: DTypeLike, copy: bool = False, device: Placement = None) -> Any:
    """Converts the array to another dtype.

    Source:     mirrors jax.Array.astype; see numpy.astype.

    Example:
        >>> jnp.array([0.5, -1.5]).astype(int)
        Array([ 0, -1], dtype=int32)
    """
    return creation.astype(self, dtype, copy=copy, device=device)


def _clip(self: Any, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Any:
    """Limits the elements to the interval from `min` to `max`.

    Source:     mirrors jax.Array.clip; see numpy.clip.

    Example:
        >>> jnp.array([-3, 1, 7]).clip(0, 5)
        Array([0, 1, 5], dtype=int32)
    """
    return elementary.clip(self, min, max)


def _compress(self: Any, condition: ArrayLike, axis: int | None = None, **options: Any) -> Any:
    """Returns the slices along `axis` where a condition is true.

    Source:     mirrors jax.Array.compress; see numpy.compress.

    Example:
        >>> jnp.array([1, 2, 3]).compress(jnp.array([True, False, True]))
        Array([1, 3], dtype=int32)
    """
    return selection.compress(condition, self, axis, **options)


def _copy(self: Any) -> Any:
    """Returns a copy of the array in memory of its own.

    Source:     mirrors jax.Array.copy; see numpy.copy.

    Example:
        >>> x = jnp.array([1, 2])
        >>> y = x.copy()
        >>> x.delete()  # does not touch y
        >>> y
        Array([1, 2], dtype=int32)
    """
    return creation.copy(self)


@one_program(static=("dtype",))
def _bits_as(x: Any, dtype: Any) -> Any:
    """Reads the bits of `x` as elements of another width; the last dimension grows or shrinks."""
    old, new = dtypes.bit_width(x.dtype), dtypes.bit_width(dtype)
    if x.dtype == dtypes.bool_:
        x = convert_element_type(x, dtypes.uint8)
    if dtype == dtypes.bool_:
        return logic.not_equal(_bits_as(x, dtypes.uint8), 0)
    if old == new:
        return bitcast_convert_type(x, dtype)
    if old < new and x.shape[-1] * old % new:
        problem = "the last dimension does not hold whole elements of the new dtype."
        error(ValueError, "view", problem, got={"x": x.aval, "dtype": dtype})
    *outer, last = x.shape
    if old > new:
        parts = bitcast_convert_type(x, dtype)
        return shaping.reshape(parts, (*outer, last * old // new))
    groups = shaping.reshape(x, (*outer, last * old // new, new // old))
    return bitcast_convert_type(groups, dtype)


def _view(self: Any, dtype: DTypeLike | None = None, type: None = None) -> Any:
    """Reinterprets the bits of the array as elements of another dtype.

    Shapes:     T[..., n] -> dtype[..., m] of as many bits.
    Source:     mirrors jax.Array.view.

    Raises:
        NotImplementedError: `type` is given.
        ValueError: the last dimension does not hold whole elements of the new dtype.

    Example:
        >>> jnp.array([1.0, -2.0]).view(jnp.uint32) == jnp.array([0x3F800000, 0xC0000000])
        Array([ True,  True], dtype=bool)
    """
    if type is not None:
        error(NotImplementedError, "view", "only `dtype` is understood.", got="type=...")
    if isinstance(dtype, (int, tuple)):
        problem = "the argument is the dtype to read the elements as."
        error(TypeError, "view", problem, got=repr(dtype), fix=f"x.reshape({dtype})")
    dtype = creation.dtype_argument("view", dtype, dtypes.default_float_dtype())
    if self.ndim == 0:
        if dtypes.bit_width(self.dtype) != dtypes.bit_width(np.dtype(dtype)):
            problem = "a scalar can be read as an element of the same width alone."
            error(ValueError, "view", problem, got={"x": self.aval, "dtype": dtype})
        return _view(self[None], dtype)[0]
    if any(dtypes.issubdtype(d, np.complexfloating) for d in (self.dtype, dtype)):
        if dtype == self.dtype:
            return self
        return _complex_view(self, dtype)
    return _bits_as(self, dtype)


def _byteswap(self: Any) -> Any:
    """Each element, or each part of a complex one, with its bytes in the opposite order.

    Source:     mirrors jax.Array.byteswap.

    Example:
        >>> jnp.array([1, 256], jnp.int16).byteswap()
        Array([256,   1], dtype=int16)
    """
    if dtypes.issubdtype(self.dtype, np.complexfloating):
        parts = _view(self.reshape(-1), dtypes.real_dtype_of(self.dtype))
        return _view(_byteswap(parts), self.dtype).reshape(self.shape)
    if dtypes.bit_width(self.dtype) <= 8:
        return self
    return bitcast_convert_type(bitcast_convert_type(self, dtypes.uint8)[..., ::-1], self.dtype)


def _complex_view(x: Any, dtype: Any) -> Any:
    """Complex numbers as pairs of their parts, and the other way round."""
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        pairs = joining.stack([elementary.real(x), elementary.imag(x)], -1)
        return _view(shaping.reshape(pairs, (*x.shape[:-1], -1)), dtype)
    parts = _view(x, dtypes.real_dtype_of(dtype))
    if parts.shape[-1] % 2:
        problem = "the last dimension does not hold pairs of parts."
        expected = "twice as many real numbers as there will be complex ones"
        error(ValueError, "view", problem, got={"array": x.aval, "dtype": dtype}, expected=expected)
    pairs = shaping.reshape(parts, (*parts.shape[:-1], -1, 2))
    return unary.complex(pairs[..., 0], pairs[..., 1])


def _to_device(self: Any, device: Placement, *, stream: object = None) -> Any:
    """Moves the array to a device, or splits it as a sharding says.

    Source:     mirrors jax.Array.to_device; see device_put.

    Raises:
        NotImplementedError: `stream` is given.

    Example:
        >>> x = jnp.arange(3).to_device(jax.devices()[1])
        >>> x.device.id
        1
    """
    if stream is not None:
        error(NotImplementedError, "to_device", "streams are not understood.")
    return device_put(self, device)


def _array_namespace(self: Any, *, api_version: str | None = None) -> Any:
    if api_version not in {None, "2021.12", "2022.12", "2023.12", namespace.__array_api_version__}:
        problem = "this version is not known."
        got = f"api_version: {api_version!r}"
        expected = f"None or {namespace.__array_api_version__!r}"
        error(ValueError, "__array_namespace__", problem, got=got, expected=expected)
    return sys.modules["minijax.numpy"]


def _item_size(self: Any) -> int:
    """Returns the size of one element in bytes.

    Example:
        >>> jnp.ones(3, jnp.bfloat16).itemsize
        2
    """
    return self.dtype.itemsize


def _byte_count(self: Any) -> int:
    """Returns the size of all elements in bytes.

    Example:
        >>> jnp.ones((2, 3)).nbytes
        24
    """
    return self.size * self.dtype.itemsize


def _flat(self: Any) -> NoReturn:
    """Refuses: elements of arrays on devices are not visited one by one."""
    problem = "arrays have no iterator over all elements."
    error(NotImplementedError, "flat", problem, fix="x.ravel()")


_ARITHMETIC = {
    "add": (elementary.add, "+"),
    "sub": (elementary.subtract, "-"),
    "mul": (elementary.multiply, "*"),
    "truediv": (elementary.divide, "/"),
    "floordiv": (elementary.floor_divide, "//"),
    "mod": (elementary.remainder, "%"),
    "pow": (elementary.power, "**"),
    "divmod": (elementary.divmod, "divmod"),
    "matmul": (contraction.matmul, "@"),
    "and": (logic.bitwise_and, "&"),
    "or": (logic.bitwise_or, "|"),
    "xor": (logic.bitwise_xor, "^"),
    "lshift": (logic.left_shift, "<<"),
    "rshift": (logic.right_shift, ">>"),
}

_COMPARISONS = {
    "eq": (logic.equal, "=="),
    "ne": (logic.not_equal, "!="),
    "lt": (logic.less, "<"),
    "le": (logic.less_equal, "<="),
    "gt": (logic.greater, ">"),
    "ge": (logic.greater_equal, ">="),
}

_UNARY = {
    "__neg__": (elementary.negative, "-"),
    "__pos__": (elementary.positive, "+"),
    "__abs__": (elementary.absolute, "abs"),
    "__invert__": (logic.bitwise_not, "~"),
}

SIGNS = {
    function.__name__: sign
    for function, sign in (*_ARITHMETIC.values(), *_COMPARISONS.values(), *_UNARY.values())
}
"""By the name of a function, how texts show its operator: `core/source.py` looks here."""

_SPECIAL: dict[str, Any] = {
    "__round__": _round,
    "__getitem__": indexing.getitem,
    "__setitem__": _set_item,
    "__contains__": _contains,
    "__iter__": _iterate,
    "__array_namespace__": _array_namespace,
}

_METHODS = {
    "astype": _astype,
    "byteswap": _byteswap,
    "clip": _clip,
    "clone": _copy,
    "compress": _compress,
    "conj": elementary.conjugate,
    "copy": _copy,
    "flatten": _flatten,
    "reshape": _reshape,
    "to_device": _to_device,
    "transpose": _transpose,
    "view": _view,
}

_FUNCTIONS = {
    contraction: "dot",
    elementary: "conjugate round",
    matrices: "diagonal trace",
    ordering: "argpartition argsort searchsorted sort",
    reductions: "all any argmax argmin cumprod cumsum max mean min prod ptp std sum var",
    selection: "choose nonzero take",
    shaping: "ravel repeat squeeze swapaxes",
}
"""The functions that are methods too, under the same names."""

_PROPERTIES: dict[str, Callable[[Any], Any]] = {
    "T": shaping.transpose,
    "at": updates.at,
    "flat": _flat,
    "imag": elementary.imag,
    "itemsize": _item_size,
    "mT": shaping.matrix_transpose,
    "nbytes": _byte_count,
    "real": elementary.real,
}


def fill() -> None:
    """Gives arrays and tracers their operators and methods."""
    found: dict[str, Any] = {**_SPECIAL, **_METHODS}
    for module, names in _FUNCTIONS.items():
        found |= {name: getattr(module, name) for name in names.split()}
    found = {name: source.boundary(function) for name, function in found.items()}
    for name, (function, _) in _ARITHMETIC.items():
        found |= _binary(function, name)
    for name, (function, _) in _COMPARISONS.items():
        # Python finds the reflected comparison itself.
        found[f"__{name}__"] = _binary(function, name)[f"__{name}__"]
    found |= {name: _unary(function) for name, (function, _) in _UNARY.items()}
    found |= {name: property(source.boundary(function)) for name, function in _PROPERTIES.items()}
    hooks.fill_operators(found)
    array.carry()


fill()
