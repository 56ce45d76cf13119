from minijax.numpy.contraction import vecdot as vecdot
from minijax.numpy.linalg.factorizations import det as det, slogdet as slogdet
from minijax.numpy.linalg.equations import (
    inv as inv,
    lstsq as lstsq,
    pinv as pinv,
    solve as solve,
    tensorinv as tensorinv,
    tensorsolve as tensorsolve,
)
from minijax.numpy.linalg.factorizations import (
    cholesky as cholesky,
    eig as eig,
    eigh as eigh,
    eigvals as eigvals,
    eigvalsh as eigvalsh,
    qr as qr,
    svd as svd,
    svdvals as svdvals,
)
from minijax.numpy.linalg.equations import (
    cond as cond,
    matrix_norm as matrix_norm,
    matrix_rank as matrix_rank,
    norm as norm,
    vector_norm as vector_norm,
)
from minijax.numpy.linalg.equations import (
    cross as cross,
    diagonal as diagonal,
    matmul as matmul,
    matrix_power as matrix_power,
    matrix_transpose as matrix_transpose,
    multi_dot as multi_dot,
    outer as outer,
    tensordot as tensordot,
    trace as trace,
)
