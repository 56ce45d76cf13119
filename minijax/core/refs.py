"""Mutable references: their type, their effects, and the cells that hold their values.

A reference is a value of type `AbstractRef`.  While a function is staged it is a variable of the
jaxpr; where operations run at once it is a `Cell`, whose array is replaced on every write.
`interpreters/discharge.py` turns the one into the other.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NoReturn

import numpy as np

from minijax.core import effects, source
from minijax.core.aval import AbstractValue, Shape, aval_handlers, aval_of
from minijax.core.cache import Cache
from minijax.core.errors import error
from minijax.core.jaxpr import Eqn, Jaxpr
from minijax.core.operators import Value, Values
from minijax.core.rules import Facts, Rules
from minijax.core.value_placement import ManualAxisType

discharge = Rules("discharge")
"""Applies an operation on references to `Cell`s in their place: `(primitive, *args, **params)`
reads values, applies what is pure, and writes values.  Without a rule references are no operands
of it."""

with_references = Rules("with_references")
"""Applies an operation that holds jaxprs to traced references: `(primitive, args, params)` reads
them before and writes them after, so that other rules see values only."""

makes_references: Facts[bool] = Facts("makes_references", False)
"""Whether results are references.  What is written to them later may belong to a trace that has no
part in the operands, so traces apply their rules to such an operation in any case."""


SEMAPHORES = frozenset({"sem", "dma_sem", "barrier_sem"})
"""The kinds of references that are semaphores."""


class AbstractRef(AbstractValue):
    """The type of references to values of type `inner_aval`; equal types are the same object.

    `kind` is what the user says of a reference to an array, or None; and the name of its type for a
    semaphore, whose value is a count.

    Example:
        >>> jax.typeof(jax.new_ref(jnp.zeros(3)))
        Ref{float32[3]}
    """

    __slots__ = ("__weakref__", "inner_aval", "kind")
    is_plain = False

    inner_aval: AbstractValue
    kind: Hashable

    def __new__(
        cls, inner_aval: AbstractValue, memory_space: object = None, kind: Hashable = None
    ) -> AbstractRef:
        found = _interned.get((inner_aval, kind))
        if found is None:
            found = object.__new__(cls)
            found.inner_aval = inner_aval
            found.kind = kind
            found = _interned.setdefault((inner_aval, kind), found)
        return found

    def to(self, inner_aval: AbstractValue) -> AbstractRef:
        """The type of references of the same kind to values of another type."""
        return AbstractRef(inner_aval, kind=self.kind)

    @property
    def is_semaphore(self) -> bool:
        """Whether the value is the count of a semaphore."""
        return self.kind in SEMAPHORES

    @property
    def shape(self) -> Shape:
        """The dimensions of the value."""
        return self.inner_aval.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the value."""
        return self.inner_aval.dtype

    @property
    def ndim(self) -> int:
        """The rank of the value."""
        return self.inner_aval.ndim

    @property
    def size(self) -> int:
        """The number of elements of the value."""
        return self.inner_aval.size

    @property
    def weak_type(self) -> bool:
        """Whether the value's dtype gives way to that of other operands."""
        return self.inner_aval.weak_type

    @property
    def manual_axis_type(self) -> ManualAxisType:  # type: ignore[override]
        """Over which mesh axes the value varies."""
        return self.inner_aval.manual_axis_type

    @property
    def split(self) -> Any:
        """How Explicit mesh axes split the value; None where none does."""
        return self.inner_aval.split

    @property
    def sharding(self) -> Any:
        """How the value is split."""
        return self.inner_aval.sharding

    def with_manual_type(self, kind: ManualAxisType) -> AbstractRef:
        """The type of references to values over mesh axes of other kinds."""
        return self.to(self.inner_aval.with_manual_type(kind))

    def update(self, **changes: Any) -> AbstractRef:
        """The type of references to values of which some facts are others."""
        return self.to(self.inner_aval.update(**changes))

    def with_shape(self, shape: Shape) -> AbstractRef:
        """The type of references to values of another shape."""
        return self.to(self.inner_aval.with_shape(shape))

    def without_dim(self, dim: int) -> AbstractRef:
        """The type of references to values without a dimension."""
        return self.to(self.inner_aval.without_dim(dim))

    def with_dim(self, dim: int, size: int, entry: object = None) -> AbstractRef:
        """The type of references to values with a new dimension."""
        return self.to(self.inner_aval.with_dim(dim, size, entry))

    def strip_weak_type(self) -> AbstractRef:
        return self.to(self.inner_aval.strip_weak_type())

    def tangent_aval(self) -> AbstractRef:
        return self.to(self.inner_aval.tangent_aval())

    def str_short(self) -> str:
        if self.is_semaphore:
            return f"Ref{{{self.kind}[{','.join(map(str, self.shape))}]}}"
        return f"Ref{{{self.inner_aval.str_short()}}}"

    def __len__(self) -> int:
        return len(self.inner_aval)

    def __repr__(self) -> str:
        dims = ",".join(map(str, self.shape))
        held = self.kind if self.is_semaphore else getattr(self.dtype, "name", self.dtype)
        return f"Ref{{{held}[{dims}]}}"

    __str__ = __repr__

    def __reduce__(self) -> tuple[object, ...]:
        return AbstractRef, (self.inner_aval, None, self.kind)


