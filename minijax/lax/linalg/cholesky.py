"""The Cholesky factorization of positive definite matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.core.aval import ShapedArray, aval_of
from minijax.interpreters.lowering import lower_function
from minijax.interpreters.structural import full
from minijax.interpreters.tangents import Zero
from minijax.lax import binary
from minijax.lax.families import INEXACT, check_dtype
from minijax.lax.families import operand as as_operand
from minijax.lax.linalg import kernels, matrices
from minijax.lax.linalg.families import BatchedPrimitive, check_matrices
from minijax.lax.linalg.triangular import triangular_solve
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
        factor = matrices.lower_triangle(self.bind(x))
        if type(x_dot) is Zero:
            return factor, Zero.like(factor)
        right = triangular_solve(
            factor, x_dot, left_side=False, transpose_a=True, conjugate_a=True, lower=True
        )
        middle = triangular_solve(factor, right, left_side=True, lower=True)
        eye = matrices.identity_like(middle)
        weights = binary.add(full(middle.shape, 1, middle.dtype), eye)
        phi = binary.div(matrices.lower_triangle(middle), weights)
        return factor, matrices.product(factor, phi)


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
        x = matrices.symmetrized(x)
    return matrices.lower_triangle(cholesky_p.bind(x))
