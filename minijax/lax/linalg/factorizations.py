"""Cholesky and QR factorizations, their updates, and the products that they are made of.

QR factorizations are found as products of Householder reflections.  A reflection is I - t v vᴴ.
Column i of a matrix holds v below its diagonal; above v[i] = 1 stand zeros that are not stored, so
that the matrix has room for R in its upper triangle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core.aval import ShapedArray, aval_of, shaped_array
from minijax.core.errors import error
from minijax.core.primitive import Dual, Zero
from minijax.interpreters.structural import full
from minijax.lax import binary, shape, unary
from minijax.lax.binary import select
from minijax.lax.control_flow.looping import fori_loop
from minijax.lax.families import FLOAT, INEXACT
from minijax.lax.families import operand as as_operand
from minijax.lax.linalg import kernels
from minijax.lax.linalg.lu import solve_square, triangular_solve
from minijax.lax.padding import pad
from minijax.lax.shape import concatenate, expand_dims
from minijax.lax.slicing import dynamic_index_in_dim, dynamic_update_slice_in_dim
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array


class Cholesky(kernels.BatchedPrimitive):
    """The factor L of x = L Lᴴ in the lower triangle; what the upper one holds is undefined.

    Shapes: x: T[..., n, n] -> T[..., n, n].
    """

    name = "cholesky"

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        kernels.check_matrices("cholesky", "x", x, square=True)
        return x

    def compute(self, platform: str, x: Array) -> Any:
        target = kernels.routine("cholesky", platform, "potrf", x.dtype)
        attributes = kernels.triangle(platform, lower=True)
        return kernels.checked_call(platform, target, x, [(x.shape, x.dtype)], attributes)[0]

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array]) -> Dual:
        # Murray, Differentiation of the Cholesky decomposition (2016): L' = L Φ(L⁻¹ x' L⁻ᴴ), where
        # Φ takes the lower triangle with half of the diagonal.
        (x,), (x_dot,) = primals, tangents
        factor = kernels.lower_triangle(self.bind(x))
        right = triangular_solve(
            factor, x_dot, left_side=False, transpose_a=True, conjugate_a=True, lower=True
        )
        middle = triangular_solve(factor, right, left_side=True, lower=True)
        eye = kernels.identity_like(middle)
        weights = binary.add(full(middle.shape, 1, middle.dtype), eye)
        phi = binary.div(kernels.lower_triangle(middle), weights)
        return factor, kernels.product(factor, phi)


cholesky_p = Cholesky()


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """The lower triangular L with x = L Lᴴ; NaN where a matrix is not positive definite.

    Shapes:     x: T[..., n, n] -> T[..., n, n].
    Dtypes:     float32, float64, complex64, complex128.
    Derivative: of the Hermitian part of x where `symmetrize_input`; else of its lower triangle.
    Lowers to:  LAPACK's potrf on CPU, cuSOLVER's on GPU.

    Args:
        x: Hermitian positive definite matrices.
        symmetrize_input: whether (x + xᴴ) / 2 is factored, instead of taking x for Hermitian and
            reading its lower triangle alone.

    Raises:
        TypeError: `x` is not a matrix, or its dtype is not inexact.
        IncompatibleShapesError: the matrices are not square.
        NotImplementedError: there is no kernel for the dtype, such as bfloat16.

    Example:
        >>> lax.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
        Array([[2., 0.],
               [1., 2.]], dtype=float32)
    """
    x = as_operand(x)
    kernels.check_matrices("cholesky", "x", aval_of(x), square=True)
    if symmetrize_input:
        x = kernels.symmetrized(x)
    return kernels.lower_triangle(cholesky_p.bind(x))


class SymmetricProduct(kernels.BatchedPrimitive):
    """alpha a aᵀ + beta c; on a GPU, what the result holds above its diagonal is undefined.

    Shapes: a: T[..., n, k], c: T[..., n, n] -> T[..., n, n].  As in JAX there is no jvp.
    """

    name = "symmetric_product"
    core_ndims = (2, 2)

    def abstract_eval(
        self, a: ShapedArray, c: ShapedArray, *, alpha: float, beta: float
    ) -> ShapedArray:
        kernels.check_together(self, FLOAT, a_matrix=a, c_matrix=c)
        if not a.shape[-2] == c.shape[-2] == c.shape[-1]:
            problem = "the matrices do not fit together."
            got = {"a_matrix": a, "c_matrix": c}
            expected = "a_matrix: T[..., n, k], c_matrix: T[..., n, n]"
            error(ValueError, f"lax.linalg.{self.name}", problem, got=got, expected=expected)
        return c.update(weak_type=kernels.weak_if_all(a, c))

    def compute(self, platform: str, a: Array, c: Array, *, alpha: float, beta: float) -> Array:
        if platform not in kernels.GPUS:
            product = kernels.product(a, kernels.transposed(a))
            scaled = binary.mul(full(c.shape, alpha, c.dtype), product)
            return binary.add(scaled, binary.mul(full(c.shape, beta, c.dtype), c))
        # Matrices lie by rows here, and the kernel divides no batch.
        factors = [full((), x, c.dtype) for x in (alpha, beta)]
        return kernels.call(
            platform,
            kernels.routine(self.name, platform, "syrk", c.dtype),
            [a, c, *factors],
            [(c.shape, c.dtype)],
            {"transpose": False},
            aliases={1: 0},
        )[0]


symmetric_product_p = SymmetricProduct()


def symmetric_product(
    a_matrix: ArrayLike,
    c_matrix: ArrayLike,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Array:
    """alpha a aᵀ + beta c, for symmetric c: BLAS's syrk.

    Shapes:     a_matrix: T[..., n, k], c_matrix: T[..., n, n] -> T[..., n, n].
    Dtypes:     floating, the same of both.
    Derivative: none.
    Lowers to:  stablehlo.dot_general on CPU, cuSOLVER's syrk on GPU.

    Args:
        a_matrix: a.
        c_matrix: c.
        alpha: a number.
        beta: a number.
        symmetrize_output: whether the upper triangle is copied from the lower one; on a GPU the
            upper one is undefined without.

    Raises:
        TypeError: the dtypes differ or are not floating, or the numbers of dimensions do not fit.
        ValueError: the shapes do not fit.

    Example:
        >>> lax.linalg.symmetric_product(jnp.array([[1.0], [2.0]]), jnp.eye(2), beta=3.0)
        Array([[4., 2.],
               [2., 7.]], dtype=float32)
    """
    a, c = as_operand(a_matrix), as_operand(c_matrix)
    result = symmetric_product_p.bind(a, c, alpha=float(alpha), beta=float(beta))
    if not symmetrize_output:
        return result
    above = kernels.transposed(kernels.strict_lower_triangle(result))
    return binary.add(kernels.lower_triangle(result), above)


class CholeskyUpdate(kernels.BatchedPrimitive):
    """The upper triangular factor of rᵀ r + w wᵀ.

    Shapes: r: T[..., n, n], w: T[..., n] -> T[..., n, n].  As in JAX there is no jvp.
    """

    name = "cholesky_update"
    core_ndims = (2, 1)

    def abstract_eval(self, r: ShapedArray, w: ShapedArray) -> ShapedArray:
        kernels.check_together(self, FLOAT, r_matrix=r, w_vector=w)
        kernels.check_matrices(self.name, "r_matrix", r, square=True)
        if w.shape[-1] != r.shape[-1]:
            problem = "the vector does not fit the matrix."
            got = {"r_matrix": r, "w_vector": w}
            expected = "r_matrix: T[n, n], w_vector: T[n]"
            error(ValueError, f"lax.linalg.{self.name}", problem, got=got, expected=expected)
        return r.update(weak_type=kernels.weak_if_all(r, w))

    def compute(self, platform: str, r: Array, w: Array) -> Array:
        if platform not in kernels.GPUS or r.ndim > 2:
            return _rotated(r, w)
        return kernels.call(
            platform,
            f"{kernels.GPUS[platform]}_cholesky_update_ffi",
            [r, w],
            [(r.shape, r.dtype), (w.shape, w.dtype)],
            aliases={0: 0, 1: 1},
        )[0]


cholesky_update_p = CholeskyUpdate()


def _rotated(r: Array, w: Array) -> Any:
    """Rotates each row of r with w in turn, so that w is left with zeros."""
    size, rank = w.shape[-1], w.ndim - 1
    if size == 0:
        return r

    def rotate(i: Array, rows: Array) -> Any:
        row, last = (dynamic_index_in_dim(rows, k, rank) for k in (i, size))
        cosine, sine = _rotation(*(dynamic_index_in_dim(x, i, rank + 1) for x in (row, last)))
        rotated = binary.add(binary.mul(cosine, row), binary.mul(sine, last))
        left = binary.sub(binary.mul(cosine, last), binary.mul(sine, row))
        rows = dynamic_update_slice_in_dim(rows, rotated, i, rank)
        return dynamic_update_slice_in_dim(rows, left, size, rank)

    rows = concatenate([r, expand_dims(w, (rank,))], rank)
    return kernels.block(fori_loop(0, size, rotate, rows), (0, size), (0, size))


def _rotation(x: Array, y: Array) -> tuple[Any, Any]:
    """Cosine and sine of the rotation that turns (x, y) into (√(x² + y²), 0), without overflow."""
    scale = binary.max(unary.abs(x), unary.abs(y))
    adjacent, opposite = binary.div(x, scale), binary.div(y, scale)
    squares = binary.add(binary.mul(adjacent, adjacent), binary.mul(opposite, opposite))
    inverse = unary.rsqrt(squares)
    is_done = binary.eq(y, full(y.shape, 0, y.dtype))
    cosine = select(is_done, full(y.shape, 1, y.dtype), binary.mul(adjacent, inverse))
    return cosine, select(is_done, y, binary.mul(opposite, inverse))


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """The upper triangular factor of rᵀ r + w wᵀ, where r is an upper triangle.

    Shapes:     r_matrix: T[n, n], w_vector: T[n] -> T[n, n].
    Dtypes:     floating, the same of both.
    Derivative: none.
    Lowers to:  a loop of plane rotations; on GPU, a kernel of jaxlib's.
    Source:     mirrors jax.lax.linalg.cholesky_update (0.10); Gill et al., Methods for modifying
                matrix factorizations (1974).

    Args:
        r_matrix: the factor; what it holds below the diagonal is rotated too.
        w_vector: what is added.

    Raises:
        TypeError: the dtypes differ or are not floating, or r is not a matrix or w not a vector.
        ValueError: the shapes do not fit.

    Example:
        >>> lax.linalg.cholesky_update(jnp.array([[3.0]]), jnp.array([4.0]))
        Array([[5.]], dtype=float32)
    """
    r, w = as_operand(r_matrix), as_operand(w_vector)
    if (aval_of(r).ndim, aval_of(w).ndim) != (2, 1):
        problem = "this takes one matrix and one vector."
        got = {"r_matrix": aval_of(r), "w_vector": aval_of(w)}
        fix = "minijax.vmap, for batches"
        error(TypeError, "lax.linalg.cholesky_update", problem, got=got, fix=fix)
    return cholesky_update_p.bind(r, w)


_MAGMA = {None: "auto", True: "on", False: "off"}


class Geqrf(kernels.BatchedPrimitive):
    """R in the upper triangle, and below it the reflections whose product is Q, with Q R = x.

    Shapes: x: T[..., m, n] -> T[..., m, n], T[..., min(m, n)].  The jvp is that of `qr`.
    """

    name = "geqrf"
    multiple_results = True

    def abstract_eval(self, x: ShapedArray) -> list[ShapedArray]:
        return [x, _scales_of(self.name, x)]

    def compute(self, platform: str, x: Array) -> list[Any]:
        target = kernels.routine("qr", platform, "geqrf", x.dtype)
        results = [(x.shape, x.dtype), (_scales_shape(x.shape), x.dtype)]
        return kernels.call(platform, target, [x], results, batch=x.ndim - 2, aliases={0: 0})


geqrf_p = Geqrf()


def geqrf(x: Array) -> tuple[Any, Any]:
    """R and the reflections whose product is Q, in one matrix, and their scales; Q R = x."""
    factors, scales = geqrf_p.bind(as_operand(x))
    return factors, scales


class Geqp3(kernels.BatchedPrimitive):
    """As `geqrf`, of columns in an order in which the diagonal of R does not increase.

    A column whose pivot is not zero is moved to the front; no other one is moved before it.

    Shapes: x: T[..., m, n], pivots: int32[..., n]
        -> T[..., m, n], int32[..., n], T[..., min(m, n)].  The jvp is that of `qr`.
    """

    name = "geqp3"
    core_ndims = (2, 1)
    multiple_results = True

    def abstract_eval(
        self, x: ShapedArray, pivots: ShapedArray, *, use_magma: bool | None
    ) -> list[ShapedArray]:
        return [x, pivots.update(weak_type=x.weak_type), _scales_of(self.name, x)]

    def compute(
        self, platform: str, x: Array, pivots: Array, *, use_magma: bool | None
    ) -> list[Any]:
        target = kernels.routine("qr", platform, "geqp3", x.dtype)
        attributes: dict[str, Any] = {}
        if platform in kernels.GPUS:
            target = f"{kernels.GPUS[platform]}hybrid_geqp3"
            attributes["magma"] = _MAGMA[use_magma]
        factors, order, scales = kernels.call(
            platform,
            target,
            [x, pivots],
            [(x.shape, x.dtype), (pivots.shape, "int32"), (_scales_shape(x.shape), x.dtype)],
            attributes,
            batch=x.ndim - 2,
            aliases={0: 0, 1: 1},
        )
        # Columns are counted from one.
        return [factors, binary.sub(order, full(order.shape, 1, order.dtype)), scales]


geqp3_p = Geqp3()


def geqp3(x: Array, pivots: Array, *, use_magma: bool | None = None) -> tuple[Any, Any, Any]:
    """As `geqrf`, with the order of the columns between the two."""
    factors, order, scales = geqp3_p.bind(as_operand(x), as_operand(pivots), use_magma=use_magma)
    return factors, order, scales


def _scales_of(name: str, x: ShapedArray) -> ShapedArray:
    kernels.check_matrices(name, "x", x)
    return shaped_array(_scales_shape(x.shape), x.dtype, x.weak_type)


def _scales_shape(shape: Sequence[int]) -> tuple[int, ...]:
    *batch, rows, columns = shape
    return (*batch, min(rows, columns))


class HouseholderProduct(kernels.BatchedPrimitive):
    """The first columns of a product of reflections.

    Shapes: a: T[..., m, n], taus: T[..., k] -> T[..., m, n], with m ≥ n ≥ k.  As in JAX there is no
    jvp; that of `qr` is of the result and needs no reflections.
    """

    name = "householder_product"
    core_ndims = (2, 1)

    def abstract_eval(self, a: ShapedArray, taus: ShapedArray) -> ShapedArray:
        kernels.check_together(self, INEXACT, a=a, taus=taus)
        rows, columns = a.shape[-2:]
        if not rows >= columns >= taus.shape[-1]:
            problem = "there must not be more reflections than columns, nor columns than rows."
            got = {"a": a, "taus": taus}
            expected = "a: T[..., m, n], taus: T[..., k], with m ≥ n ≥ k"
            error(ValueError, f"lax.linalg.{self.name}", problem, got=got, expected=expected)
        return a.update(weak_type=kernels.weak_if_all(a, taus))

    def compute(self, platform: str, a: Array, taus: Array) -> Any:
        target = kernels.routine(self.name, platform, "orgqr", a.dtype)
        return kernels.call(
            platform, target, [a, taus], [(a.shape, a.dtype)], batch=a.ndim - 2, aliases={0: 0}
        )[0]


householder_product_p = HouseholderProduct()


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """The first columns of the product of Householder reflections I - t v vᴴ.

    Shapes:     a: T[..., m, n], taus: T[..., k] -> T[..., m, n], with m ≥ n ≥ k.
    Dtypes:     float32, float64, complex64, complex128, the same of both.
    Derivative: none.
    Lowers to:  LAPACK's orgqr, or ungqr, on CPU, cuSOLVER's on GPU.

    Args:
        a: holds v of reflection i in column i, below its diagonal; v[i] is 1, and 0 above.
        taus: t of each reflection.

    Raises:
        TypeError: the dtypes differ or are not inexact, or the numbers of dimensions do not fit.
        ValueError: the shapes do not fit.

    Example:
        >>> lax.linalg.householder_product(jnp.array([[9.0, 9.0], [1.0, 9.0]]), jnp.ones(1))
        Array([[ 0., -1.],
               [-1.,  0.]], dtype=float32)
    """
    return householder_product_p.bind(as_operand(a), as_operand(taus))


class Ormqr(kernels.BatchedPrimitive):
    """The product of a matrix and a product of reflections, which is not computed.

    Shapes: a: T[..., m, n], taus: T[..., k], c: T[..., m, l] or T[..., l, m] -> that of c.  As in
        JAX there is no jvp.
    """

    name = "ormqr"
    core_ndims = (2, 1, 2)

    def abstract_eval(
        self, a: ShapedArray, taus: ShapedArray, c: ShapedArray, *, left: bool, transpose: bool
    ) -> ShapedArray:
        kernels.check_together(self, INEXACT, a=a, taus=taus, c=c)
        rows, columns = a.shape[-2:]
        fits = c.shape[-2 if left else -1] == rows
        if not (fits and min(rows, columns) >= taus.shape[-1]):
            problem = "the matrices do not fit together."
            got = {"a": a, "taus": taus, "c": c}
            expected = (
                f"a: T[..., m, n], taus: T[..., k], c: T[..., "
                f"{'m, l' if left else 'l, m'}], with k at most m and n"
            )
            error(ValueError, f"lax.linalg.{self.name}", problem, got=got, expected=expected)
        return c.update(weak_type=kernels.weak_if_all(a, taus, c))

    def compute(
        self, platform: str, a: Array, taus: Array, c: Array, *, left: bool, transpose: bool
    ) -> Any:
        return kernels.call(
            platform,
            kernels.routine(self.name, platform, "ormqr", a.dtype),
            [a, taus, c],
            [(c.shape, c.dtype)],
            {"left": left, "transpose": transpose},
            batch=a.ndim - 2,
            aliases={2: 0},
        )[0]


ormqr_p = Ormqr()


def ormqr(
    a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False
) -> Array:
    """The product of c and Q, which is a product of Householder reflections, as `geqrf` gives them.

    Shapes:     a: T[..., m, n], taus: T[..., k], c: T[..., m, l], or T[..., l, m] where not `left`
                -> the shape of c.
    Dtypes:     float32, float64, complex64, complex128, the same of all.
    Derivative: none.
    Lowers to:  LAPACK's ormqr, or unmqr, on CPU, cuSOLVER's on GPU.

    Args:
        a: holds v of reflection i in column i, below its diagonal, as in `householder_product`.
        taus: t of each reflection.
        c: what is multiplied.
        left: whether Q stands on the left of c.
        transpose: whether Qᴴ takes the place of Q.

    Raises:
        TypeError: the dtypes differ or are not inexact, or the numbers of dimensions do not fit.
        ValueError: the shapes do not fit.

    Example:
        >>> a, taus = jnp.array([[9.0], [1.0]]), jnp.ones(1)
        >>> lax.linalg.ormqr(a, taus, jnp.array([[2.0], [3.0]]))
        Array([[-3.],
               [-2.]], dtype=float32)
    """
    operands = map(as_operand, (a, taus, c))
    return ormqr_p.bind(*operands, left=bool(left), transpose=bool(transpose))


class QR(kernels.BatchedPrimitive):
    """Q R = x, or Q R = x P with the permutation of columns P, with Q unitary and R triangular.

    Shapes: x: T[..., m, n] -> T[..., m, k], T[..., k, n] and, with pivoting, int32[..., n]; k is m
        with full matrices, min(m, n) without.
    """

    name = "qr"
    multiple_results = True

    def abstract_eval(
        self, x: ShapedArray, *, pivoting: bool, full_matrices: bool, use_magma: bool | None
    ) -> list[ShapedArray]:
        kernels.check_matrices("qr", "x", x)
        *batch, rows, columns = x.shape
        count = rows if full_matrices else min(rows, columns)
        order = shaped_array((*batch, columns), np.dtype(np.int32), x.weak_type)
        q = shaped_array((*batch, rows, count), x.dtype, x.weak_type)
        r = shaped_array((*batch, count, columns), x.dtype, x.weak_type)
        return [q, r, order] if pivoting else [q, r]

    def compute(
        self, platform: str, x: Array, *, pivoting: bool, full_matrices: bool, **options: Any
    ) -> list[Any]:
        *batch, rows, columns = x.shape
        count = rows if full_matrices else min(rows, columns)
        order = full((*batch, columns), 0, np.dtype(np.int32))
        if 0 in (rows, columns):
            q = kernels.identity_like(full((*batch, rows, count), 0, x.dtype))
            r = full((*batch, count, columns), 0, x.dtype)
            return [q, r, order] if pivoting else [q, r]
        if pivoting:
            factors, order, scales = geqp3(x, order, **options)
        else:
            factors, scales = geqrf(x)
        q = householder_product(_with_columns(factors, count), scales)
        r = kernels.upper_triangle(kernels.block(factors, (0, count), (0, columns)))
        return [q, r, order] if pivoting else [q, r]

    def jvp(
        self, primals: Sequence[Array], tangents: Sequence[Array], *, pivoting: bool, **params: Any
    ) -> Dual:
        (x,), (x_dot,) = primals, tangents
        outs = self.bind(x, pivoting=pivoting, **params)
        q, r, *order = outs
        moved = kernels.columns_at(x_dot, *order) if pivoting else x_dot
        return outs, [*_tangents(q, r, moved), *map(Zero.like, order)]


qr_p = QR()


def _with_columns(x: Array, count: int) -> Any:
    """The first columns of matrices, with columns of zeros where there are not so many."""
    rows, columns = x.shape[-2:]
    if count <= columns:
        return kernels.block(x, (0, rows), (0, count))
    sides = [(0, 0, 0)] * (x.ndim - 1)
    return pad(x, np.zeros((), x.dtype)[()], [*sides, (0, count - columns, 0)])


def _tangents(q: Array, r: Array, x_dot: Array) -> tuple[Any, Any]:
    """Q' and R' of Q R = x.

    The leading columns, as many as Q's rows at most, determine Q and the square block of R; what
    stands beside that block is Qᴴ x, and columns of Q beyond it come from the same reflections.
    """
    rows, columns = x_dot.shape[-2:]
    count = min(rows, columns)
    corner, last = (0, count), q.shape[-1]
    q1 = kernels.block(q, (0, rows), corner)
    r1 = kernels.block(r, corner, corner)
    q_dot, r_dot = _square_tangents(q1, r1, kernels.block(x_dot, (0, rows), corner))
    if count < columns:
        rest = (count, columns)
        # With x2 = Q R2 and Qᴴ Q' skew: R2' = Qᴴ x2' - Qᴴ Q' R2.
        turned = kernels.product(kernels.adjoint(q1), q_dot)
        moved = kernels.product(kernels.adjoint(q1), kernels.block(x_dot, (0, rows), rest))
        r2_dot = binary.sub(moved, kernels.product(turned, kernels.block(r, (0, last), rest)))
        r_dot = shape.concatenate([r_dot, r2_dot], r.ndim - 1)
    elif count < last:
        q2 = kernels.block(q, (0, rows), (count, last))
        q_dot = shape.concatenate([q_dot, _tangent_beyond(q1, q2, q_dot)], q.ndim - 1)
        zeros = full((*r.shape[:-2], last - count, columns), 0, r.dtype)
        r_dot = shape.concatenate([r_dot, zeros], r.ndim - 2)
    return q_dot, r_dot


def _square_tangents(q: Array, r: Array, x_dot: Array) -> tuple[Any, Any]:
    """Q' and R' of Q R = x, where R is square.

    With M = x' R⁻¹, Qᴴ M = Ω + R' R⁻¹ is the sum of Ω = Qᴴ Q', which is skew, and of an upper
    triangle with a real diagonal: the part of Qᴴ M below the diagonal determines Ω.
    """
    scaled = triangular_solve(r, x_dot)
    seen = kernels.product(kernels.adjoint(q), scaled)
    below = kernels.strict_lower_triangle(seen)
    turn = binary.sub(below, kernels.adjoint(below))
    if seen.dtype.kind == "c":
        imaginary = unary.imag(seen)
        turning = unary.complex(full(seen.shape, 0, imaginary.dtype), imaginary)
        turn = binary.add(turn, binary.mul(kernels.identity_like(seen), turning))
    q_dot = binary.add(scaled, kernels.product(q, binary.sub(turn, seen)))
    return q_dot, kernels.product(binary.sub(seen, turn), r)


def _tangent_beyond(q1: Array, q2: Array, q1_dot: Array) -> Any:
    """The tangent of the columns of Q for which x has none.

    The product of reflections is Q = I - V T Vᴴ, V with a triangle above a rest.  With Q11 and Q21
    the parts of its first columns Q1, and K = Q21 (Q11 - I)⁻¹, which is the rest of V over the
    triangle, its other columns are Q2 = [0, I] + (Q1 - [I, 0]) Kᴴ.  Hence, since Q is unitary,
    Q2' = Q1' Kᴴ - (Q1 + Q2 K) (Q21' - K Q11')ᴴ.
    Source: Ballard et al., Reconstructing Householder vectors from tall-skinny QR (2015).
    """
    rows, count = q1.shape[-2:]
    corner, rest = (0, count), (count, rows)
    q11, q21 = kernels.block(q1, corner, corner), kernels.block(q1, rest, corner)
    q11_dot, q21_dot = kernels.block(q1_dot, corner, corner), kernels.block(q1_dot, rest, corner)
    shifted = binary.sub(q11, kernels.identity_like(q11))
    ratio = kernels.adjoint(solve_square(kernels.adjoint(shifted), kernels.adjoint(q21)))
    changed = binary.sub(q21_dot, kernels.product(ratio, q11_dot))
    weights = binary.add(q1, kernels.product(q2, ratio))
    return binary.sub(
        kernels.product(q1_dot, kernels.adjoint(ratio)),
        kernels.product(weights, kernels.adjoint(changed)),
    )


def qr(
    x: ArrayLike,
    *,
    pivoting: bool = False,
    full_matrices: bool = True,
    use_magma: bool | None = None,
) -> tuple[Array, ...]:
    """Q and R with Q R = x: Q has orthonormal columns, R is an upper triangle.

    Shapes:     x: T[..., m, n] -> Q: T[..., m, k], R: T[..., k, n], with k = m, or min(m, n) where
                not `full_matrices`; with pivoting also int32[..., n].
    Dtypes:     float32, float64, complex64, complex128.
    Derivative: where the first min(m, n) columns of x (in the order of the result) are independent.
    Lowers to:  LAPACK's geqrf (geqp3 with pivoting) and orgqr on CPU, cuSOLVER's on GPU.
    Source:     mirrors jax.lax.linalg.qr (0.10); the derivative: Walter and Lehmann, Algorithmic
                differentiation of linear algebra functions (2010).

    Args:
        x: matrices.
        pivoting: whether the columns are taken in an order p in which the diagonal of R does not
            increase; then Q R = x[..., p], and p is a third result.
        full_matrices: whether Q is square.
        use_magma: on a GPU, whether pivoting uses the library MAGMA; None: if it is there and the
            matrices are large.

    Raises:
        TypeError: `x` is not a matrix, or its dtype is not inexact.
        NotImplementedError: there is no kernel for the dtype, such as bfloat16.

    Example:
        >>> q, r = lax.linalg.qr(jnp.array([[0.0, 2.0], [1.0, 5.0]]))
        >>> r
        Array([[-1., -5.],
               [ 0., -2.]], dtype=float32)
    """
    return tuple(
        qr_p.bind(
            as_operand(x),
            pivoting=bool(pivoting),
            full_matrices=bool(full_matrices),
            use_magma=use_magma,
        )
    )
