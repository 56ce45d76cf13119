"""Linear algebra on the last two dimensions of arrays; the others are a batch."""

from minijax.lax.linalg.cholesky import cholesky, cholesky_p
from minijax.lax.linalg.triangular import triangular_solve, triangular_solve_p

__all__ = [
    "cholesky",
    "cholesky_p",
    "triangular_solve",
    "triangular_solve_p",
]


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
