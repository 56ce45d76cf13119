"""Programs for `pmap`, which `vmap` runs as well: what tests compare."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax import lax

ROWS = np.arange(16, dtype=np.float32).reshape(4, 4)
NUMBERS = np.arange(4, dtype=np.float32)
RING = [(0, 1), (1, 2), (2, 3), (3, 0)]


class Program(NamedTuple):
    """A function of one slice over the axis "i", and what it is mapped over."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    in_axes: Any = 0
    out_axes: Any = 0

    def by(self, mapping: Callable[..., Any]) -> Any:
        """The results by `pmap` or `vmap`."""
        mapped = mapping(self.function, axis_name="i", in_axes=self.in_axes, out_axes=self.out_axes)
        return mapped(*self.args)


def _conditional(x: Any) -> Any:
    return lax.cond(x[0] > 3, jnp.sin, jnp.cos, x)


def _accumulated(x: Any) -> Any:
    return lax.scan(lambda c, y: (c + lax.psum(y, "i"), c), x[0], x)


def _gradient(x: Any) -> Any:
    return minijax.grad(lambda x: lax.psum(x**2, "i").sum())(x)


def _matched(x: Any, y: Any) -> Any:
    return {"sum": x + y["a"], "all": lax.psum(x * y["b"], "i")}


PROGRAMS = {
    "local": Program(lambda x: jnp.sin(x) * 2, (ROWS,)),
    "shared": Program(lambda x, y: x @ y, (ROWS, ROWS), in_axes=(0, None)),
    "columns": Program(lambda x: x + 1, (np.ones((3, 4, 2), np.float32),), 1, 2),
    "last": Program(lambda x: x.sum(), (ROWS,), in_axes=-1),
    "trees": Program(_matched, (NUMBERS, {"a": NUMBERS, "b": 2.0}), (0, {"a": 0, "b": None})),
    "bool": Program(lambda x: x > 2, (ROWS,)),
    "psum": Program(lambda x: lax.psum(x, "i"), (ROWS,)),
    "pmean": Program(lambda x: x / lax.pmean(x, "i"), (NUMBERS,)),
    "extremes": Program(lambda x: (lax.pmax(x, "i"), lax.pmin(x, "i")), (ROWS,)),
    "pargmax": Program(lambda x: lax.pargmax(x, "i"), (ROWS,)),
    "all_gather": Program(lambda x: lax.all_gather(x, "i", axis=1), (ROWS,)),
    "all_gather_tiled": Program(lambda x: lax.all_gather(x, "i", tiled=True), (ROWS,)),
    "psum_scatter": Program(lambda x: lax.psum_scatter(x, "i"), (ROWS,)),
    "psum_scatter_tiled": Program(lambda x: lax.psum_scatter(x, "i", tiled=True), (ROWS,)),
    "all_to_all": Program(lambda x: lax.all_to_all(x, "i", 0, 0), (ROWS,)),
    "ppermute": Program(lambda x: lax.ppermute(x, "i", RING), (ROWS,)),
    "pshuffle": Program(lambda x: lax.pshuffle(x, "i", [3, 1, 0, 2]), (ROWS,)),
    "pbroadcast": Program(lambda x: lax.pbroadcast(x, "i", 2), (ROWS,)),
    "axis_index": Program(lambda x: lax.axis_index("i"), (ROWS,)),
    "axis_size": Program(lambda x: x * lax.axis_size("i"), (ROWS,)),
    "constant": Program(lambda x: lax.psum(1, "i"), (ROWS,)),
    "grad": Program(_gradient, (ROWS,)),
    "scan": Program(_accumulated, (ROWS,)),
    "cond": Program(_conditional, (ROWS,)),
    "jit": Program(minijax.jit(lambda x: lax.psum(x, "i")), (ROWS,)),
    "inner_vmap": Program(minijax.vmap(lambda x: lax.psum(x, ("i", "j")), axis_name="j"), (ROWS,)),
}


def nested(outer: Callable[..., Any], inner: Callable[..., Any]) -> Any:
    """Two maps, in each other: of 2 slices of 4."""

    def function(x: Any, y: Any) -> Any:
        total = lax.psum(x, "i") + 10 * lax.psum(x, "j") + 100 * lax.psum(x, ("i", "j"))
        gathered = lax.all_gather(lax.all_gather(x, "i"), "j")
        return total + y.sum(), x > 2, gathered + lax.axis_index(("j", "i"))

    def middle(x: Any, y: Any) -> Any:
        found = inner(function, axis_name="j", in_axes=(0, None), out_axes=(0, 0, 1))(x, y)
        return *found, lax.axis_index("i")

    mapped = outer(middle, axis_name="i", out_axes=(0, 0, 1, 0))
    return mapped(NUMBERS.reshape(2, 2).repeat(2, 1), np.ones((2, 3), np.float32))
