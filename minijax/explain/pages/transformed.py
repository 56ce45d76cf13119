"""What a page shows of a function that `grad` or `vmap` has made: what it was before, and how.

Input: the function and its arguments.  Output: a column, and the data of two players.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from minijax.core import tree
from minijax.core.jaxpr import ClosedJaxpr
from minijax.explain.pages import batches, columns, derivatives, marking, peeling, sources
from minijax.explain.pages.columns import Column
from minijax.explain.pages.marking import Equation, Marked
from minijax.explain.pages.peeling import Function, Layer
from minijax.explain.pages.sources import Linked
from minijax.transforms.jit.jit import jit

Data = dict[str, Any]
"""JSON."""

_REFUSALS = (TypeError, ValueError, NotImplementedError, NameError)


class Peeled:
    """The transformations of a function, and its program without them."""

    def __init__(
        self, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any], marked: Marked
    ) -> None:
        self._layers = peeling.layers(function, args, kwargs)
        self._outermost = sources.beginning_of(function)
        self._made: dict[sources.Site, set[int]] = {}
        if self._layers and self._outermost is not None:
            for x in marked.equations:
                site = sources.site_of(x, self._outermost)
                self._made.setdefault(site, set()).add(x.number)
        self._made.pop((), None)

    def _place(self, equation: Equation) -> Linked:
        """Where an equation of the function before stands, and what the program has of it."""
        if self._outermost is None:
            return "", frozenset()
        places = sources.places_of(equation, self._outermost)
        numbers = frozenset(self._made.get(sources.site_of(equation, self._outermost), ()))
        return places[0].text if places else "", numbers

    def columns(self) -> Iterator[Column]:
        """The column of the function before it was transformed, linked by what the user wrote."""
        original = _program(self._layers[-1]) if self._layers else None
        if original is None or self._outermost is None:
            return
        numbers = {id(x.eqn): self._place(x)[1] for x in marking.mark(original).equations}
        is_derivative = any(layer.kind == "grad" for layer in self._layers)
        title = "before differentiation" if is_derivative else "one example"
        yield columns.jaxpr_column(numbers, original, "original", title)

    def derivative(self) -> Data | None:
        """How the innermost derivative was made; None if there is none."""
        for layer in reversed(self._layers):
            program = _program(layer) if layer.kind == "grad" else None
            if program is not None:
                chosen = _leaves_by_position(layer)
                try:
                    return derivatives.data_of(program, chosen, self._place)
                except _REFUSALS:
                    return None  # It has no reverse mode that is made of equations.
        return None

    def batch(self) -> Data | None:
        """How the outermost batch was made; None if there is none."""
        for layer in self._layers:
            program = _program(layer) if layer.kind == "vmap" else None
            if program is not None:
                return batches.data_of(program, layer.dims, layer.size, self._place)
        return None


def _program(layer: Layer) -> ClosedJaxpr | None:
    """The program of what a transformation was given; None where it cannot be traced alone."""
    try:
        closed: ClosedJaxpr = jit(layer.function).trace(*layer.args, **layer.kwargs).jaxpr
    except _REFUSALS:
        return None
    return closed


def _leaves_by_position(layer: Layer) -> Sequence[bool]:
    """By which leaves of its arguments a function is differentiated."""
    argnums = layer.argnums
    positions = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    wanted = {i % len(layer.args) for i in positions}
    found = [i in wanted for i, arg in enumerate(layer.args) for _ in tree.leaves(arg)]
    return found + [False] * len(tree.leaves(layer.kwargs))
