"""Linear algebra on the last two dimensions of arrays; the others are a batch."""

from minijax.lax.linalg.cholesky import cholesky, cholesky_p
from minijax.lax.linalg.eig import EigImplementation, eig, eig_p
from minijax.lax.linalg.eigh import EighImplementation, eigh, eigh_p
from minijax.lax.linalg.householder import (
    householder_product,
    householder_product_p,
    ormqr,
    ormqr_p,
)
from minijax.lax.linalg.lu import lu, lu_p, lu_pivots_to_permutation, lu_pivots_to_permutation_p
from minijax.lax.linalg.qdwh import qdwh
from minijax.lax.linalg.qr import qr, qr_p
from minijax.lax.linalg.schur import hessenberg, hessenberg_p, schur, schur_p
from minijax.lax.linalg.svd import SvdAlgorithm, svd, svd_p
from minijax.lax.linalg.triangular import triangular_solve, triangular_solve_p
from minijax.lax.linalg.tridiagonal import (
    tridiagonal,
    tridiagonal_p,
    tridiagonal_solve,
    tridiagonal_solve_p,
)
from minijax.lax.linalg.updates import (
    cholesky_update,
    cholesky_update_p,
    symmetric_product,
    symmetric_product_p,
)

__all__ = [
    "EigImplementation",
    "EighImplementation",
    "SvdAlgorithm",
    "cholesky",
    "cholesky_p",
    "cholesky_update",
    "cholesky_update_p",
    "eig",
    "eig_p",
    "eigh",
    "eigh_p",
    "hessenberg",
    "hessenberg_p",
    "householder_product",
    "householder_product_p",
    "lu",
    "lu_p",
    "lu_pivots_to_permutation",
    "lu_pivots_to_permutation_p",
    "ormqr",
    "ormqr_p",
    "qdwh",
    "qr",
    "qr_p",
    "schur",
    "schur_p",
    "svd",
    "svd_p",
    "symmetric_product",
    "symmetric_product_p",
    "triangular_solve",
    "triangular_solve_p",
    "tridiagonal",
    "tridiagonal_p",
    "tridiagonal_solve",
    "tridiagonal_solve_p",
]


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
