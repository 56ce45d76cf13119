"""Functions under construction, and the steps that compute on one device.

A `Scope` holds typed variables and the lines of code that define them.  A variable knows its shape,
its dtype, and the axes over which it may differ, so that steps are well typed by construction, and
nothing of the library under test is asked; its code ends without what no result needs.

A step draws operands among the variables in scope and adds a statement; it answers whether there
were any that fit.  Floats stay small, so that rounding does not grow: they are multiplied only by
what lies between -1 and 1.  No step is discontinuous in a float.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

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


NUMBERS = ("int32", "float32", "uint8")


def pick(draw: Any, scope: Scope, *dtypes: str, min_rank: int = 0) -> Variable | None:
    """A variable of one of the dtypes, the latest being the simplest; None if there is none."""
    fitting = [v for v in scope.variables if v.dtype in dtypes and v.ndim >= min_rank]
    return draw(st.sampled_from(fitting[::-1])) if fitting else None


def partner(draw: Any, scope: Scope, x: Variable) -> Variable:
    """A variable of the shape and dtype of `x`, maybe itself."""
    fitting = [v for v in scope.variables if (v.shape, v.dtype) == (x.shape, x.dtype)]
    found: Variable = draw(st.sampled_from(fitting[::-1]))
    return found


def unary(draw: Any, scope: Scope) -> bool:
    """One operand: its shape, its dtype."""
    x = pick(draw, scope, *NUMBERS)
    if x is None:
        return False
    texts = ["{} + {}", "lax.neg({})"]
    texts += {"float32": ["lax.tanh({})", "{} * 0.5"], "int32": ["{} * {}", "{} % 7"]}.get(
        x.dtype, ["lax.bitwise_not({})"]
    )
    # A literal has part in no type, so that it is the same everywhere.
    form = draw(st.sampled_from([*texts, "{} - 1"]))
    scope.like(form.format(x.name, x.name), x)
    return True


def binary(draw: Any, scope: Scope) -> bool:
    """Two operands, of whatever variance."""
    x = pick(draw, scope, *NUMBERS)
    if x is None:
        return False
    y = partner(draw, scope, x)
    forms = ["{} + {}", "{} - {}", "lax.max({}, {})", "lax.min({}, {})"]
    forms.append("{} * lax.tanh({})" if x.dtype == "float32" else "{} * {}")
    scope.like(draw(st.sampled_from(forms)).format(x.name, y.name), x, y)
    return True


def compare(draw: Any, scope: Scope) -> bool:
    """Two integers give a bool."""
    x = pick(draw, scope, "int32")
    if x is None:
        return False
    y = partner(draw, scope, x)
    form = draw(st.sampled_from(["lax.gt({}, {})", "lax.eq({} % 2, {})"]))
    scope.let(form.format(x.name, y.name), (x, y), x.shape, "bool", varying_of(x, y))
    return True


def select(draw: Any, scope: Scope) -> bool:
    """Each element of one of two arrays."""
    where = pick(draw, scope, "bool")
    if where is None:
        return False
    fitting = [v for v in scope.variables if v.shape == where.shape]
    x = draw(st.sampled_from(fitting[::-1]))
    y = partner(draw, scope, x)
    scope.like(f"lax.select({where.name}, {x.name}, {y.name})", x, y, where)
    return True


def convert(draw: Any, scope: Scope) -> bool:
    """Another dtype, of what is small."""
    x = pick(draw, scope, "int32", "bool", "uint8")
    if x is None:
        return False
    small = f"{x.name} % 16" if x.dtype == "int32" else x.name
    to = draw(st.sampled_from([d for d in NUMBERS if d != x.dtype]))
    text = f"lax.convert_element_type({small}, np.{to})"
    scope.let(text, [x], x.shape, to, x.varying)
    return True


def reduce(draw: Any, scope: Scope) -> bool:
    """A reduction over one dimension."""
    x = pick(draw, scope, *NUMBERS, min_rank=1)
    if x is None:
        return False
    dim = draw(st.integers(0, x.ndim - 1))
    form = draw(st.sampled_from(["{}.sum({})", "{}.max({})", "lax.reduce_max({}, ({},))"]))
    if x.dtype != "int32":
        form = "lax.reduce_sum({}, ({},))"
    scope.let(form.format(x.name, dim), [x], replaced(x.shape, dim), x.dtype, x.varying)
    return True


def reshape(draw: Any, scope: Scope) -> bool:
    """The same elements in another shape."""
    x = pick(draw, scope, *NUMBERS, "bool")
    if x is None:
        return False
    n = elements(x.shape)
    shapes: list[tuple[int, ...]] = [(n,)] if n != 1 else [(1,), ()]
    shapes += [(d, n // d) for d in (2, 4, 8, 3) if n % d == 0 and n > d]
    shape = draw(st.sampled_from(shapes))
    scope.let(f"lax.reshape({x.name}, {shape})", [x], shape, x.dtype, x.varying)
    return True


def rearrange(draw: Any, scope: Scope) -> bool:
    """The same elements at other places: reversed, transposed."""
    x = pick(draw, scope, *NUMBERS, "bool", min_rank=1)
    if x is None:
        return False
    if x.ndim > 1 and draw(st.booleans()):
        order = tuple(draw(st.permutations(range(x.ndim))))
        shape = tuple(x.shape[d] for d in order)
        scope.let(f"lax.transpose({x.name}, {order})", [x], shape, x.dtype, x.varying)
    else:
        dim = draw(st.integers(0, x.ndim - 1))
        scope.like(f"lax.rev({x.name}, ({dim},))", x)
    return True


def widen(draw: Any, scope: Scope) -> bool:
    """A new dimension, along which everything is the same."""
    x = pick(draw, scope, *NUMBERS, "bool")
    if x is None or x.ndim > 2:
        return False
    size = draw(st.sampled_from(sorted({2, *scope.sizes.values()})))
    if elements(x.shape) * size > MAX_ELEMENTS:
        return False
    shape = inserted(x.shape, 0, size)
    scope.let(f"lax.broadcast({x.name}, ({size},))", [x], shape, x.dtype, x.varying)
    return True


def join(draw: Any, scope: Scope) -> bool:
    """Two arrays one after the other."""
    x = pick(draw, scope, *NUMBERS, min_rank=1)
    if x is None or 2 * elements(x.shape) > MAX_ELEMENTS:
        return False
    y = partner(draw, scope, x)
    dim = draw(st.integers(0, x.ndim - 1))
    text = f"lax.concatenate([{x.name}, {y.name}], {dim})"
    scope.let(text, (x, y), replaced(x.shape, dim, 2 * x.shape[dim]), x.dtype, varying_of(x, y))
    return True


def cut(draw: Any, scope: Scope) -> bool:
    """A part of an array."""
    x = pick(draw, scope, *NUMBERS, "bool", min_rank=1)
    if x is None:
        return False
    dim = draw(st.integers(0, x.ndim - 1))
    stop = draw(st.integers(1, x.shape[dim]))
    start = draw(st.integers(0, stop - 1))
    text = f"lax.slice_in_dim({x.name}, {start}, {stop}, axis={dim})"
    scope.let(text, [x], replaced(x.shape, dim, stop - start), x.dtype, x.varying)
    return True


def look_up(draw: Any, scope: Scope) -> bool:
    """The part of an array at a place that is computed."""
    x = pick(draw, scope, *NUMBERS, min_rank=1)
    at = pick(draw, scope, "int32")
    if x is None or at is None or at.ndim:
        return False
    dim = draw(st.integers(0, x.ndim - 1))
    text = f"lax.dynamic_index_in_dim({x.name}, {at.name} % {x.shape[dim]}, {dim}, keepdims=False)"
    scope.let(text, (x, at), replaced(x.shape, dim), x.dtype, varying_of(x, at))
    return True


def multiply(draw: Any, scope: Scope) -> bool:
    """A matrix product."""
    x = pick(draw, scope, "int32", "float32", min_rank=1)
    if x is None:
        return False
    fitting = [
        v
        for v in scope.variables
        if v.dtype == x.dtype and v.ndim in (1, 2) and v.shape[0] == x.shape[-1]
    ]
    if not fitting:
        return False
    y = draw(st.sampled_from(fitting[::-1]))
    shape = (*x.shape[:-1], *y.shape[1:])
    if elements(shape) > MAX_ELEMENTS or len(shape) > 3:
        return False
    left = f"lax.tanh({x.name})" if x.dtype == "float32" else x.name
    dims = f"((({x.ndim - 1},), (0,)), ((), ()))"
    text = f"lax.dot_general({left}, {y.name}, {dims})"
    scope.let(text, (x, y), shape, x.dtype, varying_of(x, y))
    return True


STEPS = (
    binary,
    unary,
    reshape,
    reduce,
    rearrange,
    widen,
    join,
    cut,
    compare,
    select,
    convert,
    look_up,
    multiply,
)
