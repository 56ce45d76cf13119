"""Polynomials of named sizes: the arithmetic of dimensions that are symbols.

A polynomial is a mapping from monomials to integer coefficients; a monomial is a sorted tuple of
factors, each with its power.  A factor is a name, or an `Operation` that no polynomial expresses:
floordiv, mod, max and min of two polynomials.  Equal polynomials are equal objects of Python.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, NoReturn, TypeAlias, TypeVar

from minijax.core.errors import error

N = TypeVar("N")
_MOST_POWER = 64

Monomial: TypeAlias = "tuple[tuple[Factor, int], ...]"
Factor: TypeAlias = "str | Operation"


class Operation(NamedTuple):
    """One of the four operations of two polynomials."""

    name: str
    left: Polynomial
    right: Polynomial

    def __str__(self) -> str:
        return f"{self.name}({self.left}, {self.right})"


def _order(monomial: Monomial) -> tuple[int, str]:
    return -sum(power for _, power in monomial), str([(str(f), p) for f, p in monomial])


def _as_written(term: tuple[Monomial, int]) -> tuple[int, int, list[tuple[str, int]]]:
    """By what JAX writes terms in order, the greatest first: degree, factors, and later names."""
    monomial, _ = term
    degree = sum(p * (1 if isinstance(f, str) else _OPERATION_DEGREE) for f, p in monomial)
    return degree, len(monomial), [(str(f), p) for f, p in reversed(monomial)]


_OPERATION_DEGREE = 5


class Polynomial:
    """A polynomial of named sizes; immutable."""

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        kept = {m: c for m, c in terms.items() if c}
        self.terms = tuple((m, kept[m]) for m in sorted(kept, key=_order))
        self._hash = hash(self.terms)

    @staticmethod
    def of(value: int | str | Operation) -> Polynomial:
        """The polynomial of a number, a name or an operation."""
        if isinstance(value, int):
            return Polynomial({(): value})
        return Polynomial({((value, 1),): 1})

    @property
    def constant(self) -> int | None:
        """The number that this is, if it is one."""
        if not self.terms:
            return 0
        (monomial, coefficient), *more = self.terms
        return coefficient if not (monomial or more) else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __add__(self, other: Polynomial) -> Polynomial:
        total = dict(self.terms)
        for monomial, coefficient in other.terms:
            total[monomial] = total.get(monomial, 0) + coefficient
        return Polynomial(total)

    def __neg__(self) -> Polynomial:
        return Polynomial({m: -c for m, c in self.terms})

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + -other

    def __mul__(self, other: Polynomial) -> Polynomial:
        total: dict[Monomial, int] = {}
        for first, one in self.terms:
            for second, two in other.terms:
                product = _multiplied(first, second)
                total[product] = total.get(product, 0) + one * two
        return Polynomial(total)

    def names(self) -> frozenset[str]:
        """The names in it, also inside of operations."""
        found: set[str] = set()
        for monomial, _ in self.terms:
            for factor, _ in monomial:
                if isinstance(factor, Operation):
                    found |= factor.left.names() | factor.right.names()
                else:
                    found.add(factor)
        return frozenset(found)

    def replaced(self, factor: Factor, by: Polynomial) -> Polynomial:
        """This polynomial with a factor written as something else."""
        return self.evaluate(
            lambda f: by if f == factor else Polynomial.of(f), Polynomial.of, lambda o, _: None
        )

    def evaluate(
        self,
        of_name: Callable[[str], N],
        of_number: Callable[[int], N],
        operation: Callable[[Operation, Callable[[Polynomial], N]], N | None],
    ) -> N:
        """The value of the polynomial in a ring.

        Args:
            of_name: the values of names, and of operations for which `operation` has none.
            of_number: the values of integers.
            operation: the value of an operation, given what evaluates its operands.
        """

        def evaluated(polynomial: Polynomial) -> N:
            return polynomial.evaluate(of_name, of_number, operation)

        total: N | None = None
        for monomial, coefficient in self.terms:
            product: N | None = None if coefficient == 1 and monomial else of_number(coefficient)
            for factor, power in monomial:
                value: N | None = None
                if isinstance(factor, Operation):
                    value = operation(factor, evaluated)
                if value is None:
                    value = of_name(factor)  # type: ignore[arg-type]
                for _ in range(power):
                    product = value if product is None else product * value  # type: ignore[operator]
            assert product is not None
            total = product if total is None else total + product  # type: ignore[operator]
        return of_number(0) if total is None else total

    def number(self, sizes: Mapping[str, int]) -> int:
        """The value for sizes by name."""
        return self.evaluate(
            lambda name: sizes[name], int, lambda o, of: NUMBERS[o.name](of(o.left), of(o.right))
        )

    def __str__(self) -> str:
        text = ""
        for monomial, coefficient in sorted(self.terms, key=_as_written, reverse=True):
            parts = [str(f) if p == 1 else f"{f}^{p}" for f, p in monomial]
            if abs(coefficient) != 1 or not parts:
                parts.insert(0, str(abs(coefficient)))
            signs = (" - ", " + ") if text else ("- " if monomial else "-", "")
            text += signs[coefficient > 0] + "*".join(parts)
        return text or "0"

    __repr__ = __str__


def _multiplied(first: Monomial, second: Monomial) -> Monomial:
    powers = dict(first)
    for factor, power in second:
        powers[factor] = powers.get(factor, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: str(item[0])))


def _divided(first: Monomial, second: Monomial) -> Monomial | None:
    powers = dict(first)
    for factor, power in second:
        powers[factor] = powers.get(factor, 0) - power
        if powers[factor] < 0:
            return None
    return tuple((f, p) for f, p in powers.items() if p)


NUMBERS: Mapping[str, Callable[[int, int], int]] = {
    "floordiv": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "max": lambda x, y: x if x >= y else y,
    "min": lambda x, y: x if x <= y else y,
}
"""What the operations do to numbers."""


def exact_quotient(x: Polynomial, y: Polynomial) -> tuple[Polynomial, Polynomial]:
    """A polynomial q and a rest r with x = q * y + r; r is 0 where the division is exact."""
    quotient, rest, left = Polynomial({}), Polynomial({}), x
    leading, divisor = y.terms[0]
    while left.terms:
        monomial, coefficient = left.terms[0]
        found = _divided(monomial, leading)
        if found is None or coefficient % divisor:
            term = Polynomial({monomial: coefficient})
            rest, left = rest + term, left - term
        else:
            term = Polynomial({found: coefficient // divisor})
            quotient, left = quotient + term, left - term * y
    return quotient, rest


def floor_quotient(x: Polynomial, y: Polynomial) -> Polynomial:
    """x // y: the part that divides exactly, and an operation for the rest."""
    quotient, rest = exact_quotient(x, y)
    if not rest.terms:
        return quotient
    known, by = rest.constant, y.constant
    if known is not None and by is not None:
        return quotient + Polynomial.of(known // by)
    if by is None:
        # The part that divides may exceed the whole: keep what the user has written.
        return Polynomial.of(Operation("floordiv", x, y))
    return quotient + Polynomial.of(Operation("floordiv", rest, y))


def remainder(x: Polynomial, y: Polynomial) -> Polynomial:
    """x % y, of what does not divide exactly."""
    _, rest = exact_quotient(x, y)
    if not rest.terms:
        return rest
    known, by = rest.constant, y.constant
    if known is not None and by is not None:
        return Polynomial.of(known % by)
    return Polynomial.of(Operation("mod", x if by is None else rest, y))


def parsed(text: str, name: str) -> list[ast.expr]:
    """The dimensions that a text lists, as Python reads them.

    Raises:
        ValueError: the text is no list of dimensions.
    """
    inner = text.strip()
    while inner.startswith("(") and inner.endswith(")") and _is_whole(inner):
        inner = inner[1:-1].strip()
    inner = inner.rstrip(",").strip()
    if not inner:
        return []
    try:
        tree = ast.parse(f"({inner.replace('^', '**')},)", mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        refuse(name, text, "it is no list of dimensions")
    assert isinstance(tree.body, ast.Tuple)
    return tree.body.elts


def _is_whole(text: str) -> bool:
    """Whether the first parenthesis closes at the end."""
    depth = 0
    for i, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return i == len(text) - 1
    return False


def refuse(name: str, text: str, why: str) -> NoReturn:
    """Raises the error of a text that is no shape."""
    error(
        ValueError,
        name,
        f"syntax error in symbolic shape: {why}.",
        got=repr(text),
        expected="dimensions such as 'a, 2*b + 1, floordiv(c, 4), 3'",
    )


_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}


def combine(
    node: ast.expr, operation: Callable[[str, Polynomial, Polynomial], Polynomial]
) -> Polynomial:
    """The polynomial of a dimension that Python has read.

    Args:
        node: one of `parsed`.
        operation: the operations +, -, *, floordiv, mod, max and min, by name.

    Raises:
        ValueError: it is none.
    """
    match node:
        case ast.Constant(value=int() as number) if type(number) is int:
            return Polynomial.of(number)
        case ast.Name(id=name):
            return Polynomial.of(name)
        case ast.UnaryOp(op=ast.USub(), operand=one):
            return -combine(one, operation)
        case ast.UnaryOp(op=ast.UAdd(), operand=one):
            return combine(one, operation)
        case ast.BinOp(op=ast.Pow(), left=left, right=ast.Constant(value=int() as power)):
            if 0 < power <= _MOST_POWER:
                base = combine(left, operation)
                return functools.reduce(lambda x, y: x * y, [base] * power)
        case ast.BinOp(op=sign, left=left, right=right) if type(sign) in _SIGNS:
            name = _SIGNS[type(sign)]
            return operation(name, combine(left, operation), combine(right, operation))
        case ast.Call(func=ast.Name(id=name), args=[left, right], keywords=[]) if name in NUMBERS:
            return operation(name, combine(left, operation), combine(right, operation))
    raise ValueError(f"{ast.unparse(node)} is no dimension")


def variables(polynomials: Iterable[Polynomial]) -> list[str]:
    """The names in polynomials, sorted."""
    return sorted(frozenset().union(*(p.names() for p in polynomials)))
