"""What tests need, of this project and of programs written with it: a leaf of the layers.

The names that need Hypothesis, `given_mesh`, `laws` and `strategies`, load when they are first
named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minijax.core import deferral
from minijax.explain.communication import assert_collectives
from minijax.testing.exchanges import CollectiveMismatch
from minijax.testing.interpreter import interpreted
from minijax.testing.oracle import simulate, simulate_devices, simulate_program

if TYPE_CHECKING:
    from minijax.testing import laws as laws
    from minijax.testing import strategies as strategies
    from minijax.testing.strategies.arguments import given_mesh

__all__ = [
    "CollectiveMismatch",
    "assert_collectives",
    "given_mesh",
    "interpreted",
    "laws",
    "simulate",
    "simulate_devices",
    "simulate_program",
    "strategies",
]


__getattr__ = deferral.attributes(
    __name__, modules=("laws", "strategies"), names={"testing.strategies.arguments": "given_mesh"}
)


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
