"""Linear algebra on the last two dimensions of arrays; the others are a batch."""

from minijax.lax.linalg.cholesky import cholesky, cholesky_p
from minijax.lax.linalg.eig import EigImplementation, eig, eig_p
from minijax.lax.linalg.eigh import EighImplementation, eigh, eigh_p
from minijax.lax.linalg.svd import SvdAlgorithm, svd, svd_p
from minijax.lax.linalg.triangular import triangular_solve, triangular_solve_p

__all__ = [
    "EigImplementation",
    "EighImplementation",
    "SvdAlgorithm",
    "cholesky",
    "cholesky_p",
    "eig",
    "eig_p",
    "eigh",
    "eigh_p",
    "svd",
    "svd_p",
    "triangular_solve",
    "triangular_solve_p",
]


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
