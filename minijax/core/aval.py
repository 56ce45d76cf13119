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
from typing import NamedTuple

import numpy as np

from minijax.core import dtypes, meshes
from minijax.core.cache import Cache
from minijax.core.dtypes import DType
from minijax.core.errors import error
from minijax.core.meshes import names_of
from minijax.core.operators import Aval, ElementType, Operand, Param, Sharding, Value

Shape = tuple[int, ...]

NO_AXES: frozenset[str] = frozenset()


class ManualAxisType(NamedTuple):
    """Which mesh axes a value varies over, is unreduced over, or is reduced over.

    Example:
        >>> def f(x):
        ...     print(jax.typeof(x).manual_axis_type)
        ...     return x
        >>> mesh, P = jax.make_mesh((8,), ("x",)), jax.P
        >>> _ = jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(jnp.arange(8))
        ManualAxisType(varying=frozenset({'x'}), unreduced=frozenset(), reduced=frozenset())
    """

    varying: frozenset[str] = NO_AXES
    unreduced: frozenset[str] = NO_AXES
    reduced: frozenset[str] = NO_AXES


class Typed:
    """What a value tells of its type, `aval`."""

    __slots__ = ()

    aval: Aval

    @property
    def shape(self) -> Shape:
        """The dimensions."""
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype[Param]:
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


NOT_MANUAL = ManualAxisType()


def manual_type(
    varying: Iterable[str] = (), unreduced: Iterable[str] = (), reduced: Iterable[str] = ()
) -> ManualAxisType:
    """The type of a value that varies over some mesh axes, and is a sum over others.

    Raises:
        ValueError: an axis is in two of the sets.
    """
    v, u, r = key = frozenset(varying), frozenset(unreduced), frozenset(reduced)
    known = _manual_types.get(key)
    if known is not None:
        return known
    twice = (v & u) | (v & r) | (u & r)
    if twice:
        error(
            ValueError,
            "ManualAxisType",
            "an axis must be varying, unreduced, reduced, or none of these.",
            got=f"varying {sorted(v, key=str)}, unreduced {sorted(u, key=str)}, "
            f"reduced {sorted(r, key=str)}: {sorted(twice, key=str)} twice",
        )
    return _manual_types.setdefault(key, ManualAxisType(*key))


_manual_types: dict[tuple[frozenset[str], ...], ManualAxisType] = {NOT_MANUAL: NOT_MANUAL}


whole_sharding: Callable[[int], Sharding] = NotImplemented
"""The sharding of a value of some rank that nothing splits; `hooks.fill_whole_sharding` sets it."""


zeros: Callable[[Aval], Operand] = NotImplemented
"""A value of zeros of some type; `hooks.fill_zeros` sets it."""


class AbstractValue:
    """Base of all types of values.

    Attributes:
        is_extended: whether the dtype is one that XLA does not know, such as that of random keys.
        is_plain: whether the type says nothing of where its values are: traces then need not look.
        split: how Explicit mesh axes split the value; None where none does.
        memory_kind: the memory it lives in; None for the devices' own.

    Example:
        >>> isinstance(jax.typeof(1.0), jax.core.AbstractValue)
        True
    """

    __slots__ = ()
    is_extended = False
    is_plain = True
    split: Sharding = None
    memory_kind: str | None = None

    manual_axis_type: ManualAxisType = NOT_MANUAL

    def tangent_aval(self) -> AbstractValue:
        """The type of this type's tangents."""
        error(TypeError, "aval", f"{self} has no tangent type.")

    def cotangent_aval(self) -> AbstractValue:
        """The type of this type's cotangents."""
        return self.tangent_aval()

    def strip_weak_type(self) -> AbstractValue:
        """The same type, no longer weak."""
        return self

    def with_manual_type(self, kind: ManualAxisType) -> AbstractValue:
        """This type over mesh axes of other kinds; types that speak of no axes stay as they are."""
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
    """The type of what an operation that has started only will give, a value of type `inner_aval`.

    Equal types are the same object.
    """

    __slots__ = ("__weakref__", "inner_aval")

    inner_aval: Aval

    def __new__(cls, inner_aval: ShapedArray) -> AbstractTodo:
        made = object.__new__(cls)
        made.inner_aval = inner_aval
        with _making:
            return _todos.setdefault(inner_aval, made)

    @property
    def manual_axis_type(self) -> ManualAxisType:  # type: ignore[override]
        """Over which mesh axes the value will vary."""
        return self.inner_aval.manual_axis_type

    @property
    def is_plain(self) -> bool:  # type: ignore[override]
        """Whether its type says nothing of where the value will be."""
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


