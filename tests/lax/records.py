"""What a record is: samples of one primitive, from which `test_laws.py` makes tests."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from minijax.core import dtypes

# The error that a result may have, relative to the largest element of the oracle's.
TOLERANCES = {
    "float16": 2e-3,
    "bfloat16": 2e-2,
    "float32": 2e-5,
    "complex64": 2e-5,
    "float64": 1e-11,
    "complex128": 1e-11,
}


@dataclass(frozen=True)
class Arg:
    """A random array: of `dtype`, or of the dtype under test, with elements in [low, high].

    Attributes:
        distinct: whether no two elements are equal.
    """

    shape: tuple[int, ...]
    dtype: str | None = None
    low: float = -2.0
    high: float = 2.0
    distinct: bool = False

    def make(self, rng: np.random.Generator, dtype: str) -> np.ndarray[Any, Any]:
        """The array, of its own dtype or else of `dtype`."""
        kind = np.dtype(self.dtype or dtype)
        if kind == np.bool_:
            return rng.integers(0, 2, self.shape).astype(np.bool_)
        if dtypes.issubdtype(kind, np.integer):
            return self._integers(rng, kind)
        if dtypes.issubdtype(kind, np.complexfloating):
            return (self._reals(rng) + 1j * self._reals(rng)).astype(kind)
        return self._reals(rng).astype(kind)

    def _integers(self, rng: np.random.Generator, dtype: Any) -> np.ndarray[Any, Any]:
        info = dtypes.iinfo(dtype)
        low, high = max(int(info.min), int(self.low)), min(int(info.max), int(self.high))
        if self.distinct:
            size = int(np.prod(self.shape))
            return rng.permutation(np.arange(low, low + size)).reshape(self.shape).astype(dtype)
        return rng.integers(low, high, self.shape, endpoint=True).astype(dtype)

    def _reals(self, rng: np.random.Generator) -> np.ndarray[Any, Any]:
        if self.distinct:
            size = int(np.prod(self.shape))
            return rng.permutation(np.linspace(self.low, self.high, size)).reshape(self.shape)
        return rng.uniform(self.low, self.high, self.shape)


@dataclass(frozen=True)
class ErrorSample:
    """A call that has to fail: with which exception, and what its text matches."""

    call: Callable[..., Any]
    args: tuple[Any, ...]
    type: type[Exception]
    match: str


@dataclass(frozen=True, eq=False)
class Record:
    """One way to call a primitive, and what holds of it.

    Attributes:
        name: the primitive.
        call: calls a public function of `lax` on arrays.
        oracle: the same in NumPy.
        args: the arguments: `Arg` for random arrays, or NumPy arrays.
        dtypes: the dtypes of those `Arg` that name none; the first is the one most laws use.
        case: tells records of one primitive apart.
        grad: positions of the arguments it can be differentiated by.
        order: how many times it can be differentiated.
        batch: whether it can be batched.
        tolerance: the relative error allowed, for all dtypes or by dtype.
        errors: calls that have to fail.
    """

    name: str
    call: Callable[..., Any]
    oracle: Callable[..., Any]
    args: tuple[Any, ...]
    dtypes: tuple[str, ...] = ("float32",)
    case: str = ""
    grad: tuple[int, ...] = ()
    order: int = 2
    batch: bool = True
    tolerance: float | Mapping[str, float] = field(default_factory=dict)
    errors: tuple[ErrorSample, ...] = ()

    @property
    def id(self) -> str:
        """What tests call the record."""
        return f"{self.name}-{self.case}" if self.case else self.name

    def make_args(self, dtype: str) -> tuple[np.ndarray[Any, Any], ...]:
        """Arguments, the same each time."""
        rng = np.random.default_rng(zlib.crc32(self.id.encode()))
        return tuple(
            arg.make(rng, dtype) if isinstance(arg, Arg) else np.asarray(arg) for arg in self.args
        )

    def tolerance_for(self, dtype: str) -> float:
        """The relative error allowed where `dtype` is computed with."""
        if isinstance(self.tolerance, Mapping):
            return self.tolerance.get(dtype, TOLERANCES.get(dtype, 0.0))
        return max(self.tolerance, TOLERANCES.get(dtype, 0.0))

    def widened(self) -> Record:
        """The record in 64 bits, for comparison with finite differences."""
        wide = {"float32": "float64", "complex64": "complex128"}
        dtype = wide.get(self.dtypes[0], self.dtypes[0])
        args = tuple(
            replace(arg, dtype=wide.get(arg.dtype, arg.dtype))
            if isinstance(arg, Arg) and arg.dtype
            else arg.astype(wide[arg.dtype.name])
            if isinstance(arg, np.ndarray) and arg.dtype.name in wide
            else arg
            for arg in self.args
        )
        return replace(self, args=args, dtypes=(dtype,))
