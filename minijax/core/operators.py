"""The operators and methods that arrays and tracers share.

The class is empty here: `numpy/operators.py` fills it through `hooks.fill_operators`, so that
`x + y`, `x.sum()` and `x.at[i].set(y)` mean the functions of `minijax.numpy`.  Type checkers and
editors read what is there in the block that never runs; methods with one signature share it.

Below are the types that rules and traces share.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from minijax.core.aval import AbstractValue

if TYPE_CHECKING:
    from typing import Generic, Self, TypeAlias, TypeVar

    A = TypeVar("A")
    Axis: TypeAlias = int | Sequence[int] | None

    class Updates(Generic[A]):
        """What `x.at` is: `x.at[index]` is a place in `x`."""

        def __getitem__(self, index: Any) -> Place[A]: ...

    class Place(Generic[A]):
        """Elements of an array, as they are read, or changed in a copy of it."""

        def get(self, *, fill_value: Any = None, **options: Any) -> A: ...
        def apply(self, func: Callable[[Any], Any], **options: Any) -> A: ...
        def set(self, values: Any, **options: Any) -> A: ...
        def add(self, values: Any, **options: Any) -> A: ...
        def subtract(self, values: Any, **options: Any) -> A: ...
        def multiply(self, values: Any, **options: Any) -> A: ...
        def divide(self, values: Any, **options: Any) -> A: ...
        def power(self, values: Any, **options: Any) -> A: ...
        def min(self, values: Any, **options: Any) -> A: ...
        def max(self, values: Any, **options: Any) -> A: ...
        def mul(self, values: Any, **options: Any) -> A: ...

    class ArrayMethods:
        """The methods and properties of arrays and tracers."""

        def all(
            self, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: Any = None
        ) -> Self: ...

        any = all  # noqa: A003  the method above

        def argmax(
            self, axis: int | None = None, out: None = None, keepdims: bool | None = None
        ) -> Self: ...

        argmin = argmax

        def argpartition(self, kth: int, axis: int = -1) -> Self: ...
        def argsort(
            self,
            axis: int | None = -1,
            *,
            kind: None = None,
            order: None = None,
            stable: bool = True,
            descending: bool = False,
            dtype: Any = None,
        ) -> Self: ...
        def astype(self, dtype: Any, copy: bool = False, device: Any = None) -> Self: ...
        def choose(self, choices: Any, out: None = None, mode: str = "raise") -> Self: ...
        def clip(self, min: Any = None, max: Any = None) -> Self: ...
        def byteswap(self) -> Self: ...
        def clone(self) -> Self: ...
        def compress(
            self,
            condition: Any,
            axis: int | None = None,
            *,
            size: int | None = None,
            fill_value: Any = 0,
            out: None = None,
        ) -> Self: ...
        def conj(self) -> Self: ...

        conjugate = conj
        copy = clone

        def cumprod(self, axis: int | None = None, dtype: Any = None, out: None = None) -> Self: ...

        cumsum = cumprod

        def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Self: ...
        def dot(
            self,
            b: Any,
            *,
            precision: Any = None,
            preferred_element_type: Any = None,
            out_sharding: Any = None,
        ) -> Self: ...
        def flatten(self, order: str = "C", *, out_sharding: Any = None) -> Self: ...
        def max(
            self,
            axis: Axis = None,
            out: None = None,
            keepdims: bool = False,
            initial: Any = None,
            where: Any = None,
        ) -> Self: ...
        def mean(
            self,
            axis: Axis = None,
            dtype: Any = None,
            out: None = None,
            keepdims: bool = False,
            *,
            where: Any = None,
        ) -> Self: ...

        min = max  # noqa: A003  the method above

        def nonzero(
            self, *, size: int | None = None, fill_value: Any = None
        ) -> tuple[Self, ...]: ...
        def prod(
            self,
            axis: Axis = None,
            dtype: Any = None,
            out: None = None,
            keepdims: bool = False,
            initial: Any = None,
            where: Any = None,
            promote_integers: bool = True,
        ) -> Self: ...
        def ptp(self, axis: Axis = None, out: None = None, keepdims: bool = False) -> Self: ...
        def ravel(self, order: str = "C", *, out_sharding: Any = None) -> Self: ...
        def repeat(
            self,
            repeats: Any,
            axis: int | None = None,
            *,
            total_repeat_length: int | None = None,
            out_sharding: Any = None,
        ) -> Self: ...
        def reshape(self, *args: Any, order: str = "C", out_sharding: Any = None) -> Self: ...
        def round(self, decimals: int = 0, out: None = None) -> Self: ...
        def searchsorted(
            self, v: Any, side: str = "left", sorter: Any = None, *, method: str = "scan"
        ) -> Self: ...
        def sort(
            self,
            axis: int | None = -1,
            *,
            kind: None = None,
            order: None = None,
            stable: bool = True,
            descending: bool = False,
        ) -> Self: ...
        def squeeze(self, axis: Axis = None) -> Self: ...
        def std(
            self,
            axis: Axis = None,
            dtype: Any = None,
            out: None = None,
            ddof: int = 0,
            keepdims: bool = False,
            *,
            where: Any = None,
            mean: Any = None,
            correction: float | None = None,
        ) -> Self: ...

        sum = prod

        def swapaxes(self, axis1: int, axis2: int) -> Self: ...
        def take(
            self,
            indices: Any,
            axis: int | None = None,
            out: None = None,
            mode: str | None = None,
            unique_indices: bool = False,
            indices_are_sorted: bool = False,
            fill_value: Any = None,
        ) -> Self: ...
        def to_device(self, device: Any, *, stream: Any = None) -> Self: ...
        def trace(
            self,
            offset: int = 0,
            axis1: int = 0,
            axis2: int = 1,
            dtype: Any = None,
            out: None = None,
        ) -> Self: ...
        def transpose(self, *args: Any) -> Self: ...

        var = std

        def view(self, dtype: Any = None, type: None = None) -> Self: ...
        @property
        def T(self) -> Self: ...
        @property
        def mT(self) -> Self: ...  # noqa: N802  NumPy's name
        @property
        def real(self) -> Self: ...
        @property
        def imag(self) -> Self: ...
        @property
        def itemsize(self) -> int: ...
        @property
        def nbytes(self) -> int: ...
        @property
        def at(self) -> Updates[Self]: ...

else:
    ArrayMethods = object


BUFFER_ATTRIBUTES = frozenset(
    {
        "addressable_data",
        "addressable_shards",
        "copy_to_host_async",
        "delete",
        "device",
        "devices",
        "global_shards",
        "is_deleted",
        "is_fully_addressable",
        "is_fully_replicated",
        "is_ready",
        "on_device_size_in_bytes",
        "unsafe_buffer_pointer",
    }
)
"""The attributes of arrays that describe or control their memory; tracers do not have them."""


class ArrayOperators(ArrayMethods):
    """Base of `Array` and `Tracer`."""

    __slots__ = ()

    if TYPE_CHECKING:
        __hash__ = None  # type: ignore[assignment]

        def __getitem__(self, index: Any) -> Self: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __contains__(self, item: Any) -> bool: ...
        def __add__(self, other: Value) -> Self: ...
        def __radd__(self, other: Value) -> Self: ...
        def __sub__(self, other: Value) -> Self: ...
        def __rsub__(self, other: Value) -> Self: ...
        def __mul__(self, other: Value) -> Self: ...
        def __rmul__(self, other: Value) -> Self: ...
        def __truediv__(self, other: Value) -> Self: ...
        def __rtruediv__(self, other: Value) -> Self: ...
        def __floordiv__(self, other: Value) -> Self: ...
        def __rfloordiv__(self, other: Value) -> Self: ...
        def __mod__(self, other: Value) -> Self: ...
        def __rmod__(self, other: Value) -> Self: ...
        def __pow__(self, other: Value) -> Self: ...
        def __rpow__(self, other: Value) -> Self: ...
        def __matmul__(self, other: Value) -> Self: ...
        def __rmatmul__(self, other: Value) -> Self: ...
        def __and__(self, other: Value) -> Self: ...
        def __rand__(self, other: Value) -> Self: ...
        def __or__(self, other: Value) -> Self: ...
        def __ror__(self, other: Value) -> Self: ...
        def __xor__(self, other: Value) -> Self: ...
        def __rxor__(self, other: Value) -> Self: ...
        def __lshift__(self, other: Value) -> Self: ...
        def __rlshift__(self, other: Value) -> Self: ...
        def __rshift__(self, other: Value) -> Self: ...
        def __rrshift__(self, other: Value) -> Self: ...
        def __divmod__(self, other: Value) -> tuple[Self, Self]: ...
        def __rdivmod__(self, other: Value) -> tuple[Self, Self]: ...
        def __neg__(self) -> Self: ...
        def __pos__(self) -> Self: ...
        def __abs__(self) -> Self: ...
        def __invert__(self) -> Self: ...
        def __round__(self, ndigits: int | None = None) -> Self: ...
        def __eq__(self, other: object) -> Self: ...  # type: ignore[override]
        def __ne__(self, other: object) -> Self: ...  # type: ignore[override]
        def __lt__(self, other: Value) -> Self: ...
        def __le__(self, other: Value) -> Self: ...
        def __gt__(self, other: Value) -> Self: ...
        def __ge__(self, other: Value) -> Self: ...
        def __array_namespace__(self, *, api_version: str | None = None) -> Any: ...


Value: TypeAlias = ArrayOperators | np.ndarray[Any, Any] | np.generic | bool | int | float | complex
"""What traces handle: an array or a tracer, an array or a scalar of NumPy, or a number."""

Values: TypeAlias = Sequence[Value]
"""Operands or results of an operation."""

HostArray: TypeAlias = np.ndarray[Any, Any]
"""An array of NumPy, of any shape and dtype."""

Function: TypeAlias = Callable[..., Any]
"""A function of the user, or a decorator's: its signature is known where it is called."""

FlatFunction: TypeAlias = Callable[..., Sequence[Any]]
"""A function of values, one by one, that returns a sequence of values."""

BatchDims: TypeAlias = Sequence[int | None]
"""The batch dimension of each operand or result; None for one that is not mapped."""

Avals: TypeAlias = Sequence["AbstractValue"]
"""Types of operands or results."""

AxisName: TypeAlias = Hashable
"""The name of a mesh axis or a mapped axis, mostly a string."""
