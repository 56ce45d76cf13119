"""Products of Householder reflections: the form in which QR factorizations are found.

A reflection is I - t v vᴴ.  Column i of a matrix holds v below its diagonal; above v[i] = 1 stand
zeros that are not stored, so that the matrix has room for R in its upper triangle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.core.aval import ShapedArray, shaped_array
from minijax.core.errors import error
from minijax.interpreters.lowering import lower_function
from minijax.interpreters.structural import full
from minijax.lax import binary
from minijax.lax.families import INEXACT, check_dtype
from minijax.lax.families import operand as as_operand
from minijax.lax.linalg import kernels
from minijax.lax.linalg.families import (
    BatchedPrimitive,
    check_matrices,
    check_together,
    weak_if_all,
)
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array

_MAGMA = {None: "auto", True: "on", False: "off"}


class Geqrf(BatchedPrimitive):
    """R in the upper triangle, and below it the reflections whose product is Q, with Q R = x.

    Shapes: x: T[..., m, n] -> T[..., m, n], T[..., min(m, n)].  The jvp is that of `qr`.
    """

    name = "geqrf"
    multiple_results = True
    without = frozenset({"jvp"})

    def abstract_eval(self, x: ShapedArray) -> list[ShapedArray]:
        return [x, _scales_of(self.name, x)]

    def lower(self, ctx: Any, x: Any) -> list[Any]:
        return lower_function(ctx, lambda x: self._factor(ctx.platform, x), x)

    def _factor(self, platform: str, x: Any) -> list[Any]:
        target = kernels.routine("qr", platform, "geqrf", x.dtype)
        results = [(x.shape, x.dtype), (_scales_shape(x.shape), x.dtype)]
        return kernels.call(platform, target, [x], results, batch=x.ndim - 2, aliases={0: 0})


geqrf_p = Geqrf()


def geqrf(x: Any) -> tuple[Any, Any]:
    """R and the reflections whose product is Q, in one matrix, and their scales; Q R = x."""
    factors, scales = geqrf_p.bind(as_operand(x))
    return factors, scales


class Geqp3(BatchedPrimitive):
    """As `geqrf`, of columns in an order in which the diagonal of R does not increase.

    A column whose pivot is not zero is moved to the front; no other one is moved before it.

    Shapes: x: T[..., m, n], pivots: int32[..., n]
        -> T[..., m, n], int32[..., n], T[..., min(m, n)].  The jvp is that of `qr`.
    """

    name = "geqp3"
    core_ndims = (2, 1)
    multiple_results = True
    without = frozenset({"jvp"})

    def abstract_eval(
        self, x: ShapedArray, pivots: ShapedArray, *, use_magma: bool | None
    ) -> list[ShapedArray]:
        return [x, pivots.update(weak_type=x.weak_type), _scales_of(self.name, x)]

    def lower(self, ctx: Any, x: Any, pivots: Any, *, use_magma: bool | None) -> list[Any]:
        def compute(x: Any, pivots: Any) -> list[Any]:
            return self._factor(ctx.platform, x, pivots, use_magma)

        return lower_function(ctx, compute, x, pivots)

    def _factor(self, platform: str, x: Any, pivots: Any, use_magma: bool | None) -> list[Any]:
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


def geqp3(x: Any, pivots: Any, *, use_magma: bool | None = None) -> tuple[Any, Any, Any]:
    """As `geqrf`, with the order of the columns between the two."""
    factors, order, scales = geqp3_p.bind(as_operand(x), as_operand(pivots), use_magma=use_magma)
    return factors, order, scales


def _scales_of(name: str, x: ShapedArray) -> ShapedArray:
    check_dtype(f"linalg.{name}", "x", x, INEXACT)
    check_matrices(name, "x", x)
    return shaped_array(_scales_shape(x.shape), x.dtype, x.weak_type)


def _scales_shape(shape: Sequence[int]) -> tuple[int, ...]:
    *batch, rows, columns = shape
    return (*batch, min(rows, columns))


class HouseholderProduct(BatchedPrimitive):
    """The first columns of a product of reflections.

    Shapes: a: T[..., m, n], taus: T[..., k] -> T[..., m, n], with m ≥ n ≥ k.  As in JAX there is no
    jvp; that of `qr` is of the result and needs no reflections.
    """

    name = "householder_product"
    core_ndims = (2, 1)
    without = frozenset({"jvp"})

    def abstract_eval(self, a: ShapedArray, taus: ShapedArray) -> ShapedArray:
        _check_reflections(self, a=a, taus=taus)
        rows, columns = a.shape[-2:]
        if not rows >= columns >= taus.shape[-1]:
            error(
                ValueError,
                f"lax.linalg.{self.name}",
                "there must not be more reflections than columns, nor columns than rows.",
                got={"a": a, "taus": taus},
                expected="a: T[..., m, n], taus: T[..., k], with m ≥ n ≥ k",
            )
        return a.update(weak_type=weak_if_all(a, taus))

    def lower(self, ctx: Any, a: Any, taus: Any) -> Any:
        return lower_function(ctx, lambda a, t: [self._multiply(ctx.platform, a, t)], a, taus)[0]

    def _multiply(self, platform: str, a: Any, taus: Any) -> Any:
        target = kernels.routine(self.name, platform, "orgqr", a.dtype)
        return kernels.call(
            platform, target, [a, taus], [(a.shape, a.dtype)], batch=a.ndim - 2, aliases={0: 0}
        )[0]


householder_product_p = HouseholderProduct()


def _check_reflections(primitive: BatchedPrimitive, **avals: ShapedArray) -> None:
    for argument, aval in avals.items():
        check_dtype(f"linalg.{primitive.name}", argument, aval, INEXACT)
    check_together(primitive.name, primitive.core_ndims, **avals)


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """The first columns of the product of Householder reflections I - t v vᴴ.

    Shapes:     a: T[..., m, n], taus: T[..., k] -> T[..., m, n], with m ≥ n ≥ k.
    Dtypes:     float32, float64, complex64, complex128, the same of both.
    Derivative: none.
    Lowers to:  LAPACK's orgqr, or ungqr, on CPU, cuSOLVER's on GPU.
    Source:     mirrors jax.lax.linalg.householder_product (0.10).

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