_interned: dict[tuple[AbstractValue, Hashable], AbstractRef] = Cache(
    "types of references",
    "types of references, each one object",
    key="the type of the value, kind",
    counted=False,
).table()


class ReferenceEffect(effects.Effect):
    """An equation touches a reference.

    The rule of a primitive says which of its operands that is, by position; in the effects of
    equations and jaxprs it is a variable.
    """

    __slots__ = ("reference",)

    def __init__(self, reference: Any) -> None:
        self.reference = reference

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.reference == self.reference

    def __hash__(self) -> int:
        return hash((type(self), self.reference))

    def of_equation(self, operands: Sequence[Any]) -> Iterable[effects.Effect]:
        """The effect on the operand that the rule names by its position.

        A rule may also hand on the effects of a jaxpr unchanged; then every reference among the
        operands counts as touched.
        """
        if type(self.reference) is int:
            return (type(self)(operands[self.reference]),)
        return [type(self)(v) for v in operands if type(v.aval) is AbstractRef]

    def outlives(self, variables: Iterable[object]) -> bool:
        """Whether the reference is one of the variables: others end where they began."""
        return self.reference in variables

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.reference!r})"


class ReadEffect(ReferenceEffect):
    """The reference is read."""

    __slots__ = ()


class WriteEffect(ReferenceEffect):
    """The reference is written."""

    __slots__ = ()


class AccumEffect(ReferenceEffect):
    """Something is added to the reference."""

    __slots__ = ()


effects.control_flow_allowed_effects.add_type(ReferenceEffect)

Effects = frozenset[effects.Effect]


def effects_of_body(jaxpr: Jaxpr, offset: int = 0) -> Effects:
    """The effects of an operation that calls `jaxpr` on its operands from number `offset` on."""
    if not jaxpr.effects:
        return jaxpr.effects
    positions = {var: i for i, var in enumerate(jaxpr.invars, offset)}
    return frozenset(
        type(e)(positions[e.reference])
        if isinstance(e, ReferenceEffect) and e.reference in positions
        else e
        for e in jaxpr.effects
    )


def effects_outside(found: Effects, variables: Iterable[object]) -> Effects:
    """Effects without those on references other than `variables`: they end where they began."""
    visible = set(variables)
    return frozenset(e for e in found if e.outlives(visible))


