"""What a record is: how to call one public function, and what it has to equal.

`test_records.py` makes tests of records.  The arguments of a call come from a `Draw`: Hypothesis
draws them to compare values, and a generator of random numbers to compare derivatives, at points
where nothing is special.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minijax import tree

# The dtypes of each kind; those of 64 bits are drawn with x64 on, and first.
# "r" are the floats that special functions and Fourier transforms take.
WIDE = {
    "b": (),
    "r": ("float64",),
    "i": ("int64",),
    "u": ("uint64",),
    "f": ("float64",),
    "c": ("complex128",),
}
NARROW = {
    "b": ("bool",),
    "r": ("float32",),
    "i": ("int32", "int8"),
    "u": ("uint32", "uint8"),
    "f": ("float32", "float16", "bfloat16"),
    "c": ("complex64",),
}

# The error that a result may have, relative to the largest element of the oracle's.
TOLERANCES = {
    "float16": 4e-3,
    "bfloat16": 3e-2,
    "float32": 1e-5,
    "complex64": 1e-5,
    "float64": 1e-11,
    "complex128": 1e-11,
}

VECTORS = ((4,), (1,), (3,), (0,))
FULL = ((2, 3), (4,), (2, 1, 3))
RANKED = (*FULL, (0, 3))
ANY = (*RANKED, ())
MATRICES = ((3, 3), (2, 2, 2), (1, 1))
# Shapes of two operands that broadcast.
PAIRS = (
    ((2, 3), (2, 3)),
    ((2, 3), (3,)),
    ((2, 1), (1, 3)),
    ((), (4,)),
    ((0, 3), (1, 3)),
    ((), ()),
    ((3, 1), (2, 1, 3)),
)

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Call:
    """Arguments of a function: arrays, which may be traced, and options, which may not."""

    args: tuple[Any, ...]
    options: dict[str, Any]


class Draw:
    """Chooses the arguments of a call.

    Attributes:
        x64: whether there are dtypes of 64 bits.
    """

    def __init__(self, x64: bool) -> None:
        self.x64 = x64

    def of(self, *choices: Any) -> Any:
        """One of the choices; the first one is the least special."""
        raise NotImplementedError

    def quarters(self, shape: Shape, low: float, high: float) -> np.ndarray[Any, Any]:
        """Numbers between two bounds, in the mean of quarters: narrow floats hold these exactly."""
        raise NotImplementedError

    def specials(self, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The array, perhaps with NaN, infinities and negative zeros in it."""
        raise NotImplementedError

    def call(self, *args: Any, **options: Any) -> Call:
        return Call(args, options)

    def dtype(self, kinds: str = "fiubc") -> str:
        """A dtype of one of the kinds; the first is the one of derivatives, if it is inexact."""
        wide = [name for kind in kinds for name in WIDE[kind]] if self.x64 else []
        narrow = [name for kind in kinds for name in NARROW[kind]]
        return str(self.of(*wide, *narrow))

    def array(
        self,
        kinds: str = "fiubc",
        shape: Sequence[Shape] = ANY,
        values: tuple[float, float] = (-3, 3),
        *,
        special: bool = False,
    ) -> np.ndarray[Any, Any]:
        """An array of one of the kinds and shapes, with elements between two bounds.

        Args:
            kinds: letters of NumPy's kinds of dtypes; or a dtype.
            shape: the shapes to choose from.
            values: the bounds.
            special: whether floating-point elements may be NaN, infinite or negative zeros.
        """
        dtype = np.dtype(self.dtype(kinds) if set(kinds) <= set(NARROW) else kinds)
        size = shape[0] if len(shape) == 1 else self.of(*shape)
        low, high = values
        if dtype.kind == "b":
            return np.less(self.quarters(size, -1, 1), 0.1)
        if dtype.kind in "iu":
            low = max(low, 0) if dtype.kind == "u" else low
            numbers = self.quarters(size, low / 4, high / 4) * 4
            return np.round(numbers).astype(dtype)
        if dtype.kind == "c":
            parts = [self.quarters(size, low, high) for _ in range(2)]
            return (parts[0] + 1j * parts[1]).astype(dtype)
        x = self.quarters(size, low, high)
        return (self.specials(x) if special else x).astype(dtype)

    def pair(
        self, kinds: str = "fiubc", shapes: Sequence[tuple[Shape, Shape]] = PAIRS, **options: Any
    ) -> tuple[Any, Any]:
        """Two operands that broadcast: of one dtype, of two, or an array and a number."""
        left, right = self.of(*shapes)
        x = self.array(kinds, [left], **options)
        partner = self.of("equal", "any", "number")
        if partner == "number":
            number = self.array(x.dtype.name, [()], **options)
            return x, number.astype(np.float64 if x.dtype.kind == "V" else number.dtype).item()
        return x, self.array(x.dtype.name if partner == "equal" else kinds, [right], **options)

    def axis(self, x: Any, *, none: bool = False) -> Any:
        """An axis of an array, or None where it may be."""
        n = np.ndim(x)
        axes = [n - 1, 0, -1] if n else []
        return self.of(*axes, *([None] if none or not n else []))

    def axes(self, x: Any) -> Any:
        """An axis, several, none, or None for all."""
        n = np.ndim(x)
        return self.of(*([n - 1, -1, 0, (0, -1)] if n > 1 else [0] if n else []), None, ())


