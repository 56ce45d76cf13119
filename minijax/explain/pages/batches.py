"""What `vmap` makes of each equation, and where the batch is in each value.

Input: the program of one example, and which arguments are batches.  Output: for each equation what
it became, with the dimension that runs over the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.core.jaxpr import Atom, ClosedJaxpr, Literal
from minijax.core.trace import current
from minijax.explain.pages import columns, marking
from minijax.explain.pages.columns import Names
from minijax.explain.pages.marking import Marked
from minijax.explain.pages.sources import Linker
from minijax.interpreters import batching, discharge, staging
from minijax.interpreters.batching import BatchTrace

Data = dict[str, Any]
"""JSON."""


def data_of(closed: ClosedJaxpr, dims: Sequence[int | None], size: int, linked: Linker) -> Data:
    """Returns the table of a batch as JSON: `size`, `arguments` and `rows`.

    Args:
        closed: the program of one example.
        dims: the dimension of each argument that runs over the batch; None if there is none.
        size: how many examples there are.
        linked: finds the line of an equation, and what a page has of it.
    """
    marked = marking.mark(discharge.without_references(closed))
    run = _Run(marked, size)
    dims = [
        None if dim is None else dim % (len(aval.shape) + 1)
        for aval, dim in zip(closed.in_avals, dims, strict=True)
    ]
    avals = [
        aval if dim is None else batching.batched_aval(aval, dim, size)
        for aval, dim in zip(closed.in_avals, dims, strict=True)
    ]
    jaxpr, _ = staging.stage(lambda *args: run.of(args, dims), avals)
    names, batched = Names(), Names()
    arguments = [
        {"name": names.binder(var), "batched": batched.binder(own), "dim": dim}
        for var, own, dim in zip(marked.closed.jaxpr.invars, jaxpr.invars, dims, strict=True)
    ]
    rows: dict[int, Data] = {}
    for x in marked.equations:
        if x.holder is None:
            line, numbers = linked(x)
            rows[x.number] = {
                "number": x.number,
                "name": x.eqn.primitive.name,
                "line": line,
                "n": sorted(numbers),
                "text": columns.equation_text(x.eqn, names, is_brief=True),
                "dims": run.dims[x.number],
                "became": [],
            }
    last = min(rows, default=0)
    for eqn in jaxpr.eqns:
        found = [n for n in marking.marks("/".join(eqn.scope))[:1] if n in rows]
        last = found[0] if found else last
        if rows:
            rows[last]["became"].append(columns.equation_text(eqn, batched, is_brief=True))
    return {"size": size, "arguments": arguments, "rows": list(rows.values())}


class _Run:
    """Runs a program on a batch, and notes where the batch is.

    Attributes:
        dims: for each equation the dimension of each result that runs over the batch.
    """

    def __init__(self, marked: Marked, size: int) -> None:
        self._marked = marked
        self._size = size
        self.dims: dict[int, list[int | None]] = {}

    def of(self, args: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
        """The results for whole batches."""
        trace = BatchTrace(current.value, self._size)
        try:
            outs, _ = trace.run(lambda *xs: self._evaluated(trace, xs), args, dims)
        finally:
            trace.finished = True
        return outs

    def _evaluated(self, trace: BatchTrace, args: Sequence[Any]) -> list[Any]:
        closed = self._marked.closed
        values: dict[Atom, Any] = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
        values.update(zip(closed.jaxpr.invars, args, strict=True))

        def read(atom: Atom) -> Any:
            return atom.value if isinstance(atom, Literal) else values[atom]

        for eqn in closed.jaxpr.eqns:
            with staging.restored(eqn):
                outs = trace.process(eqn.primitive, list(map(read, eqn.invars)), eqn.params)
            number = marking.marks("/".join(eqn.scope))[-1]
            self.dims[number] = [trace.split(out)[1] for out in outs]
            values.update(zip(eqn.outvars, outs, strict=True))
        return list(map(read, closed.jaxpr.outvars))
