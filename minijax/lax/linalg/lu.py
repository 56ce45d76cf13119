"""LU factorizations, and systems of linear equations, triangular or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import vma
from minijax.core.aval import ShapedArray, aval_of, shaped_array
from minijax.core.errors import error
from minijax.core.primitive import Batched, Cotangents, Dual, Zero
from minijax.interpreters.jvp import is_linear, jvp_of_constant
from minijax.interpreters.structural import add_tangents, full, moveaxis, to_batch_dim, zeros
from minijax.lax import binary, creation, shape, sorting, unary
from minijax.lax.control_flow.looping import fori_loop
from minijax.lax.creation import broadcasted_iota
from minijax.lax.families import INEXACT
from minijax.lax.families import operand as as_operand
from minijax.lax.gather_numbers import GatherScatterMode, ScatterDimensionNumbers
from minijax.lax.gather_scatter import scatter
from minijax.lax.linalg import kernels
from minijax.lax.shape import expand_dims, reshape, squeeze
from minijax.lax.slicing import dynamic_index_in_dim, dynamic_update_slice_in_dim
from minijax.lax.sorting import take_along_axis
from minijax.lowering.module import lower_function
from minijax.lowering.stablehlo import LoweringContext, Value
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array


class TriangularSolve(kernels.BatchedPrimitive):
    """Solves op(a) x = b, or x op(a) = b where not `left_side`, for x.

    Shapes: a: T[..., n, n], b: T[..., n, m] or T[..., m, n] -> the shape of b.
    """

    name = "triangular_solve"
    core_ndims = (2, 2)

    def abstract_eval(
        self, a: ShapedArray, b: ShapedArray, *, left_side: bool, **params: Any
    ) -> ShapedArray:
        kernels.check_together(self, INEXACT, a=a, b=b)
        kernels.check_matrices("triangular_solve", "a", a, square=True)
        if b.shape[-2 if left_side else -1] != a.shape[-1]:
            problem = f"the {'rows' if left_side else 'columns'} of b do not fit the matrices a."
            got = {"a": a, "b": b}
            expected = f"b: {'T[..., n, m]' if left_side else 'T[..., m, n]'}"
            error(ValueError, "lax.linalg.triangular_solve", problem, got=got, expected=expected)
        return b.update(weak_type=kernels.weak_if_all(a, b))

    def lower(self, ctx: LoweringContext, a: Value, b: Value, **params: bool) -> Any:
        given = _Operator(**params)
        conjugate_first = given.conjugate_a and not given.transpose_a
        if ctx.platform == "cpu" and ctx.avals_in[0].dtype.name in kernels.LETTERS:

            def by_lapack(a: Array, b: Array) -> list[Any]:
                return [_by_lapack(kernels.conjugate(a) if conjugate_first else a, b, given)]

            return lower_function(ctx, by_lapack, a, b)[0]
        if conjugate_first:
            a = lower_function(ctx, lambda a, b: [kernels.conjugate(a)], a, b)[0]
        transposition = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}[given.letter]
        attributes = {
            "left_side": ctx.boolean(given.left_side),
            "lower": ctx.boolean(given.lower),
            "unit_diagonal": ctx.boolean(given.unit_diagonal),
            "transpose_a": ctx.attribute(f"#stablehlo<transpose {transposition}>"),
        }
        return ctx.op("stablehlo.triangular_solve", [a, b], attributes)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: bool) -> Dual:
        # From op(a) x = b follows op(a) x' = b' - op(a') x.
        (a, b), (a_dot, b_dot) = primals, tangents
        x = self.bind(a, b, **params)
        if type(a_dot) is Zero:
            return x, self.bind(a, b_dot, **params)
        changed = unary.neg(_Operator(**params).of(a_dot))
        multiply = kernels.product if params["left_side"] else lambda a, x: kernels.product(x, a)
        count = b.shape[-1 if params["left_side"] else -2]
        if type(b_dot) is Zero and count > a.shape[-1]:
            # Fewer columns are solved for before the product than after it.
            return x, multiply(self.bind(a, changed, **params), x)
        return x, self.bind(a, add_tangents(b_dot, multiply(changed, x)), **params)

    def transpose(
        self, ct: Array, a: Array, b: Array, *, transpose_a: bool, **params: bool
    ) -> Cotangents:
        assert not is_linear(a), "it is linear in b alone"
        # With op(a) = aᴴ, the transpose of the inverse solves with the conjugate of a, and so on.
        return None, self.bind(a, ct, transpose_a=not transpose_a, **params)

    def batch(self, size: int, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Batched:
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


vma.linear_in.set(((1,),), TriangularSolve)


class _Operator(NamedTuple):
    """How a solution depends on a matrix: the parameters of `triangular_solve`."""

    left_side: bool
    lower: bool
    transpose_a: bool
    conjugate_a: bool
    unit_diagonal: bool

    @property
    def letter(self) -> str:
        """What BLAS calls the transposition: N, T, or C with conjugation."""
        return ("C" if self.conjugate_a else "T") if self.transpose_a else "N"

    def of(self, a: Array) -> Array:
        """op(a): the triangle that a solution depends on, transposed and conjugated as used."""
        inside = 1 if self.unit_diagonal else 0
        lower, upper = kernels.lower_triangle, kernels.upper_triangle
        triangle = lower(a, -inside) if self.lower else upper(a, inside)
        triangle = kernels.conjugate(triangle) if self.conjugate_a else triangle
        return kernels.transposed(triangle) if self.transpose_a else triangle


def _by_lapack(a: Array, b: Array, given: _Operator) -> Any:
    attributes = {
        "side": _letter("L" if given.left_side else "R"),
        "uplo": kernels.LOWER if given.lower else kernels.UPPER,
        "trans_x": _letter(given.letter),
        "diag": _letter("U" if given.unit_diagonal else "N"),
    }
    target, result = kernels.lapack("trsm", a.dtype), [(b.shape, b.dtype)]
    batch = a.ndim - 2
    return kernels.call("cpu", target, [a, b], result, attributes, batch=batch, aliases={1: 0})[0]


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


class LU(kernels.BatchedPrimitive):
    """P x = L U, with L and U in one matrix, the pivots, and the permutation that is P.

    Shapes: x: T[..., m, n] -> T[..., m, n], int32[..., min(m, n)], int32[..., m].
    """

    name = "lu"
    multiple_results = True

    def abstract_eval(self, x: ShapedArray) -> list[ShapedArray]:
        kernels.check_matrices("lu", "x", x)
        *batch, rows, columns = x.shape
        count, index = min(rows, columns), np.dtype(np.int32)
        return [
            x,
            shaped_array((*batch, count), index, x.weak_type),
            shaped_array((*batch, rows), index, x.weak_type),
        ]

    def compute(self, platform: str, x: Array) -> list[Any]:
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

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array]) -> Dual:
        outs = self.bind(*primals)
        factors, pivots, permutation = outs
        moved = kernels.rows_at(tangents[0], permutation)
        return outs, [tangent_of_factors(factors, moved), Zero.like(pivots), Zero.like(permutation)]


lu_p = LU()


def tangent_of_factors(factors: Array, x_dot: Array) -> Any:
    """L' and U' in one matrix, where L U = x, from L and U in one matrix and x'.

    With x1 the leading square block, L1⁻¹ x1' U1⁻¹ = L1⁻¹ L1' + U1' U1⁻¹ is the sum of a strictly
    lower triangle and an upper one.  The rows below and the columns beside it follow from
    x2' = L2' U1 + L2 U1' and x2' = L1' U2 + L1 U2'.
    """
    *_, rows, columns = factors.shape
    count = min(rows, columns)
    corner = (0, count)
    leading = kernels.block(factors, corner, corner)
    below, above = kernels.strict_lower_triangle(leading), kernels.upper_triangle(leading)
    unit_lower = binary.add(below, kernels.identity_like(leading))
    middle = _over_lower(leading, kernels.block(x_dot, corner, corner))
    middle = _over_upper(leading, middle)
    lower_dot = kernels.product(unit_lower, kernels.strict_lower_triangle(middle))
    upper_dot = kernels.product(kernels.upper_triangle(middle), above)
    leading_dot = binary.add(lower_dot, upper_dot)
    if rows > columns:
        rest = (count, rows)
        held = kernels.product(kernels.block(factors, rest, corner), upper_dot)
        moved = binary.sub(kernels.block(x_dot, rest, corner), held)
        return shape.concatenate([leading_dot, _over_upper(leading, moved)], factors.ndim - 2)
    if rows < columns:
        rest = (count, columns)
        held = kernels.product(lower_dot, kernels.block(factors, corner, rest))
        moved = binary.sub(kernels.block(x_dot, corner, rest), held)
        return shape.concatenate([leading_dot, _over_lower(leading, moved)], factors.ndim - 1)
    return leading_dot


def _over_lower(factors: Array, x: Array) -> Any:
    """L⁻¹ x."""
    return triangular_solve(factors, x, left_side=True, lower=True, unit_diagonal=True)


def _over_upper(factors: Array, x: Array) -> Any:
    """x U⁻¹."""
    return triangular_solve(factors, x)


def lu(x: ArrayLike) -> tuple[Array, Array, Array]:
    """The factors of matrices, P x = L U, found with exchanges of rows.

    Shapes:     x: T[..., m, n] -> T[..., m, n], int32[..., min(m, n)], int32[..., m].
    Dtypes:     float32, float64, complex64, complex128.
    Derivative: of the factors, for a matrix whose leading square block is regular.
    Lowers to:  LAPACK's getrf on CPU, cuSOLVER's on GPU.

    Returns:
        U in the upper triangle and L below it (its diagonal is ones); the pivots, as LAPACK has
        them but counted from zero: row i was exchanged with row pivots[i]; and the permutation
        p for which x[p] = L U.

    Raises:
        TypeError: `x` is not a matrix, or its dtype is not inexact.
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


