"""Sizes that are symbols: dimensions of arrays that are known when a program runs.

A `Dimension` is an int to whoever only needs one, such as the operations of this library, which ask
for the shapes of their operands and do not know that a size is a symbol.  Its arithmetic gives
dimensions again, and comparisons are decided for all sizes at once, or refused.  The number that
it has as an int is that of a probe: an export traces a function with several probes, and compares
(`generalization`).  What took the number for the size shows there, and is refused.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import numpy as np

from minijax.core import source, tree
from minijax.core.aval import AbstractValue
from minijax.core.errors import error
from minijax.core.trace import current
from minijax.export import polynomials
from minijax.export.polynomials import Polynomial
from minijax.export.scopes import SymbolicScope, refuse_decision
from minijax.lowering import eager
from minijax.runtime.array import array_from_host
from minijax.transforms.jit.stages import ShapeDtypeStruct

_LARGEST = 2**31 - 1
_COMPARISONS = {">=": (0, False), ">": (1, False), "<": (0, True), "<=": (1, True)}
"""From which difference on comparisons have another answer, and whether it is that they fail."""


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
        scope.note(polynomial, probe, value)
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
        if isinstance(other, int | np.integer):
            value = other if isinstance(other, int) else other.item()
            if isinstance(value, int):
                return self.scope.recovered(int(value), self.probe)
        return None

    def _binary(self, other: Any, sign: str, *, reflected: bool = False) -> Any:
        given = self._of(other)
        if given is None:
            is_sum = sign in "+-" and isinstance(other, float | np.floating)
            return self._plus(other, sign, reflected) if is_sum else NotImplemented
        x, y = (given, self.polynomial) if reflected else (self.polynomial, given)
        return self._made(self.scope.combined(sign, x, y))

    def _plus(self, other: Any, sign: str, reflected: bool) -> Any:
        """A float more or less, which a program computes."""
        _check_staged(self)
        size = array_from_host(np.asarray(self))
        x, y = (other, size) if reflected else (size, other)
        return x + y if sign == "+" else x - y

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

    def __pow__(self, power: Any, modulo: None = None) -> Any:  # type: ignore[override]
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
        _check_staged(self)
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
        if isinstance(other, int) and int.__eq__(self, other):
            return self.scope.recovered(int(other), self.probe) == self.polynomial
        return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.polynomial, id(self.scope), self.probe))

    def _compared(self, other: Any, sign: str) -> Any:
        """Whether a comparison holds, if that is the same for all sizes."""
        given = self._of(other)
        if given is None:
            return NotImplemented
        low, high = self.scope.bounds(self.polynomial - given)
        least, is_less = _COMPARISONS[sign]
        if low >= least:
            return not is_less
        if high < least or (given.constant or 0) >= _LARGEST:
            return is_less
        # Our own code chooses among ways that are right for all sizes, and checks what XLA checks
        # again; the user may mean anything.
        if source.is_internal(sys._getframe(2).f_code.co_filename):
            number = int.__int__(self) - (int.__int__(other) if isinstance(other, int) else other)
            return (number < least) == is_less
        refuse_decision(f"Symbolic dimension comparison '{self}' {sign} '{other}' is inconclusive.")

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, ">=")

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, ">")

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, "<")

    def __le__(self, other: Any) -> Any:
        return self._compared(other, "<=")

    def __bool__(self) -> bool:
        low, high = self.scope.bounds(self.polynomial)
        if low > 0 or high < 0 or source.is_internal(sys._getframe(1).f_code.co_filename):
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


def _refuse_scopes(one: Dimension, other: Dimension) -> NoReturn:
    problem = f"Invalid mixing of symbolic scopes: '{one}' and '{other}' are of different ones."
    fix = "make all symbols of a program with one symbolic_shape, or with scope="
    error(ValueError, "export", problem, fix=fix)


def _check_staged(size: Dimension) -> None:
    """Refuses to make a float of a size where no program is made that could compute it.

    Raises:
        NotImplementedError: nothing is staged.
    """
    if current.value is eager.EAGER:
        problem = f"the size {size} is a symbol, of which only programs make floats."
        error(NotImplementedError, "export", problem, fix="do so inside of what is exported")


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


def probe_of(avals: Iterable[AbstractValue]) -> int:
    """The probe of the symbols in types; 0 if there are none."""
    return next((d.probe for a in avals for d in a.shape if isinstance(d, Dimension)), 0)


def common_scope(name: str, avals: Iterable[AbstractValue]) -> SymbolicScope | None:
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
