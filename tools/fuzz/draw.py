"""What random programs are made of: literals, the values in scope, and functions of them.

Input: a seed.  Output: statements `name = expression`, each of which names earlier ones.  An
expression is drawn with the shape and the kind of dtype that it will have, as far as they are
known, so that most programs are valid.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple, TypeVar

import numpy as np

T = TypeVar("T")
Shape = tuple[int, ...]

DTYPES = {
    "b": ("bool",),
    "u": ("uint8", "uint16", "uint32", "uint64"),
    "i": ("int32", "int32", "int8", "int16", "int64"),
    "f": ("float32", "float32", "float32", "bfloat16", "float16", "float64"),
    "c": ("complex64", "complex64", "complex128"),
}
"""The names of dtypes by their kind: booleans, integers without and with sign, floats, complex."""

ALL = "buifc"
SIZES = (2, 3, 1, 4, 2, 3)

_FLOATS = (0.0, 1.0, -1.0, 0.5, 2.0, -1.5, 3.25, -2.75, 0.125, 7.0)
_SPECIAL = ("nan", "inf", "-inf", "-0.0", "0.0", "1e30", "-1e-30", "300.0")
_INTEGERS = (0, 1, 2, 3, -1, -2, 5, -3)
_LARGE = {"uint8": 255, "int8": -128, "int16": 32767, "int32": -2147483648, "uint32": 4294967295}


class Value(NamedTuple):
    """An expression, with the type that it has as far as it is known.

    Attributes:
        text: the expression.
        shape: its shape; None for what is no array, or has an unknown shape.
        kind: a letter of `DTYPES`, or "?".
    """

    text: str
    shape: Shape | None = ()
    kind: str = "f"

    @property
    def ndim(self) -> int:
        """The number of dimensions; -1 if it is not known."""
        return -1 if self.shape is None else len(self.shape)

    def fits(self, kinds: str, ranks: range, shape: Shape | None) -> bool:
        """Whether it may stand where such values are asked for."""
        return self.kind in kinds and self.ndim in ranks and (shape is None or self.shape == shape)


Production = Callable[["Draw"], Value]

ANY_RANK = range(9)


class Draw:
    """One program while it is drawn.

    Args:
        seed: what the program depends on.
        productions: what draws an expression, chosen with equal probability.

    Attributes:
        statements: those drawn so far.
        functions: how many functions the expression that is being drawn is inside of.
    """

    def __init__(self, seed: int, productions: tuple[Production, ...]) -> None:
        self.random = Random(seed)
        self.statements: list[str] = []
        self.functions = 0
        self._productions = productions
        self._scopes: list[list[Value]] = [[]]
        self._budget = 0
        self._names = 0

    def one(self, options: tuple[T, ...] | list[T] | str) -> T:
        """One of several options."""
        return self.random.choice(options)  # type: ignore[return-value]

    def chance(self, probability: float) -> bool:
        """True with some probability."""
        return self.random.random() < probability

    def expression(self) -> Value:
        """Any expression."""
        return self.one(self._productions)(self)

    def statement(self) -> None:
        """Adds a statement, whose value later ones may use."""
        self._budget = self.one((0, 0, 1, 2))
        made = self.expression()
        self.bind(made, "v")

    def bind(self, value: Value, prefix: str) -> Value:
        """Gives an expression a name by a statement of its own."""
        name = f"{prefix}{self._names}"
        self._names += 1
        self.statements.append(f"{name} = {value.text}")
        bound = value._replace(text=name)
        self._scopes[0].append(bound)
        return bound

    def operand(
        self, kinds: str = ALL, ranks: range = ANY_RANK, shape: Shape | None = None
    ) -> Value:
        """An expression of some kind and shape: one more call, or a value that has a name."""
        if self._budget > 0:
            self._budget -= 1
            made = self.expression()
            if made.fits(kinds, ranks, shape):
                return made
        return self.value(kinds, ranks, shape)

    def value(self, kinds: str = ALL, ranks: range = ANY_RANK, shape: Shape | None = None) -> Value:
        """A value that has a name: a parameter, the result of a statement, or a new literal."""
        for scope in reversed(self._scopes):
            fitting = [value for value in scope if value.fits(kinds, ranks, shape)]
            if fitting and self.chance(0.8):
                return self.one(fitting)
        if shape is None:
            sizes = [s for s in (0, 0, 1, 1, 1, 2, 2, 2, 3) if s in ranks] or [ranks.start]
            shape = self.shape(self.one(sizes))
        return self.bind(self.literal(self.one(_by_weight(kinds)), shape), "x")

    def shape(self, ndim: int) -> Shape:
        """A small shape, now and then one without elements."""
        sizes = (*SIZES, 0) if self.chance(0.1) else SIZES
        return tuple(self.one(sizes) for _ in range(ndim))

    def literal(self, kind: str, shape: Shape) -> Value:
        """An array written down."""
        dtype = self.one(DTYPES[kind])
        if 0 in shape:
            return Value(f"jnp.zeros({shape}, '{dtype}')", shape, kind)
        if kind in "if" and shape == () and self.chance(0.3):
            return Value(f"jnp.asarray({self.number(kind)})", shape, kind)
        if kind in "if" and self.chance(0.05):
            return Value(f"jnp.full({shape}, {self.number(kind)})", shape, kind)
        special = self.chance(0.25)
        elements = [self._element(kind, dtype, special) for _ in range(int(np.prod(shape)))]
        nested = np.array(elements, object).reshape(shape).tolist()
        text = str(nested).replace("'", "")
        module = "np" if self.chance(0.1) and dtype != "bfloat16" else "jnp"
        return Value(f"{module}.array({text}, '{dtype}')", shape, kind)

    def number(self, kind: str = "") -> str:
        """A Python number."""
        kind = kind or self.one("iff")
        return str(self.one(_INTEGERS) if kind == "i" else self.one(_FLOATS))

    def _element(self, kind: str, dtype: str, special: bool) -> str:
        special = special and self.chance(0.4)
        if kind == "b":
            return str(self.chance(0.5))
        if kind in "ui":
            found = _LARGE.get(dtype, 9) if special else self.one(_INTEGERS)
            return str(abs(found) if kind == "u" else found)
        real = self.one(_SPECIAL) if special else str(self.one(_FLOATS))
        return real if kind == "f" else f"{real} + {self.one(_FLOATS[:6])} * 1j"

    @contextlib.contextmanager
    def inside(self, parameters: list[Value], budget: int = 2) -> Iterator[None]:
        """While this is entered, expressions are in a function of these parameters."""
        before, self._budget = self._budget, self.one(tuple(range(budget + 1)))
        self.functions += 1
        self._scopes.append(parameters)
        try:
            yield
        finally:
            self._scopes.pop()
            self.functions -= 1
            self._budget = before

    def parameters(self, *types: Value) -> list[Value]:
        """Parameters of a new function, with names that no enclosing one has."""
        start = sum(len(scope) for scope in self._scopes[1:])
        names = "abcdefghijklmnopqrstuvwyz"
        return [
            value._replace(text=names[(start + i) % len(names)]) for i, value in enumerate(types)
        ]


def _by_weight(kinds: str) -> str:
    """Kinds, floats more often than others."""
    return kinds + "f" * (2 * ("f" in kinds)) + "i" * ("i" in kinds)


def promoted(*kinds: str) -> str:
    """The kind of a result of operands of some kinds."""
    if "?" in kinds:
        return "?"
    found = max(kinds, key=ALL.index)
    return "i" if found == "u" and "i" in kinds else found


def broadcast(*shapes: Shape | None) -> Shape | None:
    """The shape of a result of operands of some shapes; None if they do not fit."""
    try:
        return np.broadcast_shapes(*(shape for shape in shapes if shape is not None))
    except ValueError:
        return None
