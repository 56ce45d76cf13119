"""The singular value decomposition, and the polar decomposition that may lead to it.

The polar decomposition is found by the dynamically weighted Halley iteration: Nakatsukasa, Bai and
Gygi (2010), "Optimizing Halley's iteration for computing the matrix polar decomposition";
Nakatsukasa and Higham (2013), §3, for its two forms.  The iteration
X ← X (a + b XᴴX) (1 + c XᴴX)⁻¹ drives all singular values to 1.  A lower bound of theirs gives the
weights, so these are known before anything is computed.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import AbstractValue, ShapedArray, aval_of, shaped_array
from minijax.core.errors import MissingRule, error
from minijax.core.primitive import Dual
from minijax.interpreters.structural import broadcast_in_dim, full
from minijax.lax import binary, reduction, unary
from minijax.lax.binary import select
from minijax.lax.control_flow.looping import while_loop
from minijax.lax.creation import broadcasted_iota, convert_element_type
from minijax.lax.families import INEXACT
from minijax.lax.families import operand as as_operand
from minijax.lax.linalg import kernels
from minijax.lax.linalg.eigenvalues import Subset, refuse_subset, subset_size
from minijax.lax.linalg.factorizations import cholesky, qr
from minijax.lax.linalg.lu import triangular_solve
from minijax.lax.shape import concatenate, unstack
from minijax.lax.slicing import dynamic_index_in_dim, slice_in_dim
from minijax.lax.unary import reciprocal, sqrt, square
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array

Weights = tuple[float, float, float]

# Above this c the inverse is ill-conditioned, and QR takes the place of Cholesky's factors.
_LARGEST_FOR_CHOLESKY = 100.0
_ITERATIONS = 10


def qdwh(
    x: ArrayLike,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Array, Array, Array, Array]:
    """The polar decomposition of a matrix: (U, H, how many iterations, whether they converged).

    U has orthonormal columns, H is Hermitian and positive semidefinite, and U H = x.

    Shapes:     x: T[m, n], m >= n -> T[m, n], T[n, n], int32[], bool[].
    Dtypes:     float32, float64, complex64, complex128.
    Derivative: forward mode alone, through the loop.
    Source:     mirrors jax.lax.linalg.qdwh (0.10); Nakatsukasa, Bai and Gygi (2010).

    Args:
        x: a matrix.
        is_hermitian: whether x is Hermitian, which saves no work here.
        max_iterations: how many at most; 10 by default.
        eps: the relative precision wanted; that of the dtype by default.
        dynamic_shape: how many rows and columns count, where the others are padding.

    Raises:
        ValueError: the dtype is not inexact; x is not a matrix, has more columns than rows, or is
            not square where it is Hermitian.

    Example:
        >>> u, h, count, converged = lax.linalg.qdwh(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
        >>> bool(converged)
        True
    """
    matrix: Array = as_operand(x)
    _check(aval_of(matrix), is_hermitian)
    real = dtypes.real_dtype_of(matrix.dtype)
    if dynamic_shape is not None:
        matrix = _masked(matrix, dynamic_shape)
    precision = float(dtypes.finfo(real).eps) if eps is None else float(eps)
    limit = _ITERATIONS if max_iterations is None else max_iterations
    weights = _schedule(precision)
    first = sum(c > _LARGEST_FOR_CHOLESKY for _, _, c in weights[:limit])
    u = _scaled(matrix)
    for each in weights[:first]:
        u = _step_by_qr(u, *each)
    # The first steps change little where all singular values are alike, and prove nothing.
    change = full((), math.inf, real)
    tolerance = full((), (4 * precision) ** (1 / 3), real)

    def goes_on(state: tuple[Any, Any, Any]) -> Any:
        _, change, count = state
        return binary.bitwise_and(binary.lt(count, limit), binary.gt(change, tolerance))

    def step(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        u, _, count = state
        new = _step_by_cholesky(u, *_weights_at(weights[first:], binary.sub(count, first), real))
        return new, _norm(binary.sub(new, u)), binary.add(count, 1)

    u, change, count = while_loop(goes_on, step, (u, change, np.int32(first)))
    # What rounding has left is corrected by a step of Newton's and Schulz's iteration.
    cubed = kernels.product(u, kernels.product(kernels.adjoint(u), u))
    u = _combined(1.5, u, -0.5, cubed)
    h = kernels.symmetrized(kernels.product(kernels.adjoint(u), matrix))
    return u, h, count, unary.bitwise_not(binary.gt(change, tolerance))


def _check(aval: AbstractValue, is_hermitian: bool) -> None:
    if not any(dtypes.issubdtype(aval.dtype, kind) for kind in INEXACT):
        problem = "the dtype is not inexact."
    elif aval.ndim != 2:
        problem = "x is not a matrix."
    elif aval.shape[0] < aval.shape[1]:
        problem = "x has more columns than rows."
    elif is_hermitian and aval.shape[0] != aval.shape[1]:
        problem = "x cannot be Hermitian, as it is not square."
    else:
        return
    error(
        ValueError, "lax.linalg.qdwh", problem, got={"x": aval}, expected="x: T[m, n] with m >= n"
    )


def _schedule(precision: float) -> list[Weights]:
    """The weights of each iteration, if no singular value is less than `precision` at first."""
    bound, weights = precision, list[Weights]()
    while abs(1 - bound) > 4 * precision and len(weights) < _ITERATIONS:
        square = bound**2
        d = (4 * (1 - square) / square**2) ** (1 / 3)
        root = math.sqrt(1 + d)
        a = root + 0.5 * math.sqrt(8 - 4 * d + 8 * (2 - square) / (square * root))
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        weights.append((a, b, c))
        bound = min(bound * (a + b * square) / (1 + c * square), 1.0)
    # Those of Halley's own iteration, to which all others tend.
    return [*weights, (3.0, 1.0, 3.0)]


def _weights_at(weights: list[Weights], index: Array, dtype: np.dtype[Any]) -> tuple[Any, Any, Any]:
    last = binary.min(index, len(weights) - 1)
    a, b, c = unstack(dynamic_index_in_dim(np.array(weights, dtype), last, keepdims=False))
    return a, b, c


def _masked(x: Array, shape: tuple[int, int]) -> Any:
    """`x` with zeros behind so many rows and columns."""
    places = [broadcasted_iota("int32", x.shape, dim) for dim in range(2)]
    rows, columns = (
        binary.lt(place, convert_element_type(size, "int32"))
        for place, size in zip(places, shape, strict=True)
    )
    return select(binary.bitwise_and(rows, columns), x, full(x.shape, 0, x.dtype))


def _scaled(x: Array) -> Any:
    """`x` divided by a bound of its norm: the geometric mean of the largest sums of either side."""
    sizes = unary.abs(x)
    by_rows, by_columns = (
        reduction.reduce_max(reduction.reduce_sum(sizes, (dim,)), (0,)) for dim in range(2)
    )
    bound = binary.mul(sqrt(by_rows), sqrt(by_columns))
    one = full((), 1, bound.dtype)
    bound = select(binary.gt(bound, full((), 0, bound.dtype)), bound, one)
    return binary.div(x, _spread(bound, x))


def _step_by_qr(u: Array, a: float, b: float, c: float) -> Any:
    """By the orthonormal columns of √c X with the identity under it."""
    rows, columns = u.shape
    eye = kernels.identity_like(full((columns, columns), 0, u.dtype))
    stacked = concatenate([binary.mul(u, _spread(math.sqrt(c), u)), eye], 0)
    q, _ = qr(stacked, full_matrices=False)
    upper, lower = slice_in_dim(q, 0, rows), slice_in_dim(q, rows, rows + columns)
    turned = kernels.product(upper, kernels.adjoint(lower))
    return _combined(b / c, u, (a - b / c) / math.sqrt(c), turned)


def _step_by_cholesky(u: Array, a: Array, b: Array, c: Array) -> Any:
    """By the Cholesky factors of 1 + c XᴴX."""
    gram = kernels.product(kernels.adjoint(u), u)
    gram = binary.add(binary.mul(gram, _spread(c, gram)), kernels.identity_like(gram))
    factor = cholesky(gram, symmetrize_input=False)
    half = triangular_solve(factor, u, lower=True, transpose_a=True, conjugate_a=True)
    ratio = binary.div(b, c)
    return _combined(ratio, u, binary.sub(a, ratio), triangular_solve(factor, half, lower=True))


def _combined(s: float | Array, x: Array, t: float | Array, y: Array) -> Any:
    """s x + t y, for numbers s and t."""
    return binary.add(binary.mul(x, _spread(s, x)), binary.mul(y, _spread(t, y)))


def _spread(number: float | Array, like: Array) -> Any:
    """A number in each place of an array of the shape and dtype of another."""
    if isinstance(number, float):
        return full(like.shape, number, like.dtype)
    return broadcast_in_dim(kernels.converted(number, like.dtype), like.shape, ())


def _norm(x: Array) -> Any:
    """Frobenius' norm of a matrix."""
    return sqrt(reduction.reduce_sum(square(unary.abs(x)), (0, 1)))


class SvdAlgorithm(enum.Enum):
    """The algorithm for singular value decompositions.

    Attributes:
        DEFAULT: what suits the platform and the shape.
        QR: by QR iterations: gesvd.
        JACOBI: by rotations: gesvdj, on GPU only.
        POLAR: by the polar decomposition: gesvdp, on GPU only.
        DIVIDE_AND_CONQUER: gesdd, LAPACK's and that of AMD's GPUs.

    Example:
        >>> x = jnp.array([[0.0, 3.0], [-4.0, 0.0]])
        >>> qr = lax.linalg.SvdAlgorithm.QR
        >>> lax.linalg.svd(x, compute_uv=False, algorithm=qr).round()
        Array([4., 3.], dtype=float32)

    Example:
        >>> lax.linalg.SvdAlgorithm("QR")
        <SvdAlgorithm.QR: 'QR'>
    """

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


# cuSOLVER's documentation recommends Jacobi's method for small matrices.
_LARGEST_FOR_JACOBI = 1024
# Up to this size the kernel for batches runs, which knows full matrices only.
_LARGEST_IN_BATCHES = 32


class _Params(NamedTuple):
    """What is asked for of a decomposition."""

    full_matrices: bool
    compute_uv: bool
    subset_by_index: Subset
    algorithm: SvdAlgorithm | None


class Svd(kernels.BatchedPrimitive):
    """Descending s, and with `compute_uv` U and Vᴴ with orthonormal columns: x = U diag(s) Vᴴ.

    Shapes: x: T[..., m, n] -> real T[..., k], T[..., m, k], T[..., k, n] with k = min(m, n), or the
        size of the subset; the latter two are square with `full_matrices`.
    """

    name = "svd"
    multiple_results = True

    def abstract_eval(self, x: ShapedArray, **params: Any) -> list[ShapedArray]:
        full_matrices, compute_uv, subset, _ = _Params(**params)
        kernels.check_matrices("svd", "x", x)
        *batch, rows, columns = x.shape
        size = subset_size("svd", min(rows, columns), subset)
        values = shaped_array((*batch, size), dtypes.real_dtype_of(x.dtype), x.weak_type)
        if not compute_uv:
            return [values]
        shapes = _shapes_of_vectors(x.shape, size, full_matrices)
        return [values, *(shaped_array(shape, x.dtype, x.weak_type) for shape in shapes)]

    def compute(self, platform: str, x: Array, **params: Any) -> list[Any]:
        full_matrices, compute_uv, subset, algorithm = _Params(**params)
        refuse_subset("svd", min(x.shape[-2:]), subset)
        if 0 in x.shape:
            results = _of_nothing(x, full_matrices)
        elif platform == "cpu":
            results = _by_lapack(x, full_matrices, compute_uv, algorithm)
        elif platform in kernels.GPUS:
            results = _on_gpu(platform, x, full_matrices, compute_uv, algorithm)
        else:
            kernels.refuse_platform("svd", platform)
        return results if compute_uv else results[:1]

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], **params: Any) -> Dual:
        (x,), (x_dot,) = primals, tangents
        square = x.shape[-2] == x.shape[-1]
        compute_uv = params["compute_uv"]
        if compute_uv and params["full_matrices"] and not square:
            problem = "there is no derivative of the singular vectors that complete the matrices."
            fix = "svd(x, full_matrices=False)"
            error(MissingRule, "lax.linalg.svd", problem, got={"x": x}, fix=fix)
        refuse_subset("svd", min(x.shape[-2:]), params["subset_by_index"])
        outs = self.bind(x, **(params | {"compute_uv": True, "full_matrices": False}))
        inner, vectors_dot = _tangents(outs, x_dot, compute_uv)
        outs_dot = [kernels.real_part(kernels.diagonal(inner)), *vectors_dot]
        return (outs, outs_dot) if compute_uv else (outs[:1], outs_dot)


