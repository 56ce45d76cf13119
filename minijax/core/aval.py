"""Avals: the types of values.  Interned, so that equality is identity and hashing is free.

Input: shapes, dtypes, Python values.  Output: the type that tracers, variables and arrays carry.

`docs/reading.md`: the first of twelve files; `core/jaxpr.py` is next.
"""

from __future__ import annotations

import math
import operator
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from minijax.core import dtypes
from minijax.core.cache import Cache
from minijax.core.dtypes import DType
from minijax.core.errors import error
from minijax.core.meshes import Space
from minijax.core.operators import AxisName
from minijax.core.value_placement import (
    NOT_MANUAL,
    ManualAxisType,
    PlacedArrayType,
    PlacedType,
    ValuePlacement,
    make_placement,
    with_manual_type,
)

Shape = tuple[int, ...]


class Typed:
    """What a value tells of its type, `aval`."""

    __slots__ = ()

    aval: AbstractValue

    @property
    def shape(self) -> Shape:
        """The dimensions."""
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.aval.size

    @property
    def weak_type(self) -> bool:
        """Whether the dtype gives way to that of other operands.

        Example:
            >>> jnp.asarray(2.0).weak_type, jnp.array([2.0]).weak_type
            (True, False)
        """
        return self.aval.weak_type


zeros: Callable[[AbstractValue], Any] = NotImplemented
"""A value of zeros of some type; `hooks.fill_zeros` sets it."""


class AbstractValue(PlacedType):
    """Base of all types of values.

    Attributes:
        is_extended: whether the dtype is one that XLA does not know, such as that of random keys.
        is_plain: whether the type has no placement, so that traces need not look at it.

    Example:
        >>> isinstance(jax.typeof(1.0), jax.core.AbstractValue)
        True
    """

    __slots__ = ()
    is_extended = False
    is_plain = True

    if TYPE_CHECKING:
        # Types without elements, such as those of tokens, have none of these.
        @property
        def shape(self) -> Shape: ...
        @property
        def dtype(self) -> Any: ...
        @property
        def ndim(self) -> int: ...
        @property
        def size(self) -> int: ...
        @property
        def weak_type(self) -> bool: ...
        def with_shape(self, shape: Shape) -> Self: ...
        def without_dim(self, dim: int) -> Self: ...
        def with_dim(self, dim: int, size: int, entry: object = None) -> Self: ...
        def update(self, **changes: Any) -> Self: ...
        @property
        def sharding(self) -> Any: ...
        @property
        def vma(self) -> frozenset[AxisName]: ...
        def __len__(self) -> int: ...

    def tangent_aval(self) -> AbstractValue:
        """The type of this type's tangents."""
        error(TypeError, "aval", f"{self} has no tangent type.")

    def cotangent_aval(self) -> AbstractValue:
        """The type of this type's cotangents."""
        return self.tangent_aval()

    def strip_weak_type(self) -> AbstractValue:
        """The same type, no longer weak."""
        return self

    def str_short(self) -> str:
        """The type in jaxpr notation."""
        return repr(self)


class AbstractToken(AbstractValue):
    """The type of tokens, which order side effects.

    Example:
        >>> isinstance(jax.typeof(lax.create_token()), jax.extend.core.AbstractToken)
        True
    """

    __slots__ = ()
    is_extended = True

    def tangent_aval(self) -> AbstractValue:
        return self

    def str_short(self) -> str:
        return "Tok"

    def __repr__(self) -> str:
        return "Token()"


abstract_token = AbstractToken()


class AbstractTodo(AbstractValue):
    """The type of the handle that an asynchronous operation returns; its result is an `inner_aval`.

    Equal types are the same object.
    """

    __slots__ = ("__weakref__", "inner_aval")

    inner_aval: ShapedArray

    def __new__(cls, inner_aval: ShapedArray) -> AbstractTodo:
        made = object.__new__(cls)
        made.inner_aval = inner_aval
        with _making:
            return _todos.setdefault(inner_aval, made)

    @property
    def manual_axis_type(self) -> ManualAxisType:  # type: ignore[override]
        """The manual axis type that the value will have."""
        return self.inner_aval.manual_axis_type

    @property
    def is_plain(self) -> bool:  # type: ignore[override]
        """Whether the type has no placement."""
        return self.manual_axis_type is NOT_MANUAL

    def with_manual_type(self, kind: ManualAxisType) -> AbstractTodo:
        return AbstractTodo(self.inner_aval.with_manual_type(kind))

    def str_short(self) -> str:
        return f"AbstractTodo{{{self.inner_aval.str_short()}}}"

    def __repr__(self) -> str:
        return f"AbstractTodo({self.inner_aval!r})"

    def __str__(self) -> str:
        return self.str_short()

    def __reduce__(self) -> tuple[object, ...]:
        return AbstractTodo, (self.inner_aval,)