@dataclass(frozen=True, eq=False)
class Record:
    """How to call a function, and what it has to equal.

    Attributes:
        name: where the function is, below `minijax`.
        draw: chooses the arguments of a call.
        oracle: takes what `draw` has drawn; by default `call` of the function of the same name in
            NumPy or SciPy.
        call: makes a result that can be compared out of a function and the arguments.
        grad: positions of the arguments by which it can be differentiated; or why by none.
        jit: whether the arguments may be traced; or why not.
        vmap: whether the arguments may be batched; or why not.
        case: tells records of one function apart.
        tolerance: the relative error allowed, as a multiple of that for its dtype.
        slope: the relative error allowed to derivatives, which are compared with differences.
        kinds: whether the result's kind of dtype must be the oracle's; or why not.
    """

    name: str
    draw: Callable[[Any], Call]
    oracle: Callable[..., Any] | None = None
    call: Callable[..., Any] = field(default=lambda f, *args, **options: f(*args, **options))
    grad: tuple[int, ...] | str = (0,)
    jit: bool | str = True
    vmap: bool | str = True
    case: str = ""
    tolerance: float = 1.0
    slope: float = 1e-6
    kinds: bool | str = True

    @property
    def id(self) -> str:
        """What tests call the record."""
        return f"{self.name}-{self.case}" if self.case else self.name

    def function(self) -> Callable[..., Any]:
        """The function, applied as the record says."""
        found = member("minijax", self.name)

        def function(*args: Any, **options: Any) -> Any:
            return self.call(found, *args, **options)

        return function

    def expected(self, call: Call) -> Any:
        """The oracle's result, computed in 64 bits."""
        oracle = self.oracle or functools.partial(self.call, member("", self.name))
        args = tree.map(_widened, call.args)
        result = oracle(*args, **call.options)
        # NumPy computes floats of small integers in few bits.
        if any(np.asarray(x).dtype in (np.float16, np.float32) for x in tree.leaves(result)):
            args = tree.map(
                lambda x: np.float64(x) if np.asarray(x).dtype.kind in "biu" else x, args
            )
            result = oracle(*args, **call.options)
        return result


def member(package: str, name: str) -> Any:
    """The object of a dotted name."""
    module, _, last = f"{package}.{name}".strip(".").rpartition(".")
    return getattr(importlib.import_module(module), last)


def _widened(x: Any) -> Any:
    if not isinstance(x, np.ndarray):
        return x
    if x.dtype.kind in "fcV":
        return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    return x


def written(write: Callable[..., Any]) -> Callable[..., Any]:
    """An oracle that writes into a copy of its first argument."""

    def oracle(x: Any, *args: Any, **options: Any) -> Any:
        y = x.copy()
        write(y, *args, **options)
        return y

    return oracle