class LuPivotsToPermutation(kernels.BatchedPrimitive):
    """The permutation that a sequence of exchanges amounts to.

    Shapes: pivots: int32[..., k] -> int32[..., permutation_size].
    """

    name = "lu_pivots_to_permutation"
    core_ndims = (1,)
    jvp = jvp_of_constant

    def abstract_eval(self, pivots: ShapedArray, *, permutation_size: int) -> ShapedArray:
        name = f"linalg.{self.name}"
        if pivots.dtype != np.int32 or pivots.ndim < 1:
            problem = "pivots must be vectors of 32-bit integers."
            expected = "int32[..., k]"
            error(TypeError, f"lax.{name}", problem, got={"pivots": pivots}, expected=expected)
        *batch, count = pivots.shape
        if permutation_size < count:
            problem = "permutation_size is less than the number of pivots."
            got = {"pivots": pivots, "permutation_size": permutation_size}
            error(ValueError, f"lax.{name}", problem, got=got, expected=f"at least {count}")
        return shaped_array((*batch, permutation_size), pivots.dtype, pivots.weak_type)

    def compute(self, platform: str, pivots: Array, *, permutation_size: int) -> Array:
        *batch, count = pivots.shape
        rank = len(batch)
        if platform in kernels.GPUS:
            target = f"{kernels.GPUS[platform]}_{self.name}"
            return kernels.call(
                platform, target, [pivots], [((*batch, permutation_size), "int32")], batch=rank
            )[0]
        order = aval_of(pivots).update(shape=(*batch, permutation_size))
        # Zeros, so that the loop begins with an order that is split and varies as the pivots do.
        start = binary.add(creation.broadcasted_iota("int32", order.shape, rank), zeros(order))
        if 0 in pivots.shape:
            return start

        def exchange(i: Array, order: Array) -> Any:
            place = dynamic_index_in_dim(pivots, i, rank)
            here = dynamic_index_in_dim(order, i, rank)
            there = take_along_axis(order, place, rank)
            return _put(dynamic_update_slice_in_dim(order, there, i, rank), place, here)

        return fori_loop(0, count, exchange, start)