class ShapedArray(AbstractValue):
    """The type of arrays: shape, dtype, weak type, placement.

    Hash-consed: calling the class twice with the same facts gives the same object.
    `split` is None, or a `NamedSharding` over an abstract mesh, as `sharding.rules` makes it; users
    ask for `sharding`, which is never None.

    Example:
        >>> aval = jax.core.ShapedArray((2, 3), jnp.float32)
        >>> aval, aval is jax.typeof(jnp.zeros((2, 3)))
        (ShapedArray(float32[2,3]), True)
    """

    __slots__ = (
        *("__weakref__", "_tangent", "dtype", "is_extended", "is_plain", "manual_axis_type"),
        *("memory_kind", "ndim", "shape", "size", "split", "weak_type"),
    )

    shape: Shape
    dtype: ElementType
    weak_type: bool
    manual_axis_type: ManualAxisType
    ndim: int
    size: int
    is_extended: bool
    is_plain: bool
    _tangent: ShapedArray | None

    def __new__(
        cls,
        shape: Iterable[object],
        dtype: ElementType,
        weak_type: bool = False,
        *,
        sharding: Sharding = None,
        manual_axis_type: ManualAxisType = NOT_MANUAL,
        memory_kind: str | None = None,
        memory_space: meshes.Space | None = None,
    ) -> ShapedArray:
        if memory_space is not None:
            memory_kind = memory_space.special_memory_kind
        if not dtypes.is_extended(dtype):
            dtype = np.dtype(dtype)
        if sharding is not None and sharding.mesh.empty:
            sharding = None
        if manual_axis_type is not NOT_MANUAL:
            manual_axis_type = manual_type(*manual_axis_type)
        return _intern(
            canonicalize_shape(shape),
            dtype,
            bool(weak_type),
            sharding,
            manual_axis_type,
            memory_kind,
        )

    @property
    def sharding(self) -> Sharding:
        """How the value is split, with an entry for each dimension.

        A `NamedSharding` over an abstract mesh: where nothing is split, the mesh in force.
        """
        return self.split if self.split is not None else whole_sharding(self.ndim)

    @property
    def memory_space(self) -> meshes.Space:
        """The memory that the value lives in: that of devices, or of their host."""
        return meshes.Space.Device if self.memory_kind is None else meshes.Space.Host

    @property
    def vma(self) -> frozenset[str]:
        """The mesh axes over which the value may differ from device to device."""
        return self.manual_axis_type.varying

    def update(self, **changes: Param) -> ShapedArray:
        """This type with some facts replaced."""
        facts = {
            "shape": self.shape,
            "dtype": self.dtype,
            "weak_type": self.weak_type,
            "sharding": self.split,
            "manual_axis_type": self.manual_axis_type,
            "memory_kind": self.memory_kind,
        }
        return ShapedArray(**{**facts, **changes})

    def with_shape(self, shape: Shape) -> ShapedArray:
        """This type with another shape, given as a tuple of ints, and unsharded."""
        return _intern(
            shape, self.dtype, self.weak_type, None, self.manual_axis_type, self.memory_kind
        )

    def without_dim(self, dim: int) -> ShapedArray:
        """This type without a dimension; the others stay split as they are."""
        shape = self.shape[:dim] + self.shape[dim + 1 :]
        if self.split is None:
            return self.with_shape(shape)
        return self._with_entries(shape, lambda e: (*e[:dim], *e[dim + 1 :]))

    def with_dim(self, dim: int, size: int, entry: object = None) -> ShapedArray:
        """This type with a new dimension, split as `entry` says; the others stay as they are."""
        shape = (*self.shape[:dim], size, *self.shape[dim:])
        if self.split is None:
            return self.with_shape(shape)
        return self._with_entries(shape, lambda e: (*e[:dim], entry, *e[dim:]))

    def _with_entries(
        self, shape: Shape, change: Callable[[tuple[object, ...]], tuple[object, ...]]
    ) -> ShapedArray:
        sharding = self.split
        spec = sharding.spec.with_entries(change(tuple(sharding.spec)))
        is_split = any(map(names_of, spec)) or spec.unreduced or spec.reduced
        found = sharding.with_spec(spec) if is_split else None
        return self.update(shape=shape, sharding=found)

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
        """As `tangent_aval`; what is unreduced is reduced there, and the other way round."""
        varying, unreduced, reduced = self.manual_axis_type
        tangent = self.tangent_aval()
        if not (unreduced or reduced):
            return tangent
        return tangent.update(manual_axis_type=manual_type(varying, reduced, unreduced))

    def with_manual_type(self, kind: ManualAxisType) -> ShapedArray:
        """This type over mesh axes of other kinds."""
        if self.manual_axis_type is kind:
            return self
        return _intern(self.shape, self.dtype, self.weak_type, self.split, kind, self.memory_kind)

    def str_short(self) -> str:
        return f"{dtypes.short_name(self.dtype)}{self._shape_text()}"

    def _shape_text(self) -> str:
        varying, unreduced, reduced = self.manual_axis_type
        dims: Iterable[str] = map(str, self.shape)
        if self.split is not None:
            spec = self.split.spec
            dims = [
                f"{size}@{meshes.axes_text(names)}" if names else str(size)
                for size, names in zip(self.shape, spec.dims(self.ndim), strict=True)
            ]
            unreduced, reduced = unreduced | spec.unreduced, reduced | spec.reduced
        kinds = ("V", varying), ("U", unreduced), ("R", reduced)
        shown = [f"{k}:{meshes.axes_text(sorted(axes, key=str))}" for k, axes in kinds if axes]
        memory = "" if self.memory_kind is None else "<host>"
        return f"{memory}[{','.join(dims)}]" + (f"{{{', '.join(shown)}}}" if shown else "")

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
        placed = self.split, self.manual_axis_type, self.memory_kind
        return _unpickle, (self.shape, self.dtype, self.weak_type, *placed)


