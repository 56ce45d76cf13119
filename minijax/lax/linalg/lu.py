"""The LU factorization of matrices, and the permutations that its pivots mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core.aval import ShapedArray, aval_of, shaped_array
from minijax.core.errors import error
from minijax.interpreters.lowering import lower_function
from minijax.interpreters.structural import full, zeros
from minijax.interpreters.tangents import Zero, jvp_of_constant
from minijax.lax import binary, creation, shape
from minijax.lax.control_flow.looping import fori_loop
from minijax.lax.families import INEXACT, check_dtype
from minijax.lax.families import operand as as_operand
from minijax.lax.gather_numbers import GatherScatterMode, ScatterDimensionNumbers
from minijax.lax.gather_scatter import scatter
from minijax.lax.linalg import kernels, matrices
from minijax.lax.linalg.families import BatchedPrimitive, check_matrices, without_tangents
from minijax.lax.linalg.triangular import triangular_solve
from minijax.lax.slicing import dynamic_index_in_dim, dynamic_update_slice_in_dim
from minijax.lax.sorting import take_along_axis
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array


class LU(BatchedPrimitive):
    """P x = L U, with L and U in one matrix, the pivots, and the permutation that is P.

    Shapes: x: T[..., m, n] -> T[..., m, n], int32[..., min(m, n)], int32[..., m].
    """

    name = "lu"
    multiple_results = True

    def abstract_eval(self, x: ShapedArray) -> list[ShapedArray]:
        check_dtype("linalg.lu", "x", x, INEXACT)
        check_matrices("lu", "x", x)
        *batch, rows, columns = x.shape
        count, index = min(rows, columns), np.dtype(np.int32)
        return [
            x,
            shaped_array((*batch, count), index, x.weak_type),
            shaped_array((*batch, rows), index, x.weak_type),
        ]

    def lower(self, ctx: Any, x: Any) -> list[Any]:
        return lower_function(ctx, lambda x: self._factor(ctx.platform, x), x)

    def _factor(self, platform: str, x: Any) -> list[Any]:
        *batch, rows, columns = x.shape
        target = kernels.routine("lu", platform, "getrf", x.dtype)
        results = [(x.shape, x.dtype), ((*batch, min(rows, columns)), "int32"), (batch, "int32")]
        factors, pivots, info = kernels.call(
            platform, target, [x], results, batch=len(batch), aliases={0: 0}
        )
        # Pivots are counted from one; a singular matrix (info > 0) has its factors all the same.
        pivots = binary.sub(pivots, full(pivots.shape, 1, pivots.dtype))
        factors = kernels.nan_unless(binary.ge(info, full(info.shape, 0, info.dtype)), factors)
        return [factors, pivots, lu_pivots_to_permutation(pivots, rows)]

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        outs = self.bind(*primals)
        if type(tangents[0]) is Zero:
            return without_tangents(outs)
        factors, pivots, permutation = outs
        moved = matrices.rows_at(tangents[0], permutation)
        return outs, [tangent_of_factors(factors, moved), Zero.like(pivots), Zero.like(permutation)]


lu_p = LU()


def tangent_of_factors(factors: Any, x_dot: Any) -> Any:
    """L' and U' in one matrix, where L U = x, from L and U in one matrix and x'.

    With x1 the leading square block, L1⁻¹ x1' U1⁻¹ = L1⁻¹ L1' + U1' U1⁻¹ is the sum of a strictly
    lower triangle and an upper one.  The rows below and the columns beside it follow from
    x2' = L2' U1 + L2 U1' and x2' = L1' U2 + L1 U2'.
    """
    *_, rows, columns = factors.shape
    count = min(rows, columns)
    corner = (0, count)
    leading = matrices.block(factors, corner, corner)
    below, above = matrices.strict_lower_triangle(leading), matrices.upper_triangle(leading)
    unit_lower = binary.add(below, matrices.identity_like(leading))
    middle = _over_lower(leading, matrices.block(x_dot, corner, corner))
    middle = _over_upper(leading, middle)
    lower_dot = matrices.product(unit_lower, matrices.strict_lower_triangle(middle))
    upper_dot = matrices.product(matrices.upper_triangle(middle), above)
    leading_dot = binary.add(lower_dot, upper_dot)
    if rows > columns:
        rest = (count, rows)
        held = matrices.product(matrices.block(factors, rest, corner), upper_dot)
        moved = binary.sub(matrices.block(x_dot, rest, corner), held)
        return shape.concatenate([leading_dot, _over_upper(leading, moved)], factors.ndim - 2)
    if rows < columns:
        rest = (count, columns)
        held = matrices.product(lower_dot, matrices.block(factors, corner, rest))
        moved = binary.sub(matrices.block(x_dot, corner, rest), held)
        return shape.concatenate([leading_dot, _over_lower(leading, moved)], factors.ndim - 1)
    return leading_dot


def _over_lower(factors: Any, x: Any) -> Any:
    """L⁻¹ x."""
    return triangular_solve(factors, x, left_side=True, lower=True, unit_diagonal=True)


def _over_upper(factors: Any, x: Any) -> Any:
    """x U⁻¹."""
    return triangular_solve(factors, x)


def lu(x: ArrayLike) -> tuple[Array, Array, Array]:
    """The factors of matrices, P x = L U, found with exchanges of rows.

    Shapes:     x: T[..., m, n] -> T[..., m, n], int32[..., min(m, n)], int32[..., m].
    Dtypes:     float32, float64, complex64, complex128.
    Derivative: of the factors, for a matrix whose leading square block is regular.
    Lowers to:  LAPACK's getrf on CPU, cuSOLVER's on GPU.
    Source:     mirrors jax.lax.linalg.lu (0.10).

    Returns:
        U in the upper triangle and L below it (its diagonal is ones); the pivots, as LAPACK has
        them but counted from zero: row i was exchanged with row pivots[i]; and the permutation
        p for which x[p] = L U.

    Raises:
        TypeError: `x` is no matrix, or its dtype is not inexact.
        NotImplementedError: there is no kernel for the dtype, such as bfloat16.

    Example:
        >>> factors, pivots, permutation = lax.linalg.lu(jnp.array([[1.0, 2.0], [2.0, 4.5]]))
        >>> factors
        Array([[ 2.  ,  4.5 ],
               [ 0.5 , -0.25]], dtype=float32)
        >>> permutation
        Array([1, 0], dtype=int32)
    """
    factors, pivots, permutation = lu_p.bind(as_operand(x))
    return factors, pivots, permutation


class LuPivotsToPermutation(BatchedPrimitive):
    """The permutation that a sequence of exchanges amounts to.

    Shapes: pivots: int32[..., k] -> int32[..., permutation_size].
    """

    name = "lu_pivots_to_permutation"
    core_ndims = (1,)
    jvp = jvp_of_constant

    def abstract_eval(self, pivots: ShapedArray, *, permutation_size: int) -> ShapedArray:
        name = f"linalg.{self.name}"
        if pivots.dtype != np.int32 or pivots.ndim < 1:
            error(
                TypeError,
                f"lax.{name}",
                "pivots must be vectors of 32-bit integers.",
                got={"pivots": pivots},
                expected="int32[..., k]",
            )
        *batch, count = pivots.shape
        if permutation_size < count:
            error(
                ValueError,
                f"lax.{name}",
                "permutation_size is less than the number of pivots.",
                got={"pivots": pivots, "permutation_size": permutation_size},
                expected=f"at least {count}",
            )
        return shaped_array((*batch, permutation_size), pivots.dtype, pivots.weak_type)

    def lower(self, ctx: Any, pivots: Any, *, permutation_size: int) -> Any:
        def compute(pivots: Any) -> list[Any]:
            return [self._permutation(ctx.platform, pivots, permutation_size)]

        return lower_function(ctx, compute, pivots)[0]

    def _permutation(self, platform: str, pivots: Any, size: int) -> Any:
        *batch, count = pivots.shape
        rank = len(batch)
        if platform in kernels.GPUS:
            target = f"{kernels.GPUS[platform]}_{self.name}"
            return kernels.call(
                platform, target, [pivots], [((*batch, size), "int32")], batch=rank
            )[0]
        order = aval_of(pivots).update(shape=(*batch, size))
        # Zeros, so that the loop begins with an order that is split and varies as the pivots do.
        start = binary.add(creation.broadcasted_iota("int32", order.shape, rank), zeros(order))
        if 0 in pivots.shape:
            return start

        def exchange(i: Any, order: Any) -> Any:
            place = dynamic_index_in_dim(pivots, i, rank)
            here = dynamic_index_in_dim(order, i, rank)
            there = take_along_axis(order, place, rank)
            return _put(dynamic_update_slice_in_dim(order, there, i, rank), place, here)

        return fori_loop(0, count, exchange, start)


def _put(x: Any, place: Any, value: Any) -> Any:
    """`x` with one value along the last axis replaced: T[..., n], int[..., 1], T[..., 1]."""
    batch = tuple(range(x.ndim - 1))
    numbers = ScatterDimensionNumbers(
        update_window_dims=(),
        inserted_window_dims=(x.ndim - 1,),
        scatter_dims_to_operand_dims=(x.ndim - 1,),
        operand_batching_dims=batch,
        scatter_indices_batching_dims=batch,
    )
    return scatter(
        x,
        shape.expand_dims(place, (x.ndim,)),
        value,
        numbers,
        indices_are_sorted=True,
        unique_indices=True,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
    )


lu_pivots_to_permutation_p = LuPivotsToPermutation()


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """The permutation that the pivots of an LU factorization amount to.

    Shapes:     pivots: int32[..., k] -> int32[..., permutation_size].
    Derivative: none; the result is constant.
    Lowers to:  a loop over the pivots; on GPU, a kernel of jaxlib's.
    Source:     mirrors jax.lax.linalg.lu_pivots_to_permutation (0.10).

    Args:
        pivots: row i was exchanged with row pivots[i], for i = 0, 1, …
        permutation_size: how many rows there are.

    Raises:
        TypeError: the pivots are no vectors, or not of dtype int32.
        ValueError: there are more pivots than rows.

    Example:
        >>> lax.linalg.lu_pivots_to_permutation(jnp.array([2, 2]), 3)
        Array([2, 0, 1], dtype=int32)
    """
    return lu_pivots_to_permutation_p.bind(
        as_operand(pivots), permutation_size=int(permutation_size)
    )