def _put(x: Array, place: Array, value: Array) -> Any:
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
    """Converts the pivots of an LU factorization to a permutation.

    Shapes:     pivots: int32[..., k] -> int32[..., permutation_size].
    Derivative: none; the result is constant.
    Lowers to:  a loop over the pivots; on GPU, a kernel of jaxlib's.

    Args:
        pivots: row i was exchanged with row pivots[i], for i = 0, 1, …
        permutation_size: how many rows there are.

    Raises:
        TypeError: the pivots are not vectors, or not of dtype int32.
        ValueError: there are more pivots than rows.

    Example:
        >>> lax.linalg.lu_pivots_to_permutation(jnp.array([2, 2]), 3)
        Array([2, 0, 1], dtype=int32)
    """
    return lu_pivots_to_permutation_p.bind(
        as_operand(pivots), permutation_size=int(permutation_size)
    )


def solve_square(a: Array, b: Array) -> Any:
    """The solutions of a x = b: T[..., n, n], T[..., n, m] -> T[..., n, m]."""
    factors, _, permutation = lu(a)
    return solve_by_lu(factors, permutation, b)


def solve_by_lu(factors: Array, permutation: Array, b: Array, trans: int = 0) -> Any:
    """The solutions of op(a) x = b from the LU factors of matrices a.

    Args:
        factors: L and U in one matrix, T[..., n, n].
        permutation: the order of the rows of a that they are of, int[..., n].
        b: right-hand sides, T[..., n, m].
        trans: what op(a) is: a where 0, its transposed matrix where 1, its adjoint where 2.
    """
    if trans == 0:
        x = triangular_solve(
            factors, kernels.rows_at(b, permutation), left_side=True, lower=True, unit_diagonal=True
        )
        return triangular_solve(factors, x, left_side=True)
    options = {"left_side": True, "transpose_a": True, "conjugate_a": trans == 2}
    x = triangular_solve(factors, b, **options)
    x = triangular_solve(factors, x, lower=True, unit_diagonal=True, **options)
    return kernels.rows_at(x, inverse_permutation(permutation))


def inverse_permutation(permutation: Array) -> Any:
    """The permutation that undoes another: int[..., n] -> int[..., n]."""
    last = permutation.ndim - 1
    places = broadcasted_iota(permutation.dtype, permutation.shape, last)
    return sorting.sort_key_val(permutation, places, dimension=last)[1]