class Cell:
    """A reference whose value is known: an array, or a tracer of the function being staged."""

    __slots__ = ("__weakref__", "_value", "aval")

    def __init__(self, value: Value, kind: Hashable = None) -> None:
        self._value: Any = value
        self.aval = AbstractRef(aval_of(value), kind=kind)

    def read(self) -> Any:
        """The value.

        Raises:
            ValueError: the reference was frozen.
        """
        if self._value is None:
            _refuse_frozen(self.aval)
        return self._value

    def write(self, value: Value) -> None:
        """Replaces the value by another of the same type.

        Raises:
            ValueError: the reference was frozen.
        """
        if self._value is None:
            _refuse_frozen(self.aval)
        self._value = value

    def close(self) -> None:
        """Makes the reference unusable."""
        self._value = None

    @property
    def is_frozen(self) -> bool:
        """Whether the reference can no longer be used."""
        return self._value is None


aval_handlers[Cell] = lambda cell: cell.aval


def _refuse_frozen(aval: AbstractRef, at: str | None = None) -> NoReturn:
    problem = "the reference was frozen, so it cannot be read or written."
    fix = "use the array that freeze returned, or make another reference from it"
    error(ValueError, "ref", problem, got=str(aval), fix=fix, at=at)


def check_uses(eqns: Iterable[Eqn], parameters: Iterable[object]) -> None:
    """Refuses equations that take a reference for an array, or use one that is frozen.

    Args:
        eqns: the equations of a function.
        parameters: its arguments, and what it closes over.

    Raises:
        TypeError: an operation on arrays was given a reference.
        ValueError: a reference is used after it was frozen, or one from outside is frozen.
    """
    outside = set(parameters)
    closed: set[object] = set()
    for eqn in eqns:
        for atom in eqn.invars:
            if type(atom.aval) is not AbstractRef:
                continue
            if discharge.of(eqn.primitive) is None:
                error(
                    TypeError,
                    eqn.primitive.name,
                    "the operation takes arrays, not references.",
                    got=str(atom.aval),
                    fix="read the reference first: ref[...]",
                    at=source.summarize(eqn.source),
                )
            if atom in closed:
                _refuse_frozen(atom.aval, source.summarize(eqn.source))
            if eqn.primitive.name != "freeze":
                continue
            if atom in outside:
                problem = "a traced function can freeze only references that it makes."
                fix = "freeze it where it was made; read it here: ref[...]"
                at = source.summarize(eqn.source)
                error(ValueError, "freeze", problem, got=str(atom.aval), fix=fix, at=at)
            closed.add(atom)


def is_reference(x: Value) -> bool:
    """Whether a value, traced or not, is a reference."""
    return type(getattr(x, "aval", None)) is AbstractRef


def any_cell(args: Iterable[object]) -> bool:
    """Whether a reference whose value is known is among some values."""
    return any(isinstance(x, Cell) for x in args)


def identity(x: Value) -> int:
    """A number that is the same for all tracers, and all parts, of one reference."""
    whole = root_of(x)
    return id(getattr(whole, "variable", whole))


def root_of(x: Value) -> Any:
    """The whole reference of which another is a part: that itself if it is whole."""
    return getattr(x, "root", x)


def check_distinct(
    name: str, args: Sequence[Any], names: Callable[[], Sequence[str]], outer: Values = ()
) -> None:
    """Refuses a function that would know one reference under two names.

    Args:
        name: the function.
        args: its arguments.
        names: gives their names.
        outer: what it closes over.

    Raises:
        ValueError: a reference was passed twice, or passed and closed over.
    """
    closed_over = {identity(x) for x in outer if is_reference(x)}
    first: dict[int, int] = {}
    for i, x in enumerate(args):
        if not is_reference(x):
            continue
        key = identity(x)
        if key not in first and key not in closed_over:
            first[key] = i
            continue
        path = names()[i]
        places = f"is the argument {path}, and the function closes over it"
        if key in first:
            places = f"is both the argument {names()[first[key]]} and the argument {path}"
        problem = f"a reference may be passed only once, but one {places}."
        fix = "pass the reference once, or make a second one: new_ref(ref[...])"
        error(ValueError, name, problem, got=str(x.aval), fix=fix)
