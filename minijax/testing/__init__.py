"""What tests need, of this project and of programs written with it: a leaf of the layers."""

from minijax.explain.expectations import assert_collectives
from minijax.testing.interpreter import interpreted
from minijax.testing.oracle import simulate, simulate_devices, simulate_program
from minijax.testing.reports import CollectiveMismatch

__all__ = [
    "CollectiveMismatch",
    "assert_collectives",
    "interpreted",
    "simulate",
    "simulate_devices",
    "simulate_program",
]


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