class Ormqr(BatchedPrimitive):
    """The product of a matrix and a product of reflections, which is not computed.

    Shapes: a: T[..., m, n], taus: T[..., k], c: T[..., m, l] or T[..., l, m] -> that of c.  As in
        JAX there is no jvp.
    """

    name = "ormqr"
    core_ndims = (2, 1, 2)
    without = frozenset({"jvp"})

    def abstract_eval(
        self, a: ShapedArray, taus: ShapedArray, c: ShapedArray, *, left: bool, transpose: bool
    ) -> ShapedArray:
        _check_reflections(self, a=a, taus=taus, c=c)
        rows, columns = a.shape[-2:]
        fits = c.shape[-2 if left else -1] == rows
        if not (fits and min(rows, columns) >= taus.shape[-1]):
            error(
                ValueError,
                f"lax.linalg.{self.name}",
                "the matrices do not fit together.",
                got={"a": a, "taus": taus, "c": c},
                expected=f"a: T[..., m, n], taus: T[..., k], c: T[..., "
                f"{'m, l' if left else 'l, m'}], with k at most m and n",
            )
        return c.update(weak_type=weak_if_all(a, taus, c))

    def lower(self, ctx: Any, a: Any, taus: Any, c: Any, **params: bool) -> Any:
        def compute(*operands: Any) -> list[Any]:
            return [self._multiply(ctx.platform, *operands, **params)]

        return lower_function(ctx, compute, a, taus, c)[0]

    def _multiply(
        self, platform: str, a: Any, taus: Any, c: Any, *, left: bool, transpose: bool
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
    Source:     mirrors jax.lax.linalg.ormqr (0.10).

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