_types = Cache(
    "types",
    "types of values, each one object",
    key="shape, dtype, weak type, placement",
    emptied=True,
    counted=False,
)
result_types = Cache(
    "result types",
    "types of results, of primitives whose rule for them is slow",
    key="the operands' types, and parameters",
    emptied=True,
    counted=False,
)
_todos: weakref.WeakValueDictionary[ShapedArray, AbstractTodo] = _types.interned()


class ShapedArray(PlacedArrayType, AbstractValue):
    """The type of arrays: shape, dtype, weak type, placement.

    Hash-consed: calling the class twice with the same facts gives the same object.  `placement` is
    None for nearly all values; its parts are attributes too, see `core/value_placement.py`.

    Example:
        >>> aval = jax.core.ShapedArray((2, 3), jnp.float32)
        >>> aval, aval is jax.typeof(jnp.zeros((2, 3)))
        (ShapedArray(float32[2,3]), True)
    """

    __slots__ = (
        "__weakref__",
        "_tangent",
        "dtype",
        "is_extended",
        "is_plain",
        "ndim",
        "shape",
        "size",
        "weak_type",
    )

    shape: Shape
    # With `is_extended` an `ExtendedDType`.
    dtype: np.dtype[Any]
    weak_type: bool
    ndim: int
    size: int
    is_extended: bool
    is_plain: bool
    _tangent: ShapedArray | None

    def __new__(
        cls,
        shape: Iterable[object],
        dtype: Any,
        weak_type: bool = False,
        *,
        sharding: Any = None,
        manual_axis_type: ManualAxisType = NOT_MANUAL,
        memory_kind: str | None = None,
        memory_space: Space | None = None,
    ) -> ShapedArray:
        if not dtypes.is_extended(dtype):
            dtype = np.dtype(dtype)
        placement = make_placement(sharding, manual_axis_type, memory_kind, memory_space)
        return shaped_array(canonicalize_shape(shape), dtype, bool(weak_type), placement)

    def update(self, **changes: Any) -> ShapedArray:
        """This type with some facts replaced; parts of the placement are facts too."""
        facts = {"shape": self.shape, "dtype": self.dtype, "weak_type": self.weak_type, **changes}
        if self.placement is not None:
            facts = {**self.placement.facts(), **facts}
        return ShapedArray(**facts)

    def with_placement(self, placement: ValuePlacement | None) -> ShapedArray:
        """This type with another placement."""
        if placement is self.placement:
            return self
        return shaped_array(self.shape, self.dtype, self.weak_type, placement)

    def with_manual_type(self, kind: ManualAxisType) -> ShapedArray:
        return self.with_placement(with_manual_type(self.placement, kind))

    def with_shape(self, shape: Shape) -> ShapedArray:
        """This type with another shape, a tuple of ints, of which no dimension is partitioned."""
        placement = self.placement
        if placement is not None:
            placement = placement.unpartitioned()
        return shaped_array(shape, self.dtype, self.weak_type, placement)

    def without_dim(self, dim: int) -> ShapedArray:
        """This type without a dimension; the others stay partitioned as they are."""
        placement = self.placement
        if placement is not None:
            placement = placement.without_dim(dim)
        shape = self.shape[:dim] + self.shape[dim + 1 :]
        return shaped_array(shape, self.dtype, self.weak_type, placement)

    def with_dim(self, dim: int, size: int, entry: object = None) -> ShapedArray:
        """This type with a new dimension, which is partitioned as `entry` of a spec says."""
        placement = self.placement
        if placement is not None:
            placement = placement.with_dim(dim, entry)
        shape = (*self.shape[:dim], size, *self.shape[dim:])
        return shaped_array(shape, self.dtype, self.weak_type, placement)

    def strip_weak_type(self) -> ShapedArray:
        return self.update(weak_type=False) if self.weak_type else self

    def tangent_aval(self) -> ShapedArray:
        if self._tangent is None:
            if dtypes.issubdtype(self.dtype, np.inexact):
                self._tangent = self.strip_weak_type()
            else:
                self._tangent = self.update(dtype=dtypes.float0, weak_type=False)
        return self._tangent

    # Names of JAX.
    at_least_vspace = to_tangent_aval = tangent_aval

    def cotangent_aval(self) -> ShapedArray:
        """The type of this type's cotangents, which may be placed elsewhere than tangents."""
        tangent = self.tangent_aval()
        if self.placement is None:
            return tangent
        return tangent.with_placement(self.placement.of_cotangents())

    def str_short(self) -> str:
        return f"{dtypes.short_name(self.dtype)}{self._shape_text()}"

    def _shape_text(self) -> str:
        if self.placement is not None:
            return self.placement.format_shape(self.shape)
        return f"[{','.join(map(str, self.shape))}]"

    def __len__(self) -> int:
        if not self.shape:
            error(TypeError, "len", "the array has no dimensions.", got=str(self))
        return self.shape[0]

    def __str__(self) -> str:
        return ("~" if self.weak_type else "") + self.str_short()

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        dtype = getattr(self.dtype, "name", self.dtype)
        return f"ShapedArray({dtype}{self._shape_text()}{weak})"

    def __reduce__(self) -> tuple[object, ...]:
        return shaped_array, (self.shape, self.dtype, self.weak_type, self.placement)