def _shapes_of_vectors(
    shape: Sequence[int], size: int, full_matrices: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    *batch, rows, columns = shape
    if full_matrices:
        return (*batch, rows, rows), (*batch, columns, columns)
    return (*batch, rows, size), (*batch, size, columns)


def _of_nothing(x: Array, full_matrices: bool) -> list[Any]:
    """The decomposition of matrices without rows or columns: no values, any orthonormal vectors."""
    size = min(x.shape[-2:])
    values = full((*x.shape[:-2], size), 0, dtypes.real_dtype_of(x.dtype))
    shapes = _shapes_of_vectors(x.shape, size, full_matrices)
    return [values, *(kernels.identity_like(full(shape, 0, x.dtype)) for shape in shapes)]


def _by_lapack(
    x: Array, full_matrices: bool, compute_uv: bool, algorithm: SvdAlgorithm | None
) -> list[Any]:
    known = (None, SvdAlgorithm.DEFAULT, SvdAlgorithm.QR, SvdAlgorithm.DIVIDE_AND_CONQUER)
    if algorithm not in known:
        kernels.refuse_implementation("svd", "cpu", algorithm, known)
    routine = "gesvd" if algorithm is SvdAlgorithm.QR else "gesdd"
    mode = ("A" if full_matrices else "S") if compute_uv else "N"
    return _called(
        "cpu",
        kernels.routine("svd", "cpu", routine, x.dtype),
        x,
        # What is not computed takes no more memory than it must.
        _shapes_of_vectors(x.shape, min(x.shape[-2:]), full_matrices and compute_uv),
        {"mode": np.uint8(ord(mode))},
    )


def _on_gpu(
    platform: str, x: Array, full_matrices: bool, compute_uv: bool, algorithm: SvdAlgorithm | None
) -> list[Any]:
    if algorithm in (None, SvdAlgorithm.DEFAULT):
        small = max(x.shape[-2:]) <= _LARGEST_FOR_JACOBI
        algorithm = SvdAlgorithm.JACOBI if small else SvdAlgorithm.QR
    if algorithm in (SvdAlgorithm.JACOBI, SvdAlgorithm.POLAR):
        return _by_gesvdj_or_gesvdp(platform, x, full_matrices, compute_uv, algorithm)
    if algorithm is SvdAlgorithm.DIVIDE_AND_CONQUER and platform == "cuda":
        kernels.refuse_implementation("svd", platform, algorithm, tuple(SvdAlgorithm)[:4])
    # The routine takes tall matrices only: the rows of a wide one are the columns of a tall one.
    transposed = x.shape[-2] < x.shape[-1] and algorithm is SvdAlgorithm.QR
    shapes = _shapes_of_vectors(x.shape, min(x.shape[-2:]), full_matrices)
    if transposed:
        shapes = shapes[::-1]
    routine = "gesvd" if algorithm is SvdAlgorithm.QR else "gesdd"
    values, *vectors = _called(
        platform,
        kernels.routine("svd", platform, routine, x.dtype),
        x,
        shapes if compute_uv else ((), ()),
        {"full_matrices": full_matrices, "compute_uv": compute_uv, "transposed": transposed},
        by_rows=transposed,
    )
    return [values, *(vectors[::-1] if transposed else vectors)]


def _by_gesvdj_or_gesvdp(
    platform: str, x: Array, full_matrices: bool, compute_uv: bool, algorithm: SvdAlgorithm
) -> list[Any]:
    """These give V in place of Vᴴ."""
    size = min(x.shape[-2:])
    jacobi = algorithm is SvdAlgorithm.JACOBI
    computes_full = full_matrices or (jacobi and size <= _LARGEST_IN_BATCHES)
    of_u, (*batch, rows, columns) = _shapes_of_vectors(x.shape, size, computes_full)
    values, u, v = _called(
        platform,
        kernels.routine("svd", platform, "gesvdj" if jacobi else "gesvdp", x.dtype),
        x,
        (of_u, (*batch, columns, rows)),
        {"full_matrices": computes_full, "compute_uv": compute_uv},
    )
    vh = kernels.adjoint(v)
    if computes_full and not full_matrices:
        u = slice_in_dim(u, 0, size, axis=u.ndim - 1)
        vh = slice_in_dim(vh, 0, size, axis=vh.ndim - 2)
    return [values, u, vh]


def _called(
    platform: str,
    target: str,
    x: Array,
    shapes: Sequence[tuple[int, ...]],
    attributes: dict[str, Any],
    by_rows: bool = False,
) -> list[Any]:
    """Singular values and what a kernel gives of the vectors, NaN where it failed."""
    batch = x.shape[:-2]
    of_values = ((*batch, min(x.shape[-2:])), dtypes.real_dtype_of(x.dtype))
    of_vectors = [(shape, x.dtype) for shape in shapes]
    _, *outs, info = kernels.call(
        platform,
        target,
        [x],
        [(x.shape, x.dtype), of_values, *of_vectors, (batch, "int32")],
        attributes,
        batch=len(batch),
        aliases={0: 0},
        by_rows=by_rows,
    )
    succeeded = binary.eq(info, full(batch, 0, info.dtype))
    return [kernels.nan_unless(succeeded, out) if out.shape else out for out in outs]


def _tangents(outs: Sequence[Any], x_dot: Array, compute_uv: bool) -> tuple[Any, Sequence[Any]]:
    """P = Uᴴ x' V, whose diagonal is s', and with `compute_uv` U' and V'ᴴ.

    With F_ij = 1 / (s_j² - s_i²) off the diagonal, Townsend (2016, "Differentiating the singular
    value decomposition") gives U' = U (F ∘ (P S + S Pᴴ)) + (1 - U Uᴴ) x' V / S and, in V, the same
    of the adjoint matrix.  For complex matrices P has an imaginary diagonal besides, of which the
    phases of U take all.
    """
    values, u, vh = outs
    uh, v = kernels.adjoint(u), kernels.adjoint(vh)
    inner = kernels.product(kernels.product(uh, x_dot), v)
    if not compute_uv:
        return inner, ()
    columns = kernels.converted(values, u.dtype)
    gaps = _reciprocal_gaps_of_squares(values, u.dtype)
    scaled = kernels.scaled_columns(inner, columns)
    of_adjoint = kernels.scaled_columns(kernels.adjoint(inner), columns)
    phases = kernels.halved(binary.sub(inner, kernels.adjoint(inner)))
    phases = kernels.scaled_columns(kernels.only_diagonal(phases), _reciprocal_or_zero(columns))
    u_turn = binary.add(binary.mul(gaps, kernels.plus_adjoint(scaled)), phases)
    v_turn = binary.mul(gaps, kernels.plus_adjoint(of_adjoint))
    u_dot = kernels.product(u, u_turn)
    v_dot = kernels.product(v, v_turn)
    rows, size = u.shape[-2:]
    if rows > size:
        u_dot = binary.add(u_dot, _outside(u, kernels.product(x_dot, v), columns))
    if v.shape[-2] > size:
        moved = kernels.product(kernels.adjoint(x_dot), u)
        v_dot = binary.add(v_dot, _outside(v, moved, columns))
    return inner, (u_dot, kernels.adjoint(v_dot))


def _outside(u: Array, moved: Array, values: Array) -> Any:
    """(1 - U Uᴴ) y / S."""
    within = kernels.product(u, kernels.product(kernels.adjoint(u), moved))
    rest = binary.sub(moved, within)
    return binary.div(
        rest, broadcast_in_dim(values, rest.shape, (*range(rest.ndim - 2), rest.ndim - 1))
    )


def _reciprocal_gaps_of_squares(values: Array, dtype: np.dtype[Any]) -> Any:
    """1 / (s_j² - s_i²) off the diagonal, by (s_j + s_i) (s_j - s_i), which cancels less."""
    in_column, in_row = kernels.pairs(values)
    gaps = binary.mul(binary.add(in_column, in_row), binary.sub(in_column, in_row))
    return kernels.converted(kernels.reciprocals_off_diagonal(gaps), dtype)


def _reciprocal_or_zero(x: Array) -> Any:
    is_zero = binary.eq(x, full(x.shape, 0, x.dtype))
    one = full(x.shape, 1, x.dtype)
    return select(is_zero, full(x.shape, 0, x.dtype), reciprocal(select(is_zero, one, x)))


svd_p = Svd()


@overload
def svd(
    x: Array,
    *,
    full_matrices: bool = ...,
    compute_uv: Literal[True] = ...,
    subset_by_index: Subset = ...,
    algorithm: SvdAlgorithm | None = ...,
) -> tuple[Array, Array, Array]: ...
@overload
def svd(
    x: Array,
    *,
    full_matrices: bool = ...,
    compute_uv: Literal[False],
    subset_by_index: Subset = ...,
    algorithm: SvdAlgorithm | None = ...,
) -> Array: ...
@overload
def svd(
    x: Array,
    *,
    full_matrices: bool = ...,
    compute_uv: bool = ...,
    subset_by_index: Subset = ...,
    algorithm: SvdAlgorithm | None = ...,
) -> Array | tuple[Array, Array, Array]: ...


def svd(
    x: Array,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: Subset = None,
    algorithm: SvdAlgorithm | None = None,
) -> Array | tuple[Array, Array, Array]:
    """The singular value decomposition: (U, s, Vᴴ) with x = U diag(s) Vᴴ, or s alone.

    U and V have orthonormal columns; s descends.  All are NaN where the iteration did not converge.

    Shapes:     x: T[..., m, n] -> T[..., m, k], real T[..., k], T[..., k, n], where k = min(m, n);
                U is T[..., m, m] and Vᴴ T[..., n, n] with `full_matrices`.
    Dtypes:     float32, float64, complex64, complex128; the singular values are real.
    Derivative: of U and V only where singular values differ and are not zero, and not of full
                matrices that are not square.
    Lowers to:  LAPACK's gesdd or gesvd on CPU, cuSOLVER's gesvdj, gesvd or gesvdp on GPU.

    Args:
        x: matrices.
        full_matrices: whether U and V are completed to square matrices.
        compute_uv: whether U and Vᴴ are wanted.
        subset_by_index: the indices [start, end) of the singular values wanted; the kernels compute
            all of them only.
        algorithm: which; the platform's usual one where None.

    Raises:
        TypeError: the dtype is not inexact, or `x` is not a matrix.
        ValueError: full matrices and a subset are asked for.
        NotImplementedError: the platform has not got the algorithm, or a subset is asked for.

    Example:
        >>> lax.linalg.svd(jnp.array([[0.0, 2.0], [3.0, 0.0]]), compute_uv=False)
        Array([3., 2.], dtype=float32)
    """
    x = as_operand(x)
    kernels.check_matrices("svd", "x", aval_of(x))
    if full_matrices and subset_by_index not in (None, (0, min(x.shape[-2:]))):
        problem = "a subset of the singular vectors makes no full matrices."
        got = f"subset_by_index: {subset_by_index}"
        error(ValueError, "lax.linalg.svd", problem, got=got, fix="full_matrices=False")
    values, *vectors = svd_p.bind(
        x,
        full_matrices=full_matrices,
        compute_uv=compute_uv,
        subset_by_index=subset_by_index,
        algorithm=algorithm,
    )
    return (vectors[0], values, vectors[1]) if compute_uv else values
