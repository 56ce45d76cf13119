"""Tables of rules: what one analysis asks primitives, owned by that analysis.

`core/primitive.py` has the rules that every reader needs, as methods.  Whatever a single analysis
asks stands in a table beside the code that asks it: `vma.vary`, `refs.discharge`,
`checking.faults`.  Rules are declared for a primitive, or for a class of primitives, which answers
for all of its kind; the declarations of one analysis are found by searching for its table.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from types import MethodType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from minijax.core.operators import Function

if TYPE_CHECKING:
    from minijax.core.primitive import Primitive

T = TypeVar("T")
Fact = Callable[["Primitive"], T]
# Declared for a class of primitives, whose attributes it may read.
DerivedFact = Callable[[Any], T]
Rule = TypeVar("Rule", bound=Function)

TABLES: dict[str, Facts[Any]] = {}
"""All tables by name, for tools and tests."""


class Facts(Generic[T]):
    """What an analysis knows about primitives: a value for each, `default` where none is declared.

    A declaration for a primitive goes before one for its class, and one for a class before those
    for its base classes.

    Attributes:
        name: what is asked.
        default: the answer where nothing is declared.
        of: the fact about a primitive.  It is found once and then remembered, so that hot paths
            pay for one look-up in a dictionary.
    """

    def __init__(self, name: str, default: T) -> None:
        self.name = name
        self.default = default
        self._declared: dict[Hashable, Fact[T]] = {}
        self._known = _Known(self._find)
        self.of: Fact[T] = self._known.__getitem__
        TABLES[name] = self

    def set(self, value: T, *holders: Hashable) -> None:
        """Declares a fact about primitives, or about all of some classes."""
        self.derive(*holders)(lambda primitive: value)

    def derive(self, *holders: Hashable) -> Callable[[DerivedFact[T]], DerivedFact[T]]:
        """Declares a function that gives the fact, from the primitive."""

        def declare(function: DerivedFact[T]) -> DerivedFact[T]:
            self._declared.update(dict.fromkeys(holders, function))
            self._known.clear()
            return function

        return declare

    def remove(self, holder: Hashable) -> None:
        """Forgets what was declared for one primitive, or one class."""
        del self._declared[holder]
        self._known.clear()

    def holders(self) -> list[Hashable]:
        """The primitives and classes for which something is declared."""
        return list(self._declared)

    def _find(self, primitive: Primitive) -> T:
        for holder in (primitive, *type(primitive).__mro__):
            if holder in self._declared:
                return self._declared[holder](primitive)
        return self.default

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class Rules(Facts[Any]):
    """As `Facts`, for rules that are functions; None where a primitive has no rule.

    A function is declared as a method would be: its first argument is the primitive.  `of` gives
    it with that argument filled in.

    Example:
        >>> from minijax.core import rules
        >>> cost = rules.Rules("cost")
        >>> @cost.rule(jax.lax.sin_p)
        ... def _cost_of_sin(primitive, x):
        ...     return 4 * x.size
        >>> cost.of(jax.lax.sin_p)(jnp.zeros(3)), cost.of(jax.lax.cos_p)
        (12, None)
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, None)

    def rule(self, *holders: Hashable) -> Callable[[Rule], Rule]:
        """Declares the decorated function as the rule of primitives, or of classes of them."""

        def declare(function: Rule) -> Rule:
            self.derive(*holders)(lambda primitive: MethodType(function, primitive))
            return function

        return declare


class _Known(dict["Primitive", Any]):
    """The facts that were asked for already."""

    def __init__(self, find: Callable[[Primitive], Any]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, primitive: Primitive) -> Any:
        found = self[primitive] = self._find(primitive)
        return found
