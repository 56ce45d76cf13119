"""Sizes that are symbols: dimensions of arrays that are known when a program runs.

A `Dimension` is an int to whoever only needs one, such as the operations of this library, which ask
for the shapes of their operands and do not know that a size is a symbol.  Its arithmetic gives
dimensions again, and comparisons are decided for all sizes at once, or refused.  The number that
it has as an int is that of a probe: an export traces a function with several probes, and compares
(`generalization`).  What took the number for the size shows there, and is refused.

A scope says what is known of its symbols: that they are at least 1, and what the user adds.
"""

from __future__ import annotations

import ast
import random
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from minijax.core import source, tree
from minijax.core.aval import ShapedArray
from minijax.core.errors import error
from minijax.export import polynomials
from minijax.export.polynomials import NUMBERS, Operation, Polynomial
from minijax.transforms.jit.stages import ShapeDtypeStruct

PROBES = 3
_LARGEST = 2**31 - 1
_INFINITE = float("inf")


class InconclusiveDimensionOperation(Exception):
    """An operation on sizes that are symbols has no answer that holds for all sizes."""


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
        self.ratios: dict[tuple[Any, Any], None] = {}
        for text in constraints_str:
            self._add(text)

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
            value = polynomials.combine(node, Polynomial.of, self._operation)
        except (ValueError, RecursionError) as caught:
            polynomials.refuse(name, text, str(caught))
        return self.normal(Polynomial.of(value) if isinstance(value, int) else value)

    def _operation(self, sign: str, x: Any, y: Any) -> Polynomial:
        x, y = (Polynomial.of(v) if isinstance(v, int) else v for v in (x, y))
        made: Polynomial = _SIGNS[sign](x, y) if sign in _SIGNS else self.operation(sign, x, y)
        return made

    def operation(self, name: str, x: Polynomial, y: Polynomial) -> Polynomial:
        """One of floordiv, mod, max and min, as simple as it can be written."""
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
        """Chooses numbers for symbols that have none."""
        chance = random.Random(" ".join(names))
        involved = sorted({*names, *polynomials.variables(self._known)})
        for probe, sizes in enumerate(self._sizes):
            lacking = [n for n in involved if n not in sizes]
            for attempt in range(20000):
                most = 200 + attempt // 5
                tried = {**sizes, **{n: chance.randint(90, most) for n in lacking}}
                if attempt > 5000:
                    tried |= {n: chance.randint(1, most) for n in lacking}
                others = [other.get(n) for other in self._sizes[:probe] for n in lacking]
                is_new = len({tried[n] for n in lacking}) == len(lacking)
                is_new = is_new and not {tried[n] for n in lacking} & set(others)
                if (is_new or attempt > 10000) and self._fits(tried):
                    sizes.update(tried)
                    break
            else:
                problem = "no sizes were found that fit the constraints."
                error(ValueError, "SymbolicScope", problem, got=", ".join(self.constraints))

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


class Ratio(float):
    """The quotient of two sizes as a float, which a program computes when it runs."""


