"""The Cholesky factorization, its updates, and symmetric products.

The Cholesky factorization of positive definite matrices.

Symmetric products, and Cholesky factors that follow them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.core.aval import ShapedArray, aval_of
from minijax.core.errors import error
from minijax.interpreters.jvp import Zero
from minijax.interpreters.structural import full
from minijax.lax import binary, unary
from minijax.lax.binary import select
from minijax.lax.control_flow.looping import fori_loop
from minijax.lax.families import FLOAT, INEXACT, check_dtype
from minijax.lax.families import operand as as_operand
from minijax.lax.linalg import kernels
from minijax.lax.linalg.kernels import BatchedPrimitive, check_matrices, check_together, weak_if_all
from minijax.lax.linalg.lu import triangular_solve
from minijax.lax.shape import concatenate, expand_dims
from minijax.lax.slicing import dynamic_index_in_dim, dynamic_update_slice_in_dim
from minijax.lowering.module import lower_function
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array


class Cholesky(BatchedPrimitive):
    """The factor L of x = L Lᴴ in the lower triangle; what the upper one holds is undefined.

    Shapes: x: T[..., n, n] -> T[..., n, n].
    """

    name = "cholesky"

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        check_dtype("linalg.cholesky", "x", x, INEXACT)
        check_matrices("cholesky", "x", x, square=True)
        return x

    def lower(self, ctx: Any, x: Any) -> Any:
        return lower_function(ctx, lambda x: [self._factor(ctx.platform, x)], x)[0]

    def _factor(self, platform: str, x: Any) -> Any:
        batch = x.shape[:-2]
        target = kernels.routine("cholesky", platform, "potrf", x.dtype)
        attributes = {"uplo": kernels.LOWER} if platform == "cpu" else {"lower": True}
        results = [(x.shape, x.dtype), (batch, "int32")]
        factor, info = kernels.call(
            platform, target, [x], results, attributes, batch=len(batch), aliases={0: 0}
        )
        return kernels.nan_unless(binary.eq(info, full(batch, 0, info.dtype)), factor)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        # Murray, Differentiation of the Cholesky decomposition (2016): L' = L Φ(L⁻¹ x' L⁻ᴴ), where
        # Φ takes the lower triangle with half of the diagonal.
        (x,), (x_dot,) = primals, tangents
        factor = kernels.lower_triangle(self.bind(x))
        if type(x_dot) is Zero:
            return factor, Zero.like(factor)
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
    Source:     mirrors jax.lax.linalg.cholesky (0.10).

    Args:
        x: Hermitian positive definite matrices.
        symmetrize_input: whether (x + xᴴ) / 2 is factored, instead of taking x for Hermitian and
            reading its lower triangle alone.

    Raises:
        TypeError: `x` is no matrix, or its dtype is not inexact.
        IncompatibleShapesError: the matrices are not square.
        NotImplementedError: there is no kernel for the dtype, such as bfloat16.

    Example:
        >>> lax.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
        Array([[2., 0.],
               [1., 2.]], dtype=float32)
    """
    x = as_operand(x)
    check_dtype("linalg.cholesky", "x", aval_of(x), INEXACT)
    check_matrices("cholesky", "x", aval_of(x), square=True)
    if symmetrize_input:
        x = kernels.symmetrized(x)
    return kernels.lower_triangle(cholesky_p.bind(x))


class SymmetricProduct(BatchedPrimitive):
    """alpha a aᵀ + beta c; on a GPU, what the result holds above its diagonal is undefined.

    Shapes: a: T[..., n, k], c: T[..., n, n] -> T[..., n, n].  As in JAX there is no jvp.
    """

    name = "symmetric_product"
    core_ndims = (2, 2)

    def abstract_eval(
        self, a: ShapedArray, c: ShapedArray, *, alpha: float, beta: float
    ) -> ShapedArray:
        for argument, aval in (("a_matrix", a), ("c_matrix", c)):
            check_dtype(f"linalg.{self.name}", argument, aval, FLOAT)
        check_together(self.name, self.core_ndims, a_matrix=a, c_matrix=c)
        if not a.shape[-2] == c.shape[-2] == c.shape[-1]:
            error(
                ValueError,
                f"lax.linalg.{self.name}",
                "the matrices do not fit together.",
                got={"a_matrix": a, "c_matrix": c},
                expected="a_matrix: T[..., n, k], c_matrix: T[..., n, n]",
            )
        return c.update(weak_type=weak_if_all(a, c))

    def lower(self, ctx: Any, a: Any, c: Any, **params: float) -> Any:
        compute = self._by_kernel if ctx.platform in kernels.GPUS else _product
        return lower_function(ctx, lambda a, c: [compute(ctx.platform, a, c, **params)], a, c)[0]

    def _by_kernel(self, platform: str, a: Any, c: Any, *, alpha: float, beta: float) -> Any:
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


