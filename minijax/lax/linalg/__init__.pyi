from minijax.lax.linalg.factorizations import cholesky as cholesky, cholesky_p as cholesky_p
from minijax.lax.linalg.eigenvalues import (
    EigImplementation as EigImplementation,
    eig as eig,
    eig_p as eig_p,
)
from minijax.lax.linalg.eigenvalues import (
    EighImplementation as EighImplementation,
    eigh as eigh,
    eigh_p as eigh_p,
)
from minijax.lax.linalg.factorizations import (
    householder_product as householder_product,
    householder_product_p as householder_product_p,
    ormqr as ormqr,
    ormqr_p as ormqr_p,
)
from minijax.lax.linalg.lu import (
    lu as lu,
    lu_p as lu_p,
    lu_pivots_to_permutation as lu_pivots_to_permutation,
    lu_pivots_to_permutation_p as lu_pivots_to_permutation_p,
)
from minijax.lax.linalg.svd import qdwh as qdwh
from minijax.lax.linalg.factorizations import qr as qr, qr_p as qr_p
from minijax.lax.linalg.eigenvalues import (
    hessenberg as hessenberg,
    hessenberg_p as hessenberg_p,
    schur as schur,
    schur_p as schur_p,
)
from minijax.lax.linalg.svd import SvdAlgorithm as SvdAlgorithm, svd as svd, svd_p as svd_p
from minijax.lax.linalg.lu import (
    triangular_solve as triangular_solve,
    triangular_solve_p as triangular_solve_p,
)
from minijax.lax.linalg.eigenvalues import (
    tridiagonal as tridiagonal,
    tridiagonal_p as tridiagonal_p,
    tridiagonal_solve as tridiagonal_solve,
    tridiagonal_solve_p as tridiagonal_solve_p,
)
from minijax.lax.linalg.factorizations import (
    cholesky_update as cholesky_update,
    cholesky_update_p as cholesky_update_p,
    symmetric_product as symmetric_product,
    symmetric_product_p as symmetric_product_p,
)