class Dimension(int):
    """A size that is a symbol, or computed of symbols.

    Attributes:
        polynomial: of which symbols it is made.
        scope: what is known of these.
        probe: which of the scope's probes gives the number that it has as an int.
    """

    polynomial: Polynomial
    scope: SymbolicScope
    probe: int

    def __new__(cls, polynomial: Polynomial, scope: SymbolicScope, probe: int = 0) -> Dimension:
        value = polynomial.number(scope.sizes(probe, polynomial.names()))
        made = int.__new__(cls, value)
        made.polynomial, made.scope, made.probe = polynomial, scope, probe
        scope.noted[polynomial] = None
        return made

    def at(self, probe: int) -> Dimension:
        """The same size at another probe."""
        return Dimension(self.polynomial, self.scope, probe)

    def _made(self, polynomial: Polynomial) -> int:
        polynomial = self.scope.normal(polynomial)
        constant = polynomial.constant
        if constant is not None:
            return constant
        return Dimension(polynomial, self.scope, self.probe)

    def _of(self, other: Any) -> Polynomial | None:
        """Another operand as a polynomial; None if it is no integer."""
        if isinstance(other, Dimension):
            if other.scope is not self.scope:
                _refuse_scopes(self, other)
            return other.polynomial
        if isinstance(other, int) or type(other).__module__ == "numpy" and hasattr(other, "item"):
            value = other if isinstance(other, int) else other.item()
            return Polynomial.of(int(value)) if isinstance(value, int) else None
        return None

    def _binary(self, other: Any, sign: str, *, reflected: bool = False) -> Any:
        given = self._of(other)
        if given is None:
            return NotImplemented
        x, y = (given, self.polynomial) if reflected else (self.polynomial, given)
        return self._made(self.scope._operation(sign, x, y))

    def __add__(self, other: Any) -> Any:
        return self._binary(other, "+")

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._binary(other, "-")

    def __rsub__(self, other: Any) -> Any:
        return self._binary(other, "-", reflected=True)

    def __mul__(self, other: Any) -> Any:
        return self._binary(other, "*") if not isinstance(other, Sequence) else NotImplemented

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return self._binary(other, "floordiv")

    def __rfloordiv__(self, other: Any) -> Any:
        return self._binary(other, "floordiv", reflected=True)

    def __mod__(self, other: Any) -> Any:
        return self._binary(other, "mod")

    def __rmod__(self, other: Any) -> Any:
        return self._binary(other, "mod", reflected=True)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __pow__(self, power: Any, modulo: None = None) -> Any:
        if not isinstance(power, int) or isinstance(power, Dimension) or power < 0:
            return NotImplemented
        made: Any = 1
        for _ in range(power):
            made = self * made
        return made

    def __truediv__(self, other: Any) -> Any:
        return self._ratio(other, reflected=False)

    def __rtruediv__(self, other: Any) -> Any:
        return self._ratio(other, reflected=True)

    def _ratio(self, other: Any, *, reflected: bool) -> Any:
        given = self._of(other)
        if given is None and not isinstance(other, float):
            return NotImplemented
        x, y = (other, self) if reflected else (self, other)
        value = Ratio(int.__int__(x) if isinstance(x, int) else x)
        value = Ratio(float(value) / (int.__int__(y) if isinstance(y, int) else y))
        operands = [v.polynomial if isinstance(v, Dimension) else v for v in (x, y)]
        self.scope.ratios[operands[0], operands[1]] = None
        return value

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Dimension):
            same = self.scope is other.scope and self.probe == other.probe
            return same and self.polynomial == other.polynomial
        return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.polynomial, id(self.scope), self.probe))

    def _at_least(self, other: Any, more: int, what: str) -> Any:
        """Whether this is at least `other` and `more`, for all sizes."""
        given = self._of(other)
        if given is None:
            return NotImplemented
        low, high = self.scope.bounds(self.polynomial - given - Polynomial.of(more))
        if low >= 0:
            return True
        constant = given.constant
        is_huge = constant is not None and constant + more > _LARGEST
        if high < 0 or is_huge:
            return False
        refuse_decision(
            f"Symbolic dimension comparison '{self}' {what} '{other}' is inconclusive."
        )

    def __ge__(self, other: Any) -> Any:
        return self._at_least(other, 0, ">=")

    def __gt__(self, other: Any) -> Any:
        return self._at_least(other, 1, ">")

    def __lt__(self, other: Any) -> Any:
        found = self._at_least(other, 0, "<")
        return found if found is NotImplemented else not found

    def __le__(self, other: Any) -> Any:
        found = self._at_least(other, 1, "<=")
        return found if found is NotImplemented else not found

    def __bool__(self) -> bool:
        low, high = self.scope.bounds(self.polynomial)
        if low > 0 or high < 0:
            return True
        refuse_decision(f"Symbolic dimension '{self}' used in a boolean context is inconclusive.")

    def __int__(self) -> int:
        self._check_caller()
        return int.__int__(self)

    def __float__(self) -> float:
        self._check_caller()
        return int.__float__(self)

    def _check_caller(self) -> None:
        """Refuses to be a number to the user, who would take it for the size."""
        if not source.is_internal(sys._getframe(2).f_code.co_filename):
            problem = f"Symbolic dimension '{self}' used in a context that requires a constant."
            refuse_decision(problem)

    def __str__(self) -> str:
        return str(self.polynomial)

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec) if not spec.endswith("d") else str(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError("dimensions that are symbols cannot be pickled")

    def __copy__(self) -> Dimension:
        return self

    def __deepcopy__(self, memo: object) -> Dimension:
        return self


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


def _refuse_scopes(one: Dimension, other: Dimension) -> NoReturn:
    problem = f"Invalid mixing of symbolic scopes: '{one}' and '{other}' are of different ones."
    fix = "make all symbols of a program with one symbolic_shape, or with scope="
    error(ValueError, "export", problem, fix=fix)


@source.boundary
def is_symbolic_dim(p: object) -> bool:
    """Whether a size is a symbol, or computed of symbols.

    Example:
        >>> (n,) = jax.export.symbolic_shape("n")
        >>> jax.export.is_symbolic_dim(n + 1), jax.export.is_symbolic_dim(3)
        (True, False)
    """
    return isinstance(p, Dimension)


@source.boundary
def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> tuple[int, ...]:
    """A shape whose dimensions may be symbols.

    Args:
        shape_spec: the dimensions: integers, names, and sums, products, powers, `floordiv`, `mod`,
            `max` and `min` of these.  `_` stands for the dimension that `like` has there, and
            `...` for all that follow.
        constraints: what is known of the symbols, see `SymbolicScope`.
        scope: the scope of the symbols, in place of a new one with `constraints`.
        like: a shape of numbers that this one shall fit.

    Raises:
        ValueError: the text is no shape, does not fit `like`, or both `constraints` and `scope` are
            given.

    Example:
        >>> jax.export.symbolic_shape("b, 2*n + 1, 3")
        (b, 2*n + 1, 3)
    """
    name = "export.symbolic_shape"
    if scope is not None and constraints:
        problem = "constraints and a scope cannot both be given."
        error(ValueError, name, problem, fix="SymbolicScope(constraints)")
    own = SymbolicScope(constraints) if scope is None else scope
    text = "..." if shape_spec is None else str(shape_spec)
    dims: list[int] = []
    for node in polynomials.parsed(text, name):
        if isinstance(node, ast.Constant) and node.value is ...:
            dims += _like(like, len(dims), None, text)
            break
        if isinstance(node, ast.Name) and node.id == "_":
            dims += _like(like, len(dims), len(dims) + 1, text)
            continue
        made = own.combine(node, text, name)
        dims.append(made.constant if made.constant is not None else Dimension(made, own))
    if like is not None:
        if len(dims) != len(like):
            polynomials.refuse(name, text, f"it has {len(dims)} dimensions, and not {len(like)}")
        for i, (dim, known) in enumerate(zip(dims, like, strict=True)):
            if known is not None and not isinstance(dim, Dimension) and dim != known:
                polynomials.refuse(name, text, f"dimension {i} is {dim}, and not {known}")
    return tuple(dims)


def _like(
    like: Sequence[int | None] | None, start: int, end: int | None, text: str
) -> Sequence[int]:
    """The dimensions of a shape of numbers that stand for placeholders."""
    found = None if like is None else like[start:end]
    if found is None or any(d is None for d in found) or (end is not None and not found):
        why = "a placeholder has no dimension in `like` to stand for"
        polynomials.refuse("export.symbolic_shape", text, why)
    return found  # type: ignore[return-value]


@source.boundary
def symbolic_args_specs(
    args: Any,
    shapes_specs: Any,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
) -> Any:
    """Descriptions of arguments whose sizes are symbols, to export a function for.

    Args:
        args: a tree of arrays, or of anything with a shape and a dtype.
        shapes_specs: a shape for each, as `symbolic_shape` takes them; one for many, or None.
        constraints: what is known of the symbols.
        scope: their scope, in place of a new one with `constraints`.

    Raises:
        ValueError: a shape does not fit its argument, or the trees do not fit.

    Example:
        >>> jax.export.symbolic_args_specs((np.zeros((2, 3)), np.zeros(3)), ("b, _", "..."))
        (ShapeDtypeStruct(shape=(b, 3), dtype=float64), ShapeDtypeStruct(shape=(3,), dtype=float64))
    """
    name = "export.symbolic_args_specs"
    if scope is not None and constraints:
        problem = "constraints and a scope cannot both be given."
        error(ValueError, name, problem, fix="SymbolicScope(constraints)")
    own = SymbolicScope(constraints) if scope is None else scope
    leaves, in_tree = tree.flatten(args)
    is_leaf = tree.is_none
    specs = tree.broadcast(shapes_specs, args, is_leaf=is_leaf)
    specs = tree.leaves(specs, is_leaf=is_leaf)
    made = [
        ShapeDtypeStruct(
            symbolic_shape(spec, scope=own, like=x.shape),
            x.dtype,
            sharding=getattr(x, "sharding", None) if isinstance(x, ShapeDtypeStruct) else None,
        )
        for x, spec in zip(map(_described, leaves), specs, strict=True)
    ]
    return tree.unflatten(in_tree, made)


def _described(x: Any) -> Any:
    """Something with a shape and a dtype."""
    return x if hasattr(x, "shape") and hasattr(x, "dtype") else ShapeDtypeStruct.like(x)


def at_probe(arguments: Any, probe: int) -> Any:
    """Descriptions of arguments, with the sizes that are symbols at another probe."""

    def moved(x: Any) -> Any:
        if not any(isinstance(d, Dimension) for d in getattr(x, "shape", ())):
            return x
        shape = tuple(d.at(probe) if isinstance(d, Dimension) else d for d in x.shape)
        return x.update(shape=shape)

    return tree.map(moved, arguments)


def common_scope(name: str, avals: Iterable[ShapedArray]) -> SymbolicScope | None:
    """The scope of the symbols in types; None if there are none.

    Raises:
        ValueError: there are several.
    """
    found: Dimension | None = None
    for aval in avals:
        for d in aval.shape:
            if isinstance(d, Dimension):
                if found is not None and d.scope is not found.scope:
                    _refuse_scopes(found, d)
                found = found or d
    return None if found is None else found.scope


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
                return given._made(given.scope.operation(op.name, left, right))
        return NUMBERS[op.name](x, y)

    return polynomial.evaluate(lambda name: sizes[name], int, operation)


class Equation:
    """How a symbol follows of a dimension of an argument: size = (dimension - rest) / factor."""

    def __init__(
        self, name: str, place: tuple[int, int], factor: int, rest: Polynomial
    ) -> None:
        self.name, self.place, self.factor, self.rest = name, place, factor, rest


def equations(name: str, avals: Sequence[ShapedArray]) -> list[Equation]:
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


def _solvable(
    polynomial: Polynomial, place: tuple[int, int], unknown: set[str]
) -> Equation | None:
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
            error(ValueError, "Exported.call", f"{problem}constraint does not hold.", got=given,
                  expected=text)


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
