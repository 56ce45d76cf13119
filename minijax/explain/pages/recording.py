"""The values of one run, small enough to be shown.

Input: a program and its arguments.  Output: for each argument and each result of an equation a
record: the numbers of a small array, a picture of a large one, and who holds which part of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from minijax.core.jaxpr import ClosedJaxpr, Var
from minijax.explain.pages.columns import Names
from minijax.explain.pages.marking import Marked
from minijax.interpreters import staging
from minijax.runtime.array import Array
from minijax.transforms.jit.jit import jit

Record = dict[str, Any]
"""What is shown of one value: JSON."""

_MOST_NUMBERS = 128
_MOST_ELEMENTS = 1 << 20
_MOST_VALUES = 200
_SIDE = 24


def record(
    marked: Marked, closed: ClosedJaxpr, args: Sequence[Any], *, may_run: bool
) -> list[Record]:
    """Runs a program once, and records its arguments and what its equations give.

    Nothing is run where an argument has no value, or the program has effects.

    Args:
        marked: the program with numbers.
        closed: the program.
        args: its arguments.
        may_run: whether it is known to come to an end.
    """
    names = Names()
    for var in (*closed.jaxpr.constvars, *closed.jaxpr.invars):
        names.of(var)
    if not all(isinstance(x, (Array, np.ndarray, np.generic, int, float, complex)) for x in args):
        return []
    found = [
        _record(x, names.of(var), var, f"argument {i}", None)
        for i, (x, var) in enumerate(zip(args, closed.jaxpr.invars, strict=True))
        if _can_be_shown(var)
    ]
    wanted = []
    for eqn in closed.jaxpr.eqns:
        for var in eqn.outvars:
            names.of(var)
            if _can_be_shown(var):
                wanted.append((marked.numbers[id(eqn)], var))
    if (
        not may_run
        or closed.effects
        or any(eqn.primitive.name == "pmap" for eqn in closed.jaxpr.eqns)
    ):
        return found
    wanted = wanted[:_MOST_VALUES]
    jaxpr = closed.jaxpr.replace(outvars=[var for _, var in wanted])
    outs = jit(lambda *xs: staging.eval_jaxpr(jaxpr, closed.consts, *xs))(*args)
    for (number, var), x in zip(wanted, outs, strict=True):
        found.append(_record(x, names.of(var), var, "", number))
    return found


def _can_be_shown(var: Var) -> bool:
    aval = var.aval
    return (
        hasattr(aval, "shape")
        and not getattr(aval, "is_extended", True)
        and math.prod(aval.shape) <= _MOST_ELEMENTS
        and np.dtype(aval.dtype).kind in "biufcV"
        and "ref" not in type(aval).__name__.lower()
    )


def _record(x: Any, name: str, var: Var, role: str, number: int | None) -> Record:
    values = np.asarray(x)
    record: Record = {"name": name, "type": var.aval.str_short(), "shape": list(values.shape)}
    if role:
        record["role"] = role
    if number is not None:
        record["number"] = number
    numbers = values
    if values.dtype.kind == "c":
        numbers = np.abs(values)
    elif values.dtype.kind not in "f":
        numbers = values.astype(np.float64)
    numbers = numbers.astype(np.float64).reshape(-1)
    finite = numbers[np.isfinite(numbers)]
    if finite.size:
        record["least"], record["greatest"] = _rounded(finite.min()), _rounded(finite.max())
    record["nans"] = int(np.isnan(numbers).sum())
    record["zeros"] = int((numbers == 0).sum())
    record["size"] = int(values.size)
    if values.size <= _MOST_NUMBERS:
        record["numbers"] = [_rounded(v) for v in numbers]
    else:
        record["picture"] = _picture(numbers.reshape(values.shape))
    record["devices"] = list(_holders(x))
    return record


def _rounded(value: float) -> float | str:
    return float(f"{value:.4g}") if np.isfinite(value) else str(value)


def _picture(values: np.ndarray[Any, Any]) -> Record:
    """The means of the parts of an array, as the matrix that its last dimension has."""
    matrix = values.reshape(-1, values.shape[-1])
    rows, columns = (_starts(size) for size in matrix.shape)
    sums = np.add.reduceat(np.add.reduceat(matrix, rows, 0), columns, 1)
    heights, widths = np.diff([*rows, matrix.shape[0]]), np.diff([*columns, matrix.shape[1]])
    means = [_rounded(mean) for mean in (sums / np.outer(heights, widths)).reshape(-1)]
    return {"rows": len(rows), "columns": len(columns), "means": means}


def _starts(size: int) -> list[int]:
    """Where parts of a dimension begin, which differ by at most one element."""
    count = min(size, _SIDE)
    return [part * size // count for part in range(count)]


def _holders(x: Any) -> Iterator[Record]:
    """Which device holds which part of an array; nothing for arrays on one device."""
    if not isinstance(x, Array) or len(x.sharding.device_set) == 1:
        return
    for device, index in x.sharding.devices_indices_map(x.shape).items():
        bounds = [
            list(part.indices(n)[:2]) if isinstance(part, slice) else [int(part), int(part) + 1]
            for part, n in zip(index, x.shape, strict=True)
        ]
        yield {"device": str(device), "part": bounds}
