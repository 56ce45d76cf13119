"""Integrals of sampled values.  Mirrors jax.scipy.integrate."""

from minijax.numpy.calculus import trapezoid

__all__ = ["trapezoid"]


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
