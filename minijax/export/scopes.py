"""What is known of sizes that are symbols, and which numbers stand for them meanwhile.

Input: constraints.  Output: a `SymbolicScope`, which tells between which numbers a polynomial of
sizes is, and gives each symbol a number for every probe.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from minijax.core import source
from minijax.core.errors import InconclusiveDimensionOperation, error
from minijax.export import polynomials
from minijax.export.polynomials import Operation, Polynomial

_RANGES = ((101, 200), (211, 500), (503, 1500))
"""Where the numbers of symbols are: of other magnitudes, so that what counts steps shows it."""

PROBES = len(_RANGES)
_INFINITE = float("inf")


@source.boundaries("__init__")
class SymbolicScope:
    """What is known of the symbols of a program; those of different scopes do not mix.

    Args:
        constraints_str: what holds, such as `"a >= 4"`, `"a <= b"`, `"mod(b, 8) == 0"`.

    Raises:
        ValueError: a constraint is none.

    Example:
        >>> scope = jax.export.SymbolicScope(["a >= 4"])
        >>> a, b = jax.export.symbolic_shape("a, b", scope=scope)
        >>> a >= 4, a + b > 4
        (True, True)
    """

    def __init__(self, constraints_str: Sequence[str] = ()) -> None:
        if isinstance(constraints_str, str):
            problem = "constraints_str is a sequence of constraints."
            error(ValueError, "SymbolicScope", problem, got=repr(constraints_str))
        self.constraints: list[str] = []
        # What is at least 0, and what factors are written as.
        self._known: list[Polynomial] = []
        self._rewritten: dict[Any, Polynomial] = {}
        self._least: dict[str, int] = {}
        self._sizes: list[dict[str, int]] = [{} for _ in range(PROBES)]
        self.noted: dict[Polynomial, None] = {}
        self._meanings: list[dict[int, Polynomial]] = [{} for _ in range(PROBES)]
        self.ratios: dict[tuple[Any, Any], None] = {}
        for text in constraints_str:
            self._add(text)

    def __repr__(self) -> str:
        return f"SymbolicScope({self.constraints})"

    def _add(self, text: str) -> None:
        sign = next((s for s in ("==", ">=", "<=") if s in str(text)), None)
        parts = str(text).split(sign) if sign else []
        if len(parts) != 2:
            problem = f"Unsupported parsing of constraint {text!r}."
            expected = "two dimensions with >=, <= or == between"
            error(ValueError, "SymbolicScope", problem, expected=expected)
        left, right = (self.parse(part, "SymbolicScope") for part in parts)
        self.constraints.append(text)
        if sign == "==":
            self._rewrite(left, right, text)
        else:
            known = left - right if sign == ">=" else right - left
            self._known.append(known)
            terms = dict(known.terms)
            least = -terms.pop((), 0)
            name, *more = known.names() or ("",)
            if not more and terms == {((name, 1),): 1}:
                self._least[name] = max(least, self._least.get(name, 1))

    def _rewrite(self, left: Polynomial, right: Polynomial, text: str) -> None:
        ((monomial, coefficient), *more) = left.terms or (((), 0),)
        if more or coefficient != 1 or len(monomial) != 1 or monomial[0][1] != 1:
            problem = f"Invalid equality constraint {text!r}."
            expected = "on its left a symbol, or mod, floordiv, max or min of two dimensions"
            error(ValueError, "SymbolicScope", problem, expected=expected)
        self._rewritten[monomial[0][0]] = right

    def parse(self, text: str, name: str) -> Polynomial:
        """The polynomial that a text writes."""
        nodes = polynomials.parsed(text, name)
        if len(nodes) != 1:
            polynomials.refuse(name, text, "it is not one dimension")
        return self.combine(nodes[0], text, name)

    def combine(self, node: ast.expr, text: str, name: str) -> Polynomial:
        """The polynomial of a dimension that Python has read."""
        try:
            value = polynomials.combine(node, self.combined)
        except (ValueError, RecursionError) as caught:
            polynomials.refuse(name, text, str(caught))
        return self.normal(value)

    def combined(self, name: str, x: Polynomial, y: Polynomial) -> Polynomial:
        """One of +, -, *, floordiv, mod, max and min, as simple as it can be written."""
        if name in _SIGNS:
            return _SIGNS[name](x, y)
        if name in ("max", "min"):
            low, high = self.bounds(x - y)
            if low >= 0 or high <= 0:
                return x if (low >= 0) == (name == "max") else y
            return self.normal(Polynomial.of(Operation(name, x, y)))
        if y.constant == 0:
            raise ZeroDivisionError("integer division or modulo by zero")
        division = polynomials.floor_quotient if name == "floordiv" else polynomials.remainder
        return self.normal(division(x, y))

    def normal(self, polynomial: Polynomial) -> Polynomial:
        """A polynomial with what the constraints say that is equal put in place."""
        for factor, by in self._rewritten.items():
            polynomial = polynomial.replaced(factor, by)
        return polynomial

    def bounds(self, polynomial: Polynomial, depth: int = 2) -> tuple[float, float]:
        """Between which numbers a polynomial is, for all sizes that fit the constraints."""
        low, high = self._interval(polynomial)
        if depth:
            for known in self._known:
                # What is known is at least 0, so that to leave it away shows a bound.
                for factor in (1, 2, 3, 4):
                    times = known * Polynomial.of(factor)
                    low = max(low, self.bounds(polynomial - times, depth - 1)[0])
                    high = min(high, self.bounds(polynomial + times, depth - 1)[1])
                    if low > 0 or high < 0:
                        return low, high
        return low, high

    def _interval(self, polynomial: Polynomial) -> tuple[float, float]:
        """Bounds that follow of those of each symbol."""
        for name, least in self._least.items():
            polynomial = polynomial.replaced(name, Polynomial({((name, 1),): 1, (): least}))
        for name in polynomial.names() - self._least.keys():
            polynomial = polynomial.replaced(name, Polynomial({((name, 1),): 1, (): 1}))
        low: float = 0
        high: float = 0
        for monomial, coefficient in polynomial.terms:
            ends: tuple[float, float] = (1, 1)
            for factor, power in monomial:
                is_name = not isinstance(factor, Operation)
                # Names stand for what exceeds their least size now.
                own = (0, _INFINITE) if is_name else self._factor_bounds(factor)
                for _ in range(power):
                    ends = _product(ends, own)
            first, second = _product(ends, (coefficient, coefficient))
            low, high = low + first, high + second
        return low, high

    def _factor_bounds(self, factor: Any) -> tuple[float, float]:
        left, right = (self.bounds(p, 1) for p in (factor.left, factor.right))
        by = factor.right.constant
        if factor.name == "mod":
            return (0, right[1] - 1) if right[0] > 0 else (right[0] + 1, max(right[1] - 1, 0))
        if factor.name == "floordiv":
            if by is not None and by > 0:
                return left[0] // by, left[1] // by
            return (0 if left[0] >= 0 else -_INFINITE, left[1]) if right[0] > 0 else _ANYWHERE
        choose = max if factor.name == "max" else min
        return choose(left[0], right[0]), choose(left[1], right[1])

    def sizes(self, probe: int, names: Iterable[str]) -> Mapping[str, int]:
        """The numbers of symbols at a probe; they fit the constraints, and differ."""
        missing = [n for n in sorted(names) if n not in self._sizes[probe]]
        if missing:
            self._choose(missing)
        return self._sizes[probe]

    def _choose(self, names: Sequence[str]) -> None:
        """Chooses numbers for symbols that have none: primes where the constraints allow it."""
        chance = random.Random(" ".join(names))
        involved = sorted({*names, *polynomials.variables(self._known)})
        for sizes, (low, high) in zip(self._sizes, _RANGES, strict=True):
            primes = [n for n in range(low, high) if all(n % d for d in range(2, 40))]
            lacking = [n for n in involved if n not in sizes]
            for attempt in range(20000):
                any_size = range(low, high + attempt)
                tried = {**sizes, **{n: chance.choice(primes) for n in lacking}}
                if attempt > 1000:
                    tried |= {n: chance.choice(any_size) for n in lacking}
                if attempt > 15000:
                    tried |= {n: chance.randint(1, low) for n in lacking}
                if len(set(tried.values())) == len(tried) and self._fits(tried):
                    sizes.update(tried)
                    break
            else:
                problem = "no sizes were found that fit the constraints."
                error(ValueError, "SymbolicScope", problem, got=", ".join(self.constraints))

    def recovered(self, number: int, probe: int) -> Polynomial:
        """What a number may be the size of: code that is not ours drops all but the number.

        Should it mean nothing but itself, the modules of other probes differ.
        """
        if number < _RANGES[0][0]:
            return Polynomial.of(number)
        found = self._meanings[probe].get(number)
        if found is not None:
            return found
        made, rest = Polynomial.of(1), number
        for name, size in self._sizes[probe].items():
            while size >= _RANGES[0][0] and rest % size == 0:
                made, rest = made * Polynomial.of(name), rest // size
        return made * Polynomial.of(rest)

    def note(self, polynomial: Polynomial, probe: int, number: int) -> None:
        """Remembers that a program computes with a size, and its number."""
        self.noted[polynomial] = None
        self._meanings[probe].setdefault(number, polynomial)

    def _fits(self, sizes: Mapping[str, int]) -> bool:
        def value(polynomial: Polynomial) -> int | None:
            given = polynomial.names() <= sizes.keys()
            return polynomial.number(sizes) if given else None

        if any((v := value(p)) is not None and v < 0 for p in self._known):
            return False
        for factor, by in self._rewritten.items():
            one, two = value(Polynomial.of(factor)), value(by)
            if one is not None and two is not None and one != two:
                return False
        return True


_ANYWHERE = (-_INFINITE, _INFINITE)
_SIGNS: Mapping[str, Callable[[Polynomial, Polynomial], Polynomial]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
}


def _product(x: tuple[float, float], y: tuple[float, float]) -> tuple[float, float]:
    ends = [0 if 0 in (a, b) else a * b for a in x for b in y]
    return min(ends), max(ends)


def refuse_decision(problem: str) -> NoReturn:
    """Raises the error of a question that has no answer for all sizes."""
    error(
        InconclusiveDimensionOperation,
        "",
        problem,
        expected="a question with the same answer for all sizes",
        fix="add a constraint: symbolic_shape('a, b', constraints=['a >= 8', 'a <= b']), or "
        "export for known sizes",
    )