def _product(platform: str, a: Any, c: Any, *, alpha: float, beta: float) -> Any:
    product = kernels.product(a, kernels.transposed(a))
    scaled = binary.mul(full(c.shape, alpha, c.dtype), product)
    return binary.add(scaled, binary.mul(full(c.shape, beta, c.dtype), c))


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
    Source:     mirrors jax.lax.linalg.symmetric_product (0.10).

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


class CholeskyUpdate(BatchedPrimitive):
    """The upper triangular factor of rᵀ r + w wᵀ.

    Shapes: r: T[..., n, n], w: T[..., n] -> T[..., n, n].  As in JAX there is no jvp.
    """

    name = "cholesky_update"
    core_ndims = (2, 1)

    def abstract_eval(self, r: ShapedArray, w: ShapedArray) -> ShapedArray:
        for argument, aval in (("r_matrix", r), ("w_vector", w)):
            check_dtype(f"linalg.{self.name}", argument, aval, FLOAT)
        check_together(self.name, self.core_ndims, r_matrix=r, w_vector=w)
        check_matrices(self.name, "r_matrix", r, square=True)
        if w.shape[-1] != r.shape[-1]:
            error(
                ValueError,
                f"lax.linalg.{self.name}",
                "the vector does not fit the matrix.",
                got={"r_matrix": r, "w_vector": w},
                expected="r_matrix: T[n, n], w_vector: T[n]",
            )
        return r.update(weak_type=weak_if_all(r, w))

    def lower(self, ctx: Any, r: Any, w: Any) -> Any:
        def compute(r: Any, w: Any) -> list[Any]:
            by_kernel = ctx.platform in kernels.GPUS and r.ndim == 2
            return [self._by_kernel(ctx.platform, r, w) if by_kernel else _rotated(r, w)]

        return lower_function(ctx, compute, r, w)[0]

    def _by_kernel(self, platform: str, r: Any, w: Any) -> Any:
        return kernels.call(
            platform,
            f"{kernels.GPUS[platform]}_cholesky_update_ffi",
            [r, w],
            [(r.shape, r.dtype), (w.shape, w.dtype)],
            aliases={0: 0, 1: 1},
        )[0]


cholesky_update_p = CholeskyUpdate()


def _rotated(r: Any, w: Any) -> Any:
    """Rotates each row of r with w in turn, so that w is left with zeros."""
    size, rank = w.shape[-1], w.ndim - 1
    if size == 0:
        return r

    def rotate(i: Any, rows: Any) -> Any:
        row, last = (dynamic_index_in_dim(rows, k, rank) for k in (i, size))
        cosine, sine = _rotation(*(dynamic_index_in_dim(x, i, rank + 1) for x in (row, last)))
        rotated = binary.add(binary.mul(cosine, row), binary.mul(sine, last))
        left = binary.sub(binary.mul(cosine, last), binary.mul(sine, row))
        rows = dynamic_update_slice_in_dim(rows, rotated, i, rank)
        return dynamic_update_slice_in_dim(rows, left, size, rank)

    rows = concatenate([r, expand_dims(w, (rank,))], rank)
    return kernels.block(fori_loop(0, size, rotate, rows), (0, size), (0, size))


def _rotation(x: Any, y: Any) -> tuple[Any, Any]:
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
        TypeError: the dtypes differ or are not floating, or these are no matrix and no vector.
        ValueError: the shapes do not fit.

    Example:
        >>> lax.linalg.cholesky_update(jnp.array([[3.0]]), jnp.array([4.0]))
        Array([[5.]], dtype=float32)
    """
    r, w = as_operand(r_matrix), as_operand(w_vector)
    if (aval_of(r).ndim, aval_of(w).ndim) != (2, 1):
        error(
            TypeError,
            "lax.linalg.cholesky_update",
            "this takes one matrix and one vector.",
            got={"r_matrix": aval_of(r), "w_vector": aval_of(w)},
            fix="minijax.vmap, for batches",
        )
    return cholesky_update_p.bind(r, w)
