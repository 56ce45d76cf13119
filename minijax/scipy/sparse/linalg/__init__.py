"""Iterative solutions of linear systems.  Mirrors jax.scipy.sparse.linalg."""

from minijax.scipy.sparse.linalg.conjugate_gradients import bicgstab, cg
from minijax.scipy.sparse.linalg.minimal_residuals import gmres

__all__ = ["bicgstab", "cg", "gmres"]


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