_interned: dict[tuple[object, ...], ShapedArray] = _types.table()
# The types in use, which stay when the table above is emptied: one type is never two objects.
_living: weakref.WeakValueDictionary[tuple[object, ...], ShapedArray] = _types.interned()
_making = threading.RLock()
_new = object.__new__


def shaped_array(
    shape: Shape,
    dtype: Any,
    weak_type: bool = False,
    placement: ValuePlacement | None = None,
) -> ShapedArray:
    """The type of an array; `shape` must be a tuple of ints and `dtype` canonical."""
    key = (shape, dtype, weak_type, placement)
    aval = _interned.get(key)
    return _build(key, shape, dtype, weak_type, placement) if aval is None else aval


def _build(
    key: tuple[object, ...],
    shape: Shape,
    dtype: DType,
    weak_type: bool,
    placement: ValuePlacement | None,
) -> ShapedArray:
    aval = _new(ShapedArray)
    aval.shape = shape
    aval.dtype = cast("np.dtype[Any]", dtype)
    aval.weak_type = weak_type
    aval._set_placement(placement)
    aval.ndim = len(shape)
    aval.size = math.prod(shape)
    # An element has 16 bytes at most; where there is none, the other dimensions may be too large.
    if not 0 < int(aval.size) <= MOST_BYTES // 16:
        check_size("", shape, dtype)
    aval.is_extended = dtypes.is_extended(dtype)
    aval.is_plain = placement is None
    aval._tangent = None
    with _making:
        return _interned.setdefault(key, _living.setdefault(key, aval))


MOST_BYTES = 2**53
"""The size of the largest array there can be, more than the memory of the largest machines.  XLA
adds up the bytes of all arrays of a program, and of copies in wider dtypes, in 64 bits, and ends
the process where these do not suffice."""


def check_size(name: str, shape: Iterable[int], dtype: DType) -> None:
    """Refuses arrays that no memory can hold.

    Raises:
        ValueError: it is one.
    """
    shape = tuple(shape)
    bytes_needed = math.prod(max(d, 1) for d in shape) * max(dtype.itemsize, 1)
    if bytes_needed > MOST_BYTES:
        problem = f"an array of {bytes_needed:,} bytes is larger than any memory."
        got = f"{dtypes.short_name(dtype)}[{','.join(map(str, shape))}]"
        error(ValueError, name, problem, got=got, expected=f"at most {MOST_BYTES:,} bytes")


ShapedArray.__hash__ = object.__hash__  # type: ignore[method-assign]


def whole_number(n: Any) -> int:
    """An integer as a Python int; a size that is a symbol is more than its number, and stays."""
    return n if isinstance(n, int) and not isinstance(n, bool) else operator.index(n)


