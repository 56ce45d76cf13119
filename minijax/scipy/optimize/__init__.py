"""Minima of functions.  Mirrors jax.scipy.optimize."""

from minijax.scipy.optimize.minimization import OptimizeResults, minimize

__all__ = ["OptimizeResults", "minimize"]


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
