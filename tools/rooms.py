"""The rooms of the package: their layers, and what each may import.

`tools/architecture.py` holds the source text against these tables.
"""

from __future__ import annotations

from typing import NamedTuple


class Room(NamedTuple):
    """A folder or module of the package: its layer, and what it may import from elsewhere."""

    layer: int
    outside: tuple[str, ...] = ()


_NUMPY = ("numpy", "ml_dtypes")

ROOMS = {
    "core": Room(0, (*_NUMPY, "jaxlib._jax")),
    "sharding": Room(1, (*_NUMPY, "jaxlib._jax")),
    "runtime": Room(2, (*_NUMPY, "jaxlib._jax", "jaxlib.xla_client", "jaxlib.version")),
    "interpreters": Room(3, (*_NUMPY, "jaxlib._jax")),
    "lowering": Room(4, (*_NUMPY, "jaxlib._jax", "jaxlib.mlir")),
    "lax": Room(5, (*_NUMPY, "jaxlib.mlir")),
    "transforms": Room(6, _NUMPY),
    "numpy": Room(7, (*_NUMPY, "opt_einsum")),
    "random": Room(8, _NUMPY),
    # Rooms of one layer do not import each other.
    "image": Room(9, _NUMPY),
    "nn": Room(9, _NUMPY),
    "ops": Room(9, _NUMPY),
    "scipy": Room(9, _NUMPY),
    "extend": Room(9, _NUMPY),
    "explain": Room(9, _NUMPY),
    "as_jax": Room(10, (*_NUMPY, "jaxlib._jax", "jaxlib.mlir")),
    "export": Room(10, (*_NUMPY, "jaxlib._jax", "jaxlib.mlir")),
    # `testing` exports the checks of `explain` to tests of programs.
    "testing": Room(10, (*_NUMPY, "hypothesis", "pytest")),
    # `experimental.serialize_executable` re-exports names of `export`.
    "experimental": Room(11, _NUMPY),
    # Folders of `explain` with a layer of their own: they import the rest of `explain`, which does
    # not import them.
    "explain.display": Room(10, (*_NUMPY, "pygments")),
    "explain.xla": Room(10, (*_NUMPY, "jaxlib._hlo", "jaxlib._jax", "jaxlib.xla_client")),
    # A page uses the oracle of `testing` to find devices that would wait forever.
    "explain.pages": Room(11, _NUMPY),
}
"""Rooms by name; the name of a folder within a room is dotted."""

FACADE = Room(12, _NUMPY)

MAX_ARROWS = 100
"""The number of pairs of top-level rooms of which one imports the other."""

MAX_UPWARD = 3

UPWARD = {
    ("minijax.core.deferral", "minijax.explain.display.rich"): (
        "a notebook shows arrays as HTML; a program without one never imports `explain`"
    ),
    ("minijax.core.printing", "minijax.explain.display.highlighting"): (
        "only a jaxpr that is printed in colour needs Pygments"
    ),
}
"""Deferred imports of a higher layer, by module and target, each with its reason."""

OUTSIDE_OF_MODULE = {
    "minijax.core.capabilities": ("jaxlib.version",),
    "minijax.experimental.custom_partitioning.partitioning": ("jaxlib.xla_client",),
    "minijax.runtime.profiling": ("jaxlib._profiler", "jaxlib._profile_data"),
    "minijax.sharding.hlo": ("jaxlib.xla_client",),
    "minijax.testing.interpreter": ("jaxlib.mlir",),
}
"""What a single module may import beyond its room."""


def room_of_module(module: str) -> str:
    """Returns the smallest room that a module belongs to; an empty string for a façade."""
    parts = module.split(".")
    names = (".".join(parts[1:length]) for length in range(len(parts), 1, -1))
    return next((name for name in names if name in ROOMS), "")


def top_room(room: str) -> str:
    """Returns the folder or module of the package that contains a room."""
    return room.partition(".")[0]