def canonicalize_shape(shape: Any, name: str = "shape") -> Shape:
    """A shape as a tuple of Python ints.

    Raises:
        TypeError: a dimension is traced, negative or not an integer.
    """
    if type(shape) is tuple and all(type(d) is int and d >= 0 for d in shape):
        return shape
    if isinstance(shape, (int, np.integer)) or not np.iterable(shape):
        shape = (shape,)
    try:
        dims = tuple(map(whole_number, shape))
    except TypeError as caught:
        if type(caught) is not TypeError:
            raise
        problem = "shapes must be sequences of concrete integers."
        fix = "integers, such as n // 2 in place of n / 2"
        error(TypeError, name, problem, got=str(shape), fix=fix, cause=None)
    if any(d < 0 for d in dims):
        error(TypeError, name, "dimensions must not be negative.", got=str(dims))
    return dims


# Python scalars are weakly typed; bool is not.
_scalar_avals: dict[tuple[type, bool], ShapedArray] = _types.table()


def _aval_of_python_scalar(x: Any) -> ShapedArray:
    kind = type(x)
    if kind not in dtypes.python_scalar_dtypes:
        # Such as members of an IntEnum.
        kind = next(base for base in kind.__mro__ if base in dtypes.python_scalar_dtypes)
    dtype = dtypes.canonicalize_dtype(dtypes.python_scalar_dtypes[kind])
    if kind is int and not -(2**31) <= x < 2**31:
        problem = f"the Python int {x} does not fit into {dtype}."
        if not -(2**63) <= x < 2**63:
            error(OverflowError, "", problem, fix="use a float")
        if dtype.itemsize == 4:
            fix = "a uint32 or float array, or minijax.config.update('enable_x64', True)"
            error(OverflowError, "", problem, fix=fix)
    return shaped_array((), dtype, kind is not bool)


def _aval_of_numpy(x: Any) -> ShapedArray:
    dtype = x.dtype
    if not dtype.isnative:
        problem = "the bytes of the elements are not in this machine's order."
        fix = "x.astype(x.dtype.newbyteorder('='))"
        error(TypeError, "", problem, got=f"NumPy {type(x).__name__} of dtype {dtype.str}", fix=fix)
    if dtype.hasobject or dtype.kind in "USMm" or (dtype.kind == "V" and not _is_extra(dtype)):
        problem = "not a type of array that can be computed with."
        got = f"NumPy {type(x).__name__} of dtype {dtype}"
        expected = "booleans, integers, floats or complex numbers"
        error(TypeError, "", problem, got=got, expected=expected)
    return shaped_array(x.shape, dtypes.canonicalize_dtype(dtype), False)


def _is_extra(dtype: DType) -> bool:
    return dtype == dtypes.float0 or dtypes.issubdtype(dtype, np.number)


aval_handlers: dict[type, Callable[[Any], AbstractValue]] = {
    **dict.fromkeys((bool, int, float, complex), _aval_of_python_scalar),
    np.ndarray: _aval_of_numpy,
    np.generic: _aval_of_numpy,
}
"""How to read the type of a value, by the value's class.  The runtime adds `Array`."""


def aval_of(x: object) -> AbstractValue:
    """The type of `x`: of an array, a tracer, a NumPy array or scalar, or a Python scalar.

    Raises:
        TypeError: `x` is none of these.
        ValueError: `x` is a masked array.
    """
    handler = aval_handlers.get(type(x))
    if handler is not None:
        return handler(x)
    return _aval_of_other(x)


def has_aval(x: object) -> bool:
    """Whether `x` is a value that can be computed with."""
    try:
        aval_of(x)
    except TypeError:
        return False
    return True


def _aval_of_other(x: Any) -> AbstractValue:
    if isinstance(x, np.ndarray) and hasattr(x, "filled"):
        problem = "masked arrays cannot be computed with."
        fix = "x.filled(value) puts a value where the mask is set"
        error(ValueError, "", problem, got=f"NumPy {type(x).__name__} of shape {x.shape}", fix=fix)
    for base in type(x).__mro__:
        handler = aval_handlers.get(base)
        if handler is not None:
            aval_handlers[type(x)] = handler
            return handler(x)
    if hasattr(x, "__jax_array__"):
        return aval_of(x.__jax_array__())
    problem = "not a valid type of value."
    expected = "an array, or a Python or NumPy scalar"
    error(TypeError, "", problem, got=shown(x), expected=expected)


def shown(x: object) -> str:
    """A value and its type, for texts; of a list of arrays, their types."""
    kind = type(x).__name__
    if isinstance(x, list | tuple) and any(hasattr(item, "aval") for item in x):
        return f"a {kind} of {', '.join(str(getattr(item, 'aval', item)) for item in x)}"
    return f"{x!r} of type {kind}"
