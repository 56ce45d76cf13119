"""Functions under construction: typed variables, and the lines of code that define them.

Input: what steps say.  Output: the text of a function, without what no result needs.  A variable
knows its shape, its dtype, and the axes over which it may differ, so that steps are well typed by
construction, and nothing of the library under test is asked.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

MAX_ELEMENTS = 256


class Variable(NamedTuple):
    """A variable of generated code.

    Attributes:
        name: in the code.
        shape: of one device's block.
        dtype: its name.
        varying: the axes along which values may differ; of `vmap` too, which types do not tell.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    varying: frozenset[str] = frozenset()

    @property
    def ndim(self) -> int:
        """The rank."""
        return len(self.shape)


class Statement(NamedTuple):
    """Lines of code that define variables, and how many operations they hold."""

    targets: tuple[str, ...]
    uses: frozenset[str]
    lines: tuple[str, ...]
    size: int


class Code(NamedTuple):
    """A function as lines, the names that it takes from around it, and its operations."""

    lines: tuple[str, ...]
    uses: frozenset[str]
    size: int


class Scope:
    """The body of one function, inside those around it.

    Attributes:
        sizes: the axes along which the function may communicate, with their sizes.
        mesh_axes: those of them that types tell of.
        variables: what is visible: the function's own variables after those around it.
        all_enter: whether all devices run the function, as often as each other; `ppermute` demands
            it, because the host waits in it for all devices, whatever the axes.
    """

    def __init__(
        self,
        sizes: Mapping[str, int],
        mesh_axes: Sequence[str],
        visible: Sequence[Variable] = (),
        numbers: Iterator[int] | None = None,
        depth: int = 0,
        modes: frozenset[str] = frozenset(),
    ) -> None:
        self.sizes = dict(sizes)
        self.mesh_axes = tuple(mesh_axes)
        self.variables = list(visible)
        self.modes = modes
        self.all_enter = True
        self.depth = depth
        self._numbers = itertools.count() if numbers is None else numbers
        self._statements: list[Statement] = []

    def inner(self, without: Iterable[str] = (), extra: Mapping[str, int] | None = None) -> Scope:
        """The body of a function inside this one.

        Args:
            without: axes along which it must not communicate.
            extra: further axes, bound for it alone.
        """
        banned = frozenset(without)
        sizes = {n: size for n, size in self.sizes.items() if n not in banned}
        sizes.update(extra or {})
        found = Scope(
            sizes, self.mesh_axes, self.variables, self._numbers, self.depth + 1, self.modes
        )
        found.all_enter = self.all_enter and banned.isdisjoint(self.mesh_axes)
        return found

    def fresh(self) -> str:
        """A name that is not taken."""
        return f"v{next(self._numbers)}"

    def parameter(self, shape: Sequence[int], dtype: str, varying: Iterable[str] = ()) -> Variable:
        """A new parameter of the function."""
        found = Variable(self.fresh(), tuple(shape), dtype, frozenset(varying))
        self.variables.append(found)
        return found

    def let(
        self,
        text: str,
        uses: Iterable[Variable],
        shape: Sequence[int],
        dtype: str,
        varying: Iterable[str],
        size: int = 1,
    ) -> Variable:
        """A new variable, defined by an expression of others that has `size` operations."""
        found = self.parameter(shape, dtype, varying)
        used = frozenset(v.name for v in uses)
        self._statements.append(Statement((found.name,), used, (f"{found.name} = {text}",), size))
        return found

    def like(self, text: str, x: Variable, *others: Variable) -> Variable:
        """A new variable of the shape and dtype of `x`, which varies where any operand does."""
        return self.let(text, (x, *others), x.shape, x.dtype, varying_of(x, *others))

    def define(
        self, lines: Sequence[str], uses: Iterable[str], size: int, outs: Sequence[Variable]
    ) -> None:
        """Lines that define variables, such as a loop with its body."""
        names = tuple(v.name for v in outs)
        self._statements.append(Statement(names, frozenset(uses), tuple(lines), size))
        self.variables.extend(outs)

    def cast(self, x: Variable, varying: Iterable[str]) -> Variable:
        """`x` as a value that varies over these axes at least."""
        missing = [a for a in self.mesh_axes if a in frozenset(varying) - x.varying]
        wanted = x.varying | frozenset(varying)
        if not missing:
            return x._replace(varying=wanted)
        return self.let(f"lax.pvary({x.name}, {axes_text(missing)})", [x], x.shape, x.dtype, wanted)

    def typed(self, axes: Iterable[str]) -> frozenset[str]:
        """Those of the axes that types tell of."""
        return frozenset(axes) & frozenset(self.mesh_axes)

    def own(self) -> list[Variable]:
        """The variables that statements of this function define."""
        names = {name for s in self._statements for name in s.targets}
        return [v for v in self.variables if v.name in names]

    def leaves(self) -> list[Variable]:
        """Those of its variables that no statement uses."""
        used = frozenset[str]().union(*(s.uses for s in self._statements))
        return [v for v in self.own() if v.name not in used]

    def code(
        self,
        name: str,
        parameters: Sequence[Variable],
        results: Sequence[Variable],
        returned: str = "{}",
    ) -> Code:
        """The function as text, without statements that no result needs.

        Args:
            name: of the function.
            parameters: its parameters.
            results: what it returns.
            returned: the form of what it returns, with a place for the results.
        """
        wanted = {v.name for v in results}
        live: list[Statement] = []
        for statement in reversed(self._statements):
            if wanted.intersection(statement.targets):
                live.append(statement)
                wanted |= statement.uses
        live.reverse()
        lines = [f"def {name}({', '.join(v.name for v in parameters)}):"]
        lines += [f"    {line}" for statement in live for line in statement.lines]
        lines.append("    return " + returned.format(", ".join(v.name for v in results)))
        bound = {v.name for v in parameters}.union(*(s.targets for s in live))
        return Code(tuple(lines), frozenset(wanted - bound), sum(s.size for s in live))


def varying_of(*variables: Variable) -> frozenset[str]:
    """The axes over which any of the variables varies."""
    return frozenset[str]().union(*(v.varying for v in variables))


def axes_text(axes: Sequence[str]) -> str:
    """Names of axes as code: one name, or a tuple."""
    return repr(axes[0]) if len(axes) == 1 else repr(tuple(axes))


def elements(shape: Sequence[int]) -> int:
    """How many elements an array of this shape has."""
    return math.prod(shape)


def replaced(shape: Sequence[int], dim: int, *sizes: int) -> tuple[int, ...]:
    """A shape with dimension `dim` replaced by others, of which there may be none."""
    return (*shape[:dim], *sizes, *shape[dim + 1 :])


def inserted(shape: Sequence[int], dim: int, size: int) -> tuple[int, ...]:
    """A shape with a new dimension."""
    return (*shape[:dim], size, *shape[dim:])


Draw = Any
"""What Hypothesis gives to composite strategies: `draw(strategy)` is a value."""
