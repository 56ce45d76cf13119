"""Square matrices made simpler by unitary similarity: the forms of Schur and Hessenberg."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core.aval import ShapedArray, shaped_array
from minijax.core.errors import error
from minijax.interpreters.lowering import lower_function
from minijax.interpreters.structural import full
from minijax.lax import binary
from minijax.lax.families import INEXACT, check_dtype
from minijax.lax.families import operand as as_operand
from minijax.lax.linalg import kernels
from minijax.lax.linalg.families import BatchedPrimitive, check_matrices
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array


class Schur(BatchedPrimitive):
    """T, upper triangular, and Q, unitary, with Q T Qᴴ = x.

    Real matrices have a real T with a block of two rows and columns on the diagonal for each pair
    of complex eigenvalues.  T and Q are not unique: there is no jvp.

    Shapes: x: T[..., n, n] -> T[..., n, n], and with `compute_schur_vectors` T[..., n, n].
    """

    name = "schur"
    multiple_results = True
    without = frozenset({"jvp"})

    def abstract_eval(
        self, x: ShapedArray, *, compute_schur_vectors: bool, **params: Any
    ) -> list[ShapedArray]:
        check_dtype("linalg.schur", "x", x, INEXACT)
        check_matrices("schur", "x", x, square=True)
        return [x] * (1 + compute_schur_vectors)

    def lower(self, ctx: Any, x: Any, **params: Any) -> list[Any]:
        return lower_function(ctx, lambda x: self._reduce(ctx.platform, x, **params), x)

    def _reduce(
        self,
        platform: str,
        x: Any,
        *,
        compute_schur_vectors: bool,
        sort_eig_vals: bool,
        select_callable: Callable[..., Any] | None,
    ) -> list[Any]:
        if sort_eig_vals:
            error(
                NotImplementedError,
                "lax.linalg.schur",
                "eigenvalues cannot be sorted.",
                got=f"sort_eig_vals: True, select_callable: {select_callable}",
                fix="sort_eig_vals=False",
            )
        target = _on_host("schur", platform, "gees", x.dtype)
        batch = x.shape[:-2]
        # Kernels for real matrices give the two parts of eigenvalues apart.
        values = [(x.shape[:-1], x.dtype)] * (1 if x.dtype.kind == "c" else 2)
        form, vectors, *_, info = kernels.call(
            platform,
            target,
            [x],
            [(x.shape, x.dtype)] * 2 + values + [(batch, "int32")] * 2,
            {
                "mode": kernels.VECTORS if compute_schur_vectors else kernels.NO_VECTORS,
                "sort": np.uint8(ord("N")),
            },
            batch=len(batch),
            aliases={0: 0},
        )
        outs = [form, vectors] if compute_schur_vectors else [form]
        succeeded = binary.eq(info, full(batch, 0, info.dtype))
        return [kernels.nan_unless(succeeded, out) for out in outs]


class Hessenberg(BatchedPrimitive):
    """H, zero below its first subdiagonal, where reflections are stored, and their scales.

    They are not unique: there is no jvp.

    Shapes: x: T[..., n, n] -> T[..., n, n], T[..., n - 1].
    """

    name = "hessenberg"
    multiple_results = True
    without = frozenset({"jvp"})

    def abstract_eval(self, x: ShapedArray) -> list[ShapedArray]:
        check_dtype("linalg.hessenberg", "a", x, INEXACT)
        check_matrices("hessenberg", "a", x, square=True)
        return [x, shaped_array(_scales_shape(x.shape), x.dtype, x.weak_type)]

    def lower(self, ctx: Any, x: Any) -> list[Any]:
        return lower_function(ctx, lambda x: self._reduce(ctx.platform, x), x)

    def _reduce(self, platform: str, x: Any) -> list[Any]:
        target = _on_host("hessenberg", platform, "gehrd", x.dtype)
        batch = x.shape[:-2]
        *outs, info = kernels.call(
            platform,
            target,
            [x],
            [(x.shape, x.dtype), (_scales_shape(x.shape), x.dtype), (batch, "int32")],
            {"low": np.int32(1), "high": np.int32(x.shape[-1])},
            batch=len(batch),
            aliases={0: 0},
        )
        succeeded = binary.eq(info, full(batch, 0, info.dtype))
        return [kernels.nan_unless(succeeded, out) for out in outs]


def _scales_shape(shape: Sequence[int]) -> tuple[int, ...]:
    return (*shape[:-2], max(shape[-1] - 1, 0))


def _on_host(name: str, platform: str, routine: str, dtype: Any) -> str:
    """A routine that only LAPACK has."""
    if platform != "cpu":
        raise kernels.refuse_platform(name, platform)
    return kernels.routine(name, platform, routine, dtype)


schur_p = Schur()
hessenberg_p = Hessenberg()


def schur(
    x: ArrayLike,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., Any] | None = None,
) -> Array:
    """The Schur decomposition: [T, Q] with Q T Qᴴ = x, where T is triangular and Q unitary.

    Real matrices have a real T, with a block of two rows and columns on the diagonal for each pair
    of complex eigenvalues.  All are NaN where the iteration did not converge.

    Shapes:     x: T[..., n, n] -> T[..., n, n], T[..., n, n].
    Dtypes:     float32, float64, complex64, complex128.
    Derivative: none.
    Lowers to:  LAPACK's gees, on CPU.
    Source:     mirrors jax.lax.linalg.schur (0.10).

    Args:
        x: square matrices.
        compute_schur_vectors: whether Q is wanted; else the list has T alone.
        sort_eig_vals: whether some eigenvalues come first; not implemented.
        select_callable: which of them.

    Raises:
        TypeError: the dtype is not inexact, or `x` is no matrix.
        IncompatibleShapesError: the matrices are not square.
        NotImplementedError: eigenvalues are to be sorted.

    Example:
        >>> lax.linalg.schur(jnp.array([[1.0, 2.0], [0.0, 3.0]]))[0]
        Array([[1., 2.],
               [0., 3.]], dtype=float32)
    """
    return schur_p.bind(
        as_operand(x),
        compute_schur_vectors=compute_schur_vectors,
        sort_eig_vals=sort_eig_vals,
        select_callable=select_callable,
    )


def hessenberg(a: ArrayLike) -> tuple[Array, Array]:
    """The Hessenberg form H = Qᴴ a Q, which is zero below its first subdiagonal.

    Q is a product of Householder reflections: their vectors are stored below that subdiagonal, and
    their scales are the second result, in the form that `householder_product` takes.

    Shapes:     a: T[..., n, n] -> T[..., n, n], T[..., n - 1].
    Dtypes:     float32, float64, complex64, complex128.
    Derivative: none.
    Lowers to:  LAPACK's gehrd, on CPU.
    Source:     mirrors jax.lax.linalg.hessenberg (0.10).

    Args:
        a: square matrices.

    Raises:
        TypeError: the dtype is not inexact, or `a` is no matrix.
        IncompatibleShapesError: the matrices are not square.

    Example:
        >>> lax.linalg.hessenberg(jnp.array([[1.0, 2.0], [3.0, 4.0]]))[0]
        Array([[1., 2.],
               [3., 4.]], dtype=float32)
    """
    form, scales = hessenberg_p.bind(as_operand(a))
    return form, scales
