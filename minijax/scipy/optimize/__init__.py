"""Minima of functions.  Mirrors jax.scipy.optimize."""

from minijax.scipy.optimize.minimization import OptimizeResults, minimize

__all__ = ["OptimizeResults", "minimize"]