_interned: dict[tuple[object, ...], ShapedArray] = _types.table()
# The types in use, which stay when the table above is emptied: one type is never two objects.
_living: weakref.WeakValueDictionary[tuple[object, ...], ShapedArray] = _types.interned()
_making = threading.RLock()
_new = object.__new__


def _intern(
    shape: Shape,
    dtype: DType,
    weak_type: bool,
    sharding: object,
    manual_axis_type: ManualAxisType,
    memory_kind: str | None,
) -> ShapedArray:
    if sharding is None and manual_axis_type is NOT_MANUAL and memory_kind is None:
        return shaped_array(shape, dtype, weak_type)
    key = (shape, dtype, weak_type, sharding, manual_axis_type, memory_kind)
    aval = _interned.get(key)
    return _build(key, *key) if aval is None else aval


def _unpickle(*facts: Param) -> ShapedArray:
    shape, dtype, weak_type, sharding, kind, memory_kind = facts
    return _intern(shape, dtype, weak_type, sharding, manual_type(*kind), memory_kind)


def shaped_array(shape: Shape, dtype: ElementType, weak_type: bool = False) -> ShapedArray:
    """The type of an unplaced array; `shape` must be a tuple of ints and `dtype` canonical."""
    key = (shape, dtype, weak_type)
    aval = _interned.get(key)
    return _build(key, *key, None, NOT_MANUAL, None) if aval is None else aval


def _build(
    key: tuple[object, ...],
    shape: Shape,
    dtype: DType,
    weak_type: bool,
    sharding: object,
    manual_axis_type: ManualAxisType,
    memory_kind: str | None,
) -> ShapedArray:
    aval = _new(ShapedArray)
    aval.shape = shape
    aval.dtype = dtype
    aval.weak_type = weak_type
    aval.split = sharding
    aval.manual_axis_type = manual_axis_type
    aval.memory_kind = memory_kind
    aval.ndim = len(shape)
    aval.size = math.prod(shape)
    # An element has 16 bytes at most; where there is none, the other dimensions may be too large.
    if not 0 < int(aval.size) <= MOST_BYTES // 16:
        check_size("", shape, dtype)
    aval.is_extended = dtypes.is_extended(dtype)
    aval.is_plain = sharding is None and manual_axis_type is NOT_MANUAL and memory_kind is None
    aval._tangent = None
    with _making:
        return _interned.setdefault(key, _living.setdefault(key, aval))


MOST_BYTES = 2**53
"""The size of the largest array there can be, more than the memory of all devices of the largest
machines.  XLA adds up the bytes of all arrays of a program, and of copies in wider dtypes, in 64
bits, and ends the process where these do not suffice."""


def check_size(name: str, shape: Iterable[int], dtype: ElementType) -> None:
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


def whole_number(n: Param) -> int:
    """An integer as a Python int; a size that is a symbol is more than its number, and stays."""
    return n if isinstance(n, int) and not isinstance(n, bool) else operator.index(n)


def canonicalize_shape(shape: Param, name: str = "shape") -> Shape:
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


def _aval_of_python_scalar(x: Operand) -> ShapedArray:
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


def _aval_of_numpy(x: Operand) -> ShapedArray:
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


aval_handlers: dict[type, Callable[[Operand], Aval]] = {
    **dict.fromkeys((bool, int, float, complex), _aval_of_python_scalar),
    np.ndarray: _aval_of_numpy,
    np.generic: _aval_of_numpy,
}
"""How to read the type of a value, by the value's class.  The runtime adds `Array`."""


def aval_of(x: Operand) -> Aval:
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


def _aval_of_other(x: Value) -> Aval:
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
