"""Systems of linear equations with triangular matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core.aval import ShapedArray, aval_of
from minijax.core.errors import error
from minijax.interpreters.lowering import lower_function
from minijax.interpreters.structural import add_tangents, moveaxis, to_batch_dim
from minijax.interpreters.tangents import Zero, is_linear
from minijax.lax import unary
from minijax.lax.families import INEXACT, check_dtype
from minijax.lax.families import operand as as_operand
from minijax.lax.linalg import kernels, matrices
from minijax.lax.linalg.families import (
    BatchedPrimitive,
    check_matrices,
    check_together,
    weak_if_all,
)
from minijax.lax.shape import expand_dims, reshape, squeeze
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array


class TriangularSolve(BatchedPrimitive):
    """Solves op(a) x = b, or x op(a) = b where not `left_side`, for x.

    Shapes: a: T[..., n, n], b: T[..., n, m] or T[..., m, n] -> the shape of b.
    """

    name = "triangular_solve"
    core_ndims = (2, 2)
    linear_in = ((1,),)

    def abstract_eval(
        self, a: ShapedArray, b: ShapedArray, *, left_side: bool, **params: Any
    ) -> ShapedArray:
        for argument, aval in (("a", a), ("b", b)):
            check_dtype("linalg.triangular_solve", argument, aval, INEXACT)
        check_together("triangular_solve", self.core_ndims, a=a, b=b)
        check_matrices("triangular_solve", "a", a, square=True)
        if b.shape[-2 if left_side else -1] != a.shape[-1]:
            error(
                ValueError,
                "lax.linalg.triangular_solve",
                f"the {'rows' if left_side else 'columns'} of b do not fit the matrices a.",
                got={"a": a, "b": b},
                expected=f"b: {'T[..., n, m]' if left_side else 'T[..., m, n]'}",
            )
        return b.update(weak_type=weak_if_all(a, b))

    def lower(self, ctx: Any, a: Any, b: Any, **params: bool) -> Any:
        if ctx.platform == "cpu" and ctx.avals_in[0].dtype.name in kernels.LETTERS:
            return lower_function(ctx, lambda a, b: [self._by_lapack(a, b, **params)], a, b)[0]
        return self._natively(ctx, a, b, **params)

    def _by_lapack(
        self,
        a: Any,
        b: Any,
        *,
        left_side: bool,
        lower: bool,
        transpose_a: bool,
        conjugate_a: bool,
        unit_diagonal: bool,
    ) -> Any:
        if conjugate_a and not transpose_a:
            a = matrices.conjugate(a)
        transposition = ("C" if conjugate_a else "T") if transpose_a else "N"
        attributes = {
            "side": _letter("L" if left_side else "R"),
            "uplo": kernels.LOWER if lower else kernels.UPPER,
            "trans_x": _letter(transposition),
            "diag": _letter("U" if unit_diagonal else "N"),
        }
        return kernels.call(
            "cpu",
            kernels.lapack("trsm", a.dtype),
            [a, b],
            [(b.shape, b.dtype)],
            attributes,
            batch=a.ndim - 2,
            aliases={1: 0},
        )[0]

    def _natively(
        self,
        ctx: Any,
        a: Any,
        b: Any,
        *,
        left_side: bool,
        lower: bool,
        transpose_a: bool,
        conjugate_a: bool,
        unit_diagonal: bool,
    ) -> Any:
        if conjugate_a and not transpose_a:
            a = lower_function(ctx, lambda a, b: [matrices.conjugate(a)], a, b)[0]
        transposition = (
            ("ADJOINT" if conjugate_a else "TRANSPOSE") if transpose_a else "NO_TRANSPOSE"
        )
        attributes = {
            "left_side": ctx.boolean(left_side),
            "lower": ctx.boolean(lower),
            "unit_diagonal": ctx.boolean(unit_diagonal),
            "transpose_a": ctx.attribute(f"#stablehlo<transpose {transposition}>"),
        }
        return ctx.op("stablehlo.triangular_solve", [a, b], attributes)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: bool
    ) -> tuple[Any, Any]:
        # From op(a) x = b follows op(a) x' = b' - op(a') x.
        (a, b), (a_dot, b_dot) = primals, tangents
        x = self.bind(a, b, **params)
        if type(a_dot) is Zero:
            return x, Zero.like(x) if type(b_dot) is Zero else self.bind(a, b_dot, **params)
        changed = unary.neg(_operated(a_dot, **params))
        multiply = matrices.product if params["left_side"] else _product_from_right
        count = b.shape[-1 if params["left_side"] else -2]
        if type(b_dot) is Zero and count > a.shape[-1]:
            # Fewer columns are solved for before the product than after it.
            return x, multiply(self.bind(a, changed, **params), x)
        return x, self.bind(a, add_tangents(b_dot, multiply(changed, x)), **params)

    def transpose(self, ct: Any, a: Any, b: Any, *, transpose_a: bool, **params: bool) -> Any:
        assert not is_linear(a), "it is linear in b alone"
        # With op(a) = aᴴ, the transpose of the inverse solves with the conjugate of a, and so on.
        return None, self.bind(a, ct, transpose_a=not transpose_a, **params)

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        (a, b), (a_dim, b_dim) = args, dims
        if a_dim is not None or aval_of(b).split is not None:
            a, b = to_batch_dim(a, a_dim, 0, size), to_batch_dim(b, b_dim, 0, size)
            return self.bind(a, b, **params), 0
        # Systems with one matrix are one system: the batch becomes more columns of it, or rows.
        position = b.ndim - 1 if params["left_side"] else b.ndim - 2
        b = moveaxis(b, b_dim, position)
        count = b.shape[position - 1] * size
        joined = reshape(b, (*b.shape[: position - 1], count, *b.shape[position + 1 :]))
        x = self.bind(a, joined, **params)
        return reshape(x, b.shape), position


def _operated(
    a: Any,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> Any:
    """op(a): the triangle that a solution depends on, transposed and conjugated as it is used."""
    inside = 1 if unit_diagonal else 0
    triangle = matrices.lower_triangle(a, -inside) if lower else matrices.upper_triangle(a, inside)
    triangle = matrices.conjugate(triangle) if conjugate_a else triangle
    return matrices.transposed(triangle) if transpose_a else triangle


def _product_from_right(a: Any, x: Any) -> Any:
    return matrices.product(x, a)


def _letter(character: str) -> np.uint8:
    return np.uint8(ord(character))


triangular_solve_p = TriangularSolve()


def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """Solves op(a) x = b, or x op(a) = b where not `left_side`, for x, with triangular matrices a.

    Shapes:     a: T[..., n, n], b: T[..., n, m] or T[..., n] -> the shape of b;
                b: T[..., m, n] or T[..., n] where not `left_side`.
    Dtypes:     inexact, the same of both.
    Derivative: linear in b.
    Lowers to:  BLAS's trsm on CPU, stablehlo.triangular_solve elsewhere.
    Source:     mirrors jax.lax.linalg.triangular_solve (0.10).

    Args:
        a: triangular matrices; of each one only the named triangle is read.
        b: right-hand sides.
        left_side: whether a stands on the left of x.
        lower: whether the lower triangle is meant.
        transpose_a: whether op transposes.
        conjugate_a: whether op conjugates.
        unit_diagonal: whether the diagonal is taken for ones, whatever it holds.

    Raises:
        TypeError: the dtypes differ or are not inexact, or so do the numbers of dimensions.
        ValueError: a is not square, or the shapes do not fit together.

    Example:
        >>> a = jnp.array([[2.0, 0.0], [1.0, 1.0]])
        >>> lax.linalg.triangular_solve(a, jnp.array([4.0, 5.0]), left_side=True, lower=True)
        Array([2., 3.], dtype=float32)
    """
    a, b = as_operand(a), as_operand(b)
    is_vector = aval_of(b).ndim == aval_of(a).ndim - 1
    if is_vector:
        b = expand_dims(b, (b.ndim if left_side else b.ndim - 1,))
    x = triangular_solve_p.bind(
        a,
        b,
        left_side=left_side,
        lower=lower,
        transpose_a=transpose_a,
        conjugate_a=conjugate_a and aval_of(a).dtype.kind == "c",
        unit_diagonal=unit_diagonal,
    )
    return squeeze(x, (x.ndim - 1 if left_side else x.ndim - 2,)) if is_vector else x
