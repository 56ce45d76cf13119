"""`derivative`: how reverse mode makes the derivative of a function, equation by equation.

Input: a function and its arguments.  Output: for each equation what the forward pass computes of
it, what is linear in the tangents, and what the transpose of that is; and what is kept between.
The equations are numbered in their scopes, which all transformations pass on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes, tree
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr, Eqn
from minijax.explain.pages import columns, marking, sources
from minijax.explain.pages.columns import Names
from minijax.explain.pages.marking import Marked
from minijax.explain.pages.sources import Linker
from minijax.interpreters import discharge, jvp, partial_eval, transpose
from minijax.interpreters.partial_eval import PartialJaxpr
from minijax.transforms.jit.jit import jitted

Data = dict[str, Any]
"""JSON."""

_ENDS = -1
"""The row of what belongs to no equation, such as the sums of the gradients."""


class Derivative:
    """The parts that reverse mode makes of a function: a table that prints itself.

    Attributes:
        name: the name of the function.
        data: `rows`, one for each equation of the function, and a first one, `arguments`, where
            cotangents of an argument are added: its `name`, its `line`, what is `known`
            in the forward pass, what is `linear` in the tangents, and its `transposed`, each with
            the residuals that it `needs`, whether it is a `sum` of cotangents, and its `order` in
            the backward pass; `residuals`, with their types and bytes; the names of `tangents` and
            `cotangents`; and `gradients`, the cotangents of the arguments.

    Source:     minijax's own.

    Example:
        >>> print(jax.explain.derivative(jnp.sin)(1.0))
        Derivative of sin: 1 equation; 4 bytes are kept
        <BLANKLINE>
        forward: the function, and what its derivative needs
          b:f32[] = sin a
          c:f32[] = cos a
        kept: c:f32[]
        <BLANKLINE>
        linear in the tangents t_a:f32[]
          t_b:f32[] = mul t_a c
        <BLANKLINE>
        backward, its transpose: from the cotangents c_a:f32[]
          c_b:f32[] = mul c_a c
        gradients: c_b
    """

    def __init__(self, name: str, data: Data) -> None:
        self.name = name
        self.data = data

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        data = self.data
        kept = data["residuals"]
        size = sum(x["bytes"] for x in kept)
        count = data["equations"]
        noun = "equation" if count == 1 else "equations"
        yield f"Derivative of {self.name}: {count} {noun}; {size} bytes are kept"
        yield "\nforward: the function, and what its derivative needs"
        for row in data["rows"]:
            yield from (f"  {text}" for text in row["known"])
        yield f"kept: {' '.join(x['name'] + ':' + x['type'] for x in kept) or 'nothing'}"
        yield f"\nlinear in the tangents {' '.join(data['tangents'])}"
        for row in data["rows"]:
            yield from (f"  {x['text']}" for x in row["linear"])
        yield f"\nbackward, its transpose: from the cotangents {' '.join(data['cotangents'])}"
        cells = [x for row in data["rows"] for x in row["transposed"]]
        for x in sorted(cells, key=lambda x: x["order"]):
            yield f"  {x['text']}"
        yield f"gradients: {' '.join(data['gradients'])}"


def derivative(
    function: Callable[..., Any], argnums: int | Sequence[int] | None = None
) -> Callable[..., Derivative]:
    """Shows how reverse mode makes the derivative of a function, equation by equation.

    Source:     minijax's own.

    Args:
        function: a function of trees of arrays, perhaps jitted.
        argnums: positions of the arguments by which it is differentiated; by default all that are
            of floating or complex dtypes.

    Returns:
        A function of the arguments, arrays or `ShapeDtypeStruct`s, that gives a `Derivative`.

    Raises:
        TypeError: `function` is not callable.
        ValueError: no result depends on the arguments in a way that can be differentiated, or
            argnums is out of range.

    Example:
        >>> found = jax.explain.derivative(lambda x: jnp.sin(x) * x)(1.0)
        >>> rows = {row["name"]: row for row in found.data["rows"]}
        >>> rows["sin"]["known"]
        ['b:f32[] = sin a', 'c:f32[] = cos a']
        >>> [x["text"] for x in rows["sin"]["transposed"]]
        ['c_d:f32[] = mul c_c c']
    """
    given = jitted("explain.derivative", function)

    def of(*args: Any, **kwargs: Any) -> Derivative:
        traced = given.trace(*args, **kwargs)
        chosen = _chosen(traced.in_avals, argnums)
        name = traced.fun_name
        return Derivative(name, data_of(traced.jaxpr, chosen, sources.linked_by(function)))

    return of


def _chosen(in_avals: Any, argnums: int | Sequence[int] | None) -> list[bool]:
    """By which of the leaves of the arguments the function is differentiated."""
    args, kwargs = in_avals
    is_any = argnums is None
    if isinstance(argnums, int):
        argnums = (argnums,)
    if argnums is None:
        argnums = range(len(args))
    elif any(not -len(args) <= i < len(args) for i in argnums):
        expected = f"positions of the {len(args)} positional arguments"
        problem = "argnums is out of range."
        error(ValueError, "explain.derivative", problem, got=str(argnums), expected=expected)
    wanted = [i % len(args) for i in argnums]
    found = []
    for i, arg in enumerate(args):
        leaves = tree.leaves(arg)
        found += [i in wanted and _is_inexact(aval) for aval in leaves]
    found += [is_any and _is_inexact(aval) for aval in tree.leaves(kwargs)]
    return found


def _is_inexact(aval: Any) -> bool:
    return bool(dtypes.issubdtype(aval.dtype, np.inexact))


def data_of(closed: ClosedJaxpr, chosen: Sequence[bool], linked: Linker) -> Data:
    """What `Derivative.data` holds.

    Args:
        closed: the function.
        chosen: by which arguments it is differentiated.
        linked: finds the line of an equation, and what a page has of it.
    """
    pure = discharge.without_references(closed)
    marked = marking.mark(pure)
    forward, out_nonzero = jvp.jvp_jaxpr(marked.closed, chosen)
    if not any(out_nonzero):
        problem = "no result depends on these arguments in a way that can be differentiated."
        fix = "differentiate by arguments of floating dtypes that the results depend on"
        return error(ValueError, "explain.derivative", problem, fix=fix)
    count, tangents = len(chosen), sum(chosen)
    parts = partial_eval.partial_eval_jaxpr(forward, [False] * count + [True] * tangents)
    linear = marking.mark(parts.staged)
    kept = len(parts.sources)
    backward, _ = transpose.transpose_jaxpr(
        linear.closed,
        [False] * kept + [True] * tangents,
        [True] * len(parts.staged.out_avals),
        [True] * tangents,
    )
    return _Table(marked, parts, linear.closed, backward, linked).data()


class _Table:
    """Puts the equations of all parts beside those of the function that they were made of.

    What the forward pass computes has plain names, tangents begin with t and cotangents with c.
    """

    def __init__(
        self,
        marked: Marked,
        parts: PartialJaxpr,
        linear: ClosedJaxpr,
        backward: ClosedJaxpr,
        linked: Linker,
    ) -> None:
        self._rows: dict[int, Data] = {_ENDS: _row(_ENDS, "arguments")}
        for x in marked.equations:
            if x.holder is None:
                row = self._rows[x.number] = _row(x.number, x.eqn.primitive.name)
                row["line"], numbers = linked(x)
                row["n"] = sorted(numbers)
        self._known = parts.known.jaxpr
        self._linear = linear.jaxpr
        self._backward = backward.jaxpr
        self._residuals = self._named_residuals(parts)

    def _named_residuals(self, parts: PartialJaxpr) -> dict[int, str]:
        """Names the variables of the forward pass, and those of later passes that are them."""
        names = Names()
        for var in self._known.invars:
            names.of(var)
        row = _ENDS
        for eqn in self._known.eqns:
            row = self._row_of(eqn, row)
            self._rows[row]["known"].append(columns.equation_text(eqn, names, is_brief=True))
        computed = iter(self._known.outvars[parts.out_unknown.count(False) :])
        found: dict[int, str] = {}
        for i, position in enumerate(parts.sources):
            atom = next(computed) if position is None else self._known.invars[position]
            for jaxpr in (self._linear, self._backward):
                found[id(jaxpr.invars[i])] = names.atom(atom)
        return found

    def data(self) -> Data:
        """The data of a `Derivative`."""
        kept = len(self._residuals) // 2
        count = len(self._rows) - 1
        tangents, cotangents = self._names("t"), self._names("c")
        row = _ENDS
        for eqn in self._linear.eqns:
            row = self._row_of(eqn, row)
            self._rows[row]["linear"].append(self._cell(eqn, tangents))
        rows = self._backward_rows()
        for order, (eqn, row) in enumerate(zip(self._backward.eqns, rows, strict=True)):
            self._rows[row]["transposed"].append(self._cell(eqn, cotangents) | {"order": order})
        return {
            "equations": count,
            "rows": [row for row in self._rows.values() if row["number"] != _ENDS or _is_used(row)],
            "residuals": [
                {
                    "name": self._residuals[id(var)],
                    "type": var.aval.str_short(),
                    "bytes": int(var.aval.size * var.aval.dtype.itemsize),
                }
                for var in self._linear.invars[:kept]
            ],
            "tangents": list(map(tangents.binder, self._linear.invars[kept:])),
            "cotangents": list(map(cotangents.binder, self._backward.invars[kept:])),
            "gradients": list(map(cotangents.atom, self._backward.outvars)),
        }

    def _names(self, before: str) -> Names:
        names = Names(f"{before}_")
        for jaxpr in (self._linear, self._backward):
            for var in jaxpr.invars:
                if id(var) in self._residuals:
                    names.call(var, self._residuals[id(var)])
        for var in (self._linear if before == "t" else self._backward).invars:
            names.of(var)
        return names

    def _cell(self, eqn: Eqn, names: Names) -> Data:
        found = (self._residuals.get(id(atom)) for atom in eqn.invars)
        needs = list(dict.fromkeys(name for name in found if name))
        is_sum = eqn.primitive.name == "add_any"
        return {
            "text": columns.equation_text(eqn, names, is_brief=True),
            "needs": needs,
            "sum": is_sum,
        }

    def _row_of(self, eqn: Eqn, otherwise: int) -> int:
        """The row of the equation that another one was made of."""
        found = marking.marks("/".join(eqn.scope))[:1]
        return found[0] if found and found[0] in self._rows else otherwise

    def _backward_rows(self) -> list[int]:
        """The rows of the backward pass: a sum stands in the row that it is computed for."""
        wanted: dict[int, int] = {}
        found = []
        for eqn in reversed(self._backward.eqns):
            users = [wanted[id(v)] for v in eqn.outvars if id(v) in wanted]
            row = self._row_of(eqn, max(users, default=_ENDS))
            found.append(row)
            for atom in eqn.invars:
                wanted[id(atom)] = max(row, wanted.get(id(atom), _ENDS))
        return found[::-1]


def _row(number: int, name: str) -> Data:
    empty: Data = {"known": [], "linear": [], "transposed": []}
    return {"number": number, "name": name, "line": "", "n": [], **empty}


def _is_used(row: Data) -> bool:
    return bool(row["known"] or row["linear"] or row["transposed"])
