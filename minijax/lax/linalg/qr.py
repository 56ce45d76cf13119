"""The QR factorization of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core.aval import ShapedArray, shaped_array
from minijax.interpreters.lowering import lower_function
from minijax.interpreters.structural import full
from minijax.interpreters.tangents import Zero
from minijax.lax import binary, shape, unary
from minijax.lax.families import INEXACT, check_dtype
from minijax.lax.families import operand as as_operand
from minijax.lax.linalg import matrices, solving
from minijax.lax.linalg.families import BatchedPrimitive, check_matrices, without_tangents
from minijax.lax.linalg.householder import geqp3, geqrf, householder_product
from minijax.lax.linalg.triangular import triangular_solve
from minijax.lax.padding import pad
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array


class QR(BatchedPrimitive):
    """Q R = x, or Q R = x P with the permutation of columns P, with Q unitary and R triangular.

    Shapes: x: T[..., m, n] -> T[..., m, k], T[..., k, n] and, with pivoting, int32[..., n]; k is m
        with full matrices, min(m, n) without.
    """

    name = "qr"
    multiple_results = True

    def abstract_eval(
        self, x: ShapedArray, *, pivoting: bool, full_matrices: bool, use_magma: bool | None
    ) -> list[ShapedArray]:
        check_dtype("linalg.qr", "x", x, INEXACT)
        check_matrices("qr", "x", x)
        *batch, rows, columns = x.shape
        count = rows if full_matrices else min(rows, columns)
        order = shaped_array((*batch, columns), np.dtype(np.int32), x.weak_type)
        q = shaped_array((*batch, rows, count), x.dtype, x.weak_type)
        r = shaped_array((*batch, count, columns), x.dtype, x.weak_type)
        return [q, r, order] if pivoting else [q, r]

    def lower(self, ctx: Any, x: Any, **params: Any) -> list[Any]:
        return lower_function(ctx, lambda x: self._factor(x, **params), x)

    def _factor(
        self, x: Any, *, pivoting: bool, full_matrices: bool, use_magma: bool | None
    ) -> list[Any]:
        *batch, rows, columns = x.shape
        count = rows if full_matrices else min(rows, columns)
        order = full((*batch, columns), 0, np.dtype(np.int32))
        if 0 in (rows, columns):
            q = matrices.identity_like(full((*batch, rows, count), 0, x.dtype))
            r = full((*batch, count, columns), 0, x.dtype)
            return [q, r, order] if pivoting else [q, r]
        if pivoting:
            factors, order, scales = geqp3(x, order, use_magma=use_magma)
        else:
            factors, scales = geqrf(x)
        q = householder_product(_with_columns(factors, count), scales)
        r = matrices.upper_triangle(matrices.block(factors, (0, count), (0, columns)))
        return [q, r, order] if pivoting else [q, r]

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        pivoting: bool,
        **params: Any,
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        (x,), (x_dot,) = primals, tangents
        outs = self.bind(x, pivoting=pivoting, **params)
        if type(x_dot) is Zero:
            return without_tangents(outs)
        q, r, *order = outs
        moved = matrices.columns_at(x_dot, *order) if pivoting else x_dot
        return outs, [*_tangents(q, r, moved), *map(Zero.like, order)]


qr_p = QR()


def _with_columns(x: Any, count: int) -> Any:
    """The first columns of matrices, with columns of zeros where there are not so many."""
    rows, columns = x.shape[-2:]
    if count <= columns:
        return matrices.block(x, (0, rows), (0, count))
    sides = [(0, 0, 0)] * (x.ndim - 1)
    return pad(x, np.zeros((), x.dtype)[()], [*sides, (0, count - columns, 0)])


def _tangents(q: Any, r: Any, x_dot: Any) -> tuple[Any, Any]:
    """Q' and R' of Q R = x.

    The leading columns, as many as Q's rows at most, determine Q and the square block of R; what
    stands beside that block is Qᴴ x, and columns of Q beyond it come from the same reflections.
    """
    rows, columns = x_dot.shape[-2:]
    count = min(rows, columns)
    corner, last = (0, count), q.shape[-1]
    q1 = matrices.block(q, (0, rows), corner)
    r1 = matrices.block(r, corner, corner)
    q_dot, r_dot = _square_tangents(q1, r1, matrices.block(x_dot, (0, rows), corner))
    if count < columns:
        rest = (count, columns)
        # With x2 = Q R2 and Qᴴ Q' skew: R2' = Qᴴ x2' - Qᴴ Q' R2.
        turned = matrices.product(matrices.adjoint(q1), q_dot)
        moved = matrices.product(matrices.adjoint(q1), matrices.block(x_dot, (0, rows), rest))
        r2_dot = binary.sub(moved, matrices.product(turned, matrices.block(r, (0, last), rest)))
        r_dot = shape.concatenate([r_dot, r2_dot], r.ndim - 1)
    elif count < last:
        q2 = matrices.block(q, (0, rows), (count, last))
        q_dot = shape.concatenate([q_dot, _tangent_beyond(q1, q2, q_dot)], q.ndim - 1)
        zeros = full((*r.shape[:-2], last - count, columns), 0, r.dtype)
        r_dot = shape.concatenate([r_dot, zeros], r.ndim - 2)
    return q_dot, r_dot


def _square_tangents(q: Any, r: Any, x_dot: Any) -> tuple[Any, Any]:
    """Q' and R' of Q R = x, where R is square.

    With M = x' R⁻¹, Qᴴ M = Ω + R' R⁻¹ is the sum of Ω = Qᴴ Q', which is skew, and of an upper
    triangle with a real diagonal: the part of Qᴴ M below the diagonal determines Ω.
    """
    scaled = triangular_solve(r, x_dot)
    seen = matrices.product(matrices.adjoint(q), scaled)
    below = matrices.strict_lower_triangle(seen)
    turn = binary.sub(below, matrices.adjoint(below))
    if seen.dtype.kind == "c":
        imaginary = unary.imag(seen)
        turning = unary.complex(full(seen.shape, 0, imaginary.dtype), imaginary)
        turn = binary.add(turn, binary.mul(matrices.identity_like(seen), turning))
    q_dot = binary.add(scaled, matrices.product(q, binary.sub(turn, seen)))
    return q_dot, matrices.product(binary.sub(seen, turn), r)


def _tangent_beyond(q1: Any, q2: Any, q1_dot: Any) -> Any:
    """The tangent of the columns of Q for which x has none.

    The product of reflections is Q = I - V T Vᴴ, V with a triangle above a rest.  With Q11 and Q21
    the parts of its first columns Q1, and K = Q21 (Q11 - I)⁻¹, which is the rest of V over the
    triangle, its other columns are Q2 = [0, I] + (Q1 - [I, 0]) Kᴴ.  Hence, since Q is unitary,
    Q2' = Q1' Kᴴ - (Q1 + Q2 K) (Q21' - K Q11')ᴴ.
    Source: Ballard et al., Reconstructing Householder vectors from tall-skinny QR (2015).
    """
    rows, count = q1.shape[-2:]
    corner, rest = (0, count), (count, rows)
    q11, q21 = matrices.block(q1, corner, corner), matrices.block(q1, rest, corner)
    q11_dot, q21_dot = matrices.block(q1_dot, corner, corner), matrices.block(q1_dot, rest, corner)
    shifted = binary.sub(q11, matrices.identity_like(q11))
    ratio = matrices.adjoint(solving.solve(matrices.adjoint(shifted), matrices.adjoint(q21)))
    changed = binary.sub(q21_dot, matrices.product(ratio, q11_dot))
    weights = binary.add(q1, matrices.product(q2, ratio))
    return binary.sub(
        matrices.product(q1_dot, matrices.adjoint(ratio)),
        matrices.product(weights, matrices.adjoint(changed)),
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
        TypeError: `x` is no matrix, or its dtype is not inexact.
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
