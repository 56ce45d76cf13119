"""The sizes of symbols: how they follow from the shapes of arguments.

Input: types whose sizes are symbols, and shapes.  Output: the size of each symbol, or an error that
names the argument and both sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from minijax.core.aval import AbstractValue, ShapedArray
from minijax.core.errors import error
from minijax.export import polynomials
from minijax.export.polynomials import NUMBERS, Operation, Polynomial
from minijax.export.scopes import SymbolicScope
from minijax.export.symbols import Dimension, common_scope


class Solution:
    """The sizes of the symbols of a program, for arguments of known shapes."""

    def __init__(self, sizes: Mapping[str, Any]) -> None:
        self.sizes = sizes

    def of(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape with the symbols replaced."""
        return tuple(self.size(d) for d in shape)

    def size(self, d: int) -> Any:
        """A dimension with the symbols replaced."""
        return evaluated(d.polynomial, self.sizes) if isinstance(d, Dimension) else d


def evaluated(polynomial: Polynomial, sizes: Mapping[str, Any]) -> Any:
    """A polynomial of sizes, which may be symbols of another scope."""

    def operation(op: Operation, of: Callable[[Polynomial], Any]) -> Any:
        x, y = of(op.left), of(op.right)
        for given in (x, y):
            if isinstance(given, Dimension) and op.name in ("max", "min"):
                left, right = (given._of(v) or Polynomial({}) for v in (x, y))
                return given._made(given.scope.combined(op.name, left, right))
        return NUMBERS[op.name](x, y)

    return polynomial.evaluate(lambda name: sizes[name], int, operation)


class Equation:
    """How a symbol follows of a dimension of an argument: size = (dimension - rest) / factor."""

    def __init__(self, name: str, place: tuple[int, int], factor: int, rest: Polynomial) -> None:
        self.name, self.place, self.factor, self.rest = name, place, factor, rest


def equations(name: str, avals: Sequence[AbstractValue]) -> list[Equation]:
    """How all symbols in types follow, one after the other.

    Raises:
        ValueError: one does not.
    """
    dims = [
        ((i, j), d.polynomial)
        for i, aval in enumerate(avals)
        for j, d in enumerate(aval.shape)
        if isinstance(d, Dimension)
    ]
    unknown = set(polynomials.variables(p for _, p in dims))
    found: list[Equation] = []
    while unknown:
        solved = next(
            (e for place, p in dims if (e := _solvable(p, place, unknown)) is not None), None
        )
        if solved is None:
            listed = ", ".join(sorted(unknown))
            shapes = ", ".join(str(p) for _, p in dims)
            problem = f"Cannot solve for values of dimension variables {{{listed}}}."
            expected = "for each symbol an argument with a dimension that is linear in it"
            fix = "pass an argument of that size, if only for its shape"
            error(ValueError, name, problem, got=shapes, expected=expected, fix=fix)
        unknown.remove(solved.name)
        found.append(solved)
    return found


def _solvable(polynomial: Polynomial, place: tuple[int, int], unknown: set[str]) -> Equation | None:
    names = polynomial.names() & unknown
    if len(names) != 1:
        return None
    (name,) = names
    linear = ((name, 1),)
    factor = dict(polynomial.terms).get(linear, 0)
    rest = polynomial - Polynomial({linear: factor})
    return Equation(name, place, factor, rest) if factor and name not in rest.names() else None


def solve(
    name: str,
    avals: Sequence[ShapedArray],
    shapes: Sequence[Sequence[int]],
    arguments: Sequence[str],
) -> Solution:
    """The sizes of the symbols in types, for arguments of given shapes.

    Args:
        name: the function, for messages.
        avals: the types, whose sizes may be symbols.
        shapes: those of the arguments.
        arguments: the names of the arguments, for messages.

    Raises:
        ValueError: the shapes do not fit the types.
    """
    sizes: dict[str, Any] = {}
    for equation in equations(name, avals):
        i, j = equation.place
        left = shapes[i][j] - evaluated(equation.rest, sizes)
        known = sizes[equation.name] = left // equation.factor
        if left % equation.factor != 0 or not known >= 1:
            _refuse_sizes(name, avals, shapes, arguments, equation.place, sizes)
    for i, aval in enumerate(avals):
        for j, d in enumerate(aval.shape):
            if isinstance(d, Dimension) and evaluated(d.polynomial, sizes) != shapes[i][j]:
                _refuse_sizes(name, avals, shapes, arguments, (i, j), sizes)
    scope = common_scope(name, avals)
    if scope is not None:
        _check_constraints(name, scope, sizes)
    return Solution(sizes)


def _check_constraints(name: str, scope: SymbolicScope, sizes: Mapping[str, Any]) -> None:
    for text, holds in requirements(scope):
        if holds.names() <= sizes.keys() and not evaluated(holds, sizes) >= 0:
            given = ", ".join(f"{n} = {sizes[n]}" for n in sorted(holds.names()))
            problem = "Input shapes do not match the polymorphic shapes specification: a "
            error(
                ValueError,
                "Exported.call",
                f"{problem}constraint does not hold.",
                got=given,
                expected=text,
            )


def requirements(scope: SymbolicScope) -> list[tuple[str, Polynomial]]:
    """What a scope demands: polynomials that must be at least 0, as users have written them."""
    found = []
    known = iter(scope._known)
    equal = iter(scope._rewritten.items())
    for text in scope.constraints:
        if "==" in text:
            factor, by = next(equal)
            difference = Polynomial.of(factor) - by
            found += [(text, difference), (text, -difference)]
        else:
            found.append((text, next(known)))
    return found


def _refuse_sizes(
    name: str,
    avals: Sequence[ShapedArray],
    shapes: Sequence[Sequence[int]],
    arguments: Sequence[str],
    place: tuple[int, int],
    sizes: Mapping[str, Any],
) -> NoReturn:
    i, j = place
    d: Any = avals[i].shape[j]
    listed = ", ".join(f"{n} = {size}" for n, size in sizes.items())
    error(
        ValueError,
        "Exported.call",
        "Input shapes do not match the polymorphic shapes specification: "
        f"{arguments[i]}.shape[{j}] is {shapes[i][j]}, where {name} was exported for {d}.",
        got=f"{listed}; {arguments[i]}.shape = {tuple(shapes[i])}",
        expected=f"{arguments[i]}.shape = {avals[i].shape}",
    )
