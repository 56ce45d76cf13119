"""Eigenvalues of Hermitian and of square matrices, and the simpler forms that lead to them.

Hermitian matrices become tridiagonal, others Hessenberg or Schur forms.  Systems of equations with
tridiagonal matrices are solved here too.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from minijax.core import dtypes, vma
from minijax.core.aval import ShapedArray, aval_of, shaped_array
from minijax.core.errors import MissingRule, error, warn
from minijax.core.primitive import Batched, Cotangents, Dual, Zero
from minijax.interpreters.jvp import is_linear
from minijax.interpreters.structural import add_tangents, full, moveaxis
from minijax.lax import binary, creation, reduction, unary
from minijax.lax.binary import select
from minijax.lax.families import INEXACT
from minijax.lax.families import operand as as_operand
from minijax.lax.linalg import kernels
from minijax.lax.linalg.lu import solve_square
from minijax.lax.padding import pad
from minijax.lax.shape import broadcast_in_dim, reshape
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array

Subset = tuple[int, int] | None


class Tridiagonal(kernels.BatchedPrimitive):
    """Qᴴ x Q = T for Hermitian x: reflections that make up Q, the diagonals of T, and their scales.

    They are not unique: there is no jvp.

    Shapes: x: T[..., n, n] -> T[..., n, n], real T[..., n], real T[..., n - 1], T[..., n - 1].
    """

    name = "tridiagonal"
    multiple_results = True

    def abstract_eval(self, x: ShapedArray, *, lower: bool) -> list[ShapedArray]:
        kernels.check_matrices("tridiagonal", "a", x, square=True)
        if not x.shape[-1]:
            error(ValueError, "lax.linalg.tridiagonal", "the matrices have no rows.", got={"a": x})
        return [shaped_array(shape, dtype, x.weak_type) for shape, dtype in _results(x)]

    def compute(self, platform: str, x: Array, *, lower: bool) -> list[Any]:
        target = kernels.routine("tridiagonal", platform, "sytrd", x.dtype)
        attributes = kernels.triangle(platform, lower=lower)
        return kernels.checked_call(platform, target, x, _results(x), attributes)


def _results(x: Array | ShapedArray) -> list[tuple[tuple[int, ...], Any]]:
    *batch, size, _ = x.shape
    real = dtypes.real_dtype_of(x.dtype)
    beside = (*batch, size - 1)
    return [(x.shape, x.dtype), ((*batch, size), real), (beside, real), (beside, x.dtype)]


tridiagonal_p = Tridiagonal()


def tridiagonal(a: ArrayLike, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
    """Reduces Hermitian matrices to tridiagonal ones, Qᴴ a Q = T.

    The results are the reflections whose product is Q, with T among them; the diagonal of T; what
    stands beside its diagonal; the scales of the reflections.

    Shapes:     a: T[..., n, n] -> T[..., n, n], real T[..., n], real T[..., n - 1], T[..., n - 1].
    Dtypes:     float32, float64, complex64, complex128; T is real.
    Derivative: none.
    Lowers to:  LAPACK's sytrd on CPU, cuSOLVER's on GPU.

    Args:
        a: Hermitian matrices.
        lower: whether the lower triangle is read, and holds the reflections; else the upper one.

    Raises:
        TypeError: the dtype is not inexact, or `a` is not a matrix.
        ValueError: the matrices are not square, or have no rows.

    Example:
        >>> lax.linalg.tridiagonal(jnp.array([[1.0, 2.0], [2.0, 3.0]]))[1]
        Array([1., 3.], dtype=float32)
    """
    reflections, diagonal, beside, scales = tridiagonal_p.bind(as_operand(a), lower=lower)
    return reflections, diagonal, beside, scales


class TridiagonalSolve(kernels.BatchedPrimitive):
    """Solves a x = b for x, where dl[i], d[i] and du[i] are what a[i] holds around its diagonal.

    Shapes: dl, d, du: T[..., n], b: T[..., n, m] -> T[..., n, m].
    """

    name = "tridiagonal_solve"
    core_ndims = (1, 1, 1, 2)

    def abstract_eval(
        self, dl: ShapedArray, d: ShapedArray, du: ShapedArray, b: ShapedArray, **_: Any
    ) -> ShapedArray:
        avals = {"dl": dl, "d": d, "du": du, "b": b}
        kernels.check_together(self, INEXACT, **avals)
        if not dl.shape == d.shape == du.shape == b.shape[:-1]:
            error(
                TypeError,
                "lax.linalg.tridiagonal_solve",
                "the diagonals and the right-hand sides do not fit together.",
                got=avals,
                expected="dl, d, du: T[..., n], b: T[..., n, m]",
                fix="fill dl with an element in front, and du with one at its end",
            )
        return b.update(weak_type=kernels.weak_if_all(dl, d, du, b))

    def compute(self, platform: str, *operands: Array, perturb_singular: bool) -> Array:
        b = operands[-1]
        batch = b.shape[:-2]
        kernels.routine("tridiagonal_solve", platform, "gtsv", b.dtype)
        result = [(b.shape, b.dtype)]
        if perturb_singular:
            prefix = f"{kernels.GPUS[platform]}_" if platform in kernels.GPUS else ""
            suffix = "" if prefix else "_ffi"
            target = f"{prefix}tridiagonal_solve_perturbed{suffix}"
            return kernels.call(platform, target, operands, result, batch=len(batch))[0]
        if platform in kernels.GPUS:
            target = f"{kernels.GPUS[platform]}sparse_gtsv2_ffi"
            return kernels.call(
                platform, target, operands, result, batch=len(batch), aliases={3: 0}
            )[0]
        *_, x, info = kernels.call(
            platform,
            kernels.lapack("gtsv", b.dtype),
            operands,
            [*((each.shape, each.dtype) for each in operands), (batch, "int32")],
            batch=len(batch),
            aliases={i: i for i in range(4)},
        )
        return kernels.nan_where_failed(info, x)[0]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: bool) -> Dual:
        # From a x = b follows a x' = b' - a' x.
        *diagonals, _ = primals
        *changes, b_dot = tangents
        x = self.bind(*primals, **params)
        right = b_dot
        for offset, change in zip((-1, 0, 1), changes, strict=True):
            if type(change) is not Zero:
                right = add_tangents(right, unary.neg(_times_diagonal(change, offset, x)))
        return x, self.bind(*diagonals, right, **params)

    def transpose(
        self, ct: Array, dl: Array, d: Array, du: Array, b: Array, **params: bool
    ) -> Cotangents:
        assert not any(map(is_linear, (dl, d, du))), "it is linear in b alone"
        # What stands below the diagonal in row i stands above it in row i - 1 of the transpose.
        lower, upper = _shifted(du, 1), _shifted(dl, -1)
        return None, None, None, self.bind(lower, d, upper, ct, **params)

    def batch(self, size: int, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Batched:
        *diagonals, b = args
        if any(dim is not None for dim in dims[:-1]) or aval_of(b).split is not None:
            return super().batch(size, args, dims, **params)
        # Systems with one matrix are one system: the batch becomes more columns of it.
        last = b.ndim - 1
        b = moveaxis(b, dims[-1], last)
        joined = reshape(b, (*b.shape[: last - 1], b.shape[last - 1] * size))
        return reshape(self.bind(*diagonals, joined, **params), b.shape), last


vma.linear_in.set(((3,),), TridiagonalSolve)


def _shifted(x: Array, offset: int) -> Any:
    """Elements moved towards the end of vectors, or the front, where zeros fill the place."""
    config = [(0, 0, 0)] * (x.ndim - 1) + [(offset, -offset, 0)]
    return pad(x, full((), 0, x.dtype), config)


def _times_diagonal(diagonal: Array, offset: int, x: Array) -> Any:
    """The product with a matrix that has elements next to its diagonal alone, or on it."""
    config = [(0, 0, 0)] * (x.ndim - 2) + [(-offset, offset, 0), (0, 0, 0)]
    return kernels.scaled_rows(pad(x, full((), 0, x.dtype), config), diagonal)


tridiagonal_solve_p = TridiagonalSolve()


def tridiagonal_solve(
    dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *, perturb_singular: bool = False
) -> Array:
    """Solves a x = b for x, with tridiagonal matrices a.

    Row i of a holds dl[i] before the diagonal, d[i] on it and du[i] behind it; dl[0] and du[n - 1]
    stand outside and are not read.

    Shapes:     dl, d, du: T[..., n], b: T[..., n, m] -> T[..., n, m].
    Dtypes:     float32, float64, complex64, complex128.
    Derivative: linear in b.
    Lowers to:  LAPACK's gtsv on CPU, cuSPARSE's on GPU.

    Args:
        dl: what stands below the diagonal.
        d: the diagonal.
        du: what stands above it.
        b: right-hand sides.
        perturb_singular: whether pivots that are zero are replaced by the smallest number that has
            a reciprocal, as inverse iteration wants it; else the solution is NaN.

    Raises:
        TypeError: dtypes differ or are not inexact, or shapes do not fit together.
        ValueError: the sizes of batches differ.

    Example:
        >>> side, ones = jnp.array([0.0, 1.0]), jnp.array([2.0, 2.0])
        >>> lax.linalg.tridiagonal_solve(side, ones, side, jnp.array([[2.0], [5.0]]))
        Array([[1.],
               [2.]], dtype=float32)
    """
    operands = [as_operand(x) for x in (dl, d, du, b)]
    return tridiagonal_solve_p.bind(*operands, perturb_singular=perturb_singular)


class EighImplementation(enum.Enum):
    """The algorithm for eigenvalues of Hermitian matrices.

    Attributes:
        QR: by tridiagonal matrices: LAPACK's and cuSOLVER's syevd.
        JACOBI: by rotations, on GPU only.
        QDWH: by polar decompositions, which only TPUs do.

    Example:
        >>> qr = lax.linalg.EighImplementation.QR
        >>> vectors, values = lax.linalg.eigh(jnp.diag(jnp.array([5.0, 2.0])), implementation=qr)
        >>> values
        Array([2., 5.], dtype=float32)

    Example:
        >>> lax.linalg.EighImplementation("qr")
        <EighImplementation.QR: 'qr'>
    """

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class Eigh(kernels.BatchedPrimitive):
    """Unitary V and ascending real w with x V = V diag(w).

    Shapes: x: T[..., n, n] -> T[..., n, k], real T[..., k]; k is n, or the size of the subset.
    """

    name = "eigh"
    multiple_results = True

    def abstract_eval(
        self, x: ShapedArray, *, subset_by_index: Subset, **params: Any
    ) -> list[ShapedArray]:
        kernels.check_matrices("eigh", "x", x, square=True)
        size = subset_size("eigh", x.shape[-1], subset_by_index)
        real = dtypes.real_dtype_of(x.dtype)
        batch = x.shape[:-2]
        return [
            shaped_array((*x.shape[:-1], size), x.dtype, x.weak_type),
            shaped_array((*batch, size), real, x.weak_type),
        ]

    def compute(
        self, platform: str, x: Array, *, lower: bool, subset_by_index: Subset, **params: Any
    ) -> list[Any]:
        # The kernels sort eigenvalues whether that is asked for or not.
        algorithm = params["algorithm"]
        refuse_subset("eigh", x.shape[-1], subset_by_index)
        target = kernels.routine("eigh", platform, "syevd", x.dtype)
        on_gpu = platform in kernels.GPUS
        known = tuple(_NUMBERS_ON_GPU) if on_gpu else (None, EighImplementation.QR)
        if algorithm not in known:
            kernels.refuse_implementation("eigh", platform, algorithm, known)
        attributes = kernels.triangle(platform, lower=lower)
        if on_gpu:
            attributes["algorithm"] = _NUMBERS_ON_GPU[algorithm]
        else:
            attributes["mode"] = kernels.VECTORS
        results = [(x.shape, x.dtype), (x.shape[:-1], dtypes.real_dtype_of(x.dtype))]
        return kernels.checked_call(platform, target, x, results, attributes)

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], **params: Any) -> Dual:
        # With P = Vᴴ x' V: w' = diag(P), and V' = V (F ∘ P) where F_ij = 1 / (w_j - w_i) for i ≠ j
        # and zero otherwise (Giles, 2008, §3.1, with Vᴴ for V⁻¹).
        (x,), (x_dot,) = primals, tangents
        vectors, values = self.bind(x, **params)
        if vectors.shape[-1] != x.shape[-1]:
            problem = "there is no derivative of some of the eigenvalues alone."
            got = f"subset_by_index: {params['subset_by_index']}"
            fix = "compute all of them and take those that you need"
            error(MissingRule, "lax.linalg.eigh", problem, got=got, fix=fix)
        inner = kernels.product(kernels.product(kernels.adjoint(vectors), x_dot), vectors)
        gaps = kernels.reciprocals_off_diagonal(binary.sub(*kernels.pairs(values)))
        turn = binary.mul(kernels.converted(gaps, inner.dtype), inner)
        vectors_dot = kernels.product(vectors, turn)
        values_dot = kernels.real_part(kernels.diagonal(inner))
        return [vectors, values], [vectors_dot, values_dot]


_NUMBERS_ON_GPU: dict[EighImplementation | None, np.uint8] = {
    None: np.uint8(0),
    EighImplementation.QR: np.uint8(1),
    EighImplementation.JACOBI: np.uint8(2),
}


def subset_size(name: str, size: int, subset: Subset) -> int:
    """How many of `size` values a subset [start, end) of them has.

    Raises:
        ValueError: it is not a range of their indices.
    """
    if subset is None:
        return size
    start, end = subset
    if not 0 <= start <= end <= size:
        problem = "the subset is no range of indices."
        got = f"subset_by_index: {subset}"
        expected = f"(start, end) with 0 <= start <= end <= {size}"
        error(ValueError, f"lax.linalg.{name}", problem, got=got, expected=expected)
    return end - start


def refuse_subset(name: str, size: int, subset: Subset) -> None:
    """Refuses to compute less than everything, which no kernel of ours does.

    Raises:
        NotImplementedError: the subset is smaller.
    """
    if subset is not None and subset != (0, size):
        problem = "there is no kernel that computes a subset."
        got = f"subset_by_index: {subset}"
        fix = "compute everything and take a slice"
        error(NotImplementedError, f"lax.linalg.{name}", problem, got=got, fix=fix)


eigh_p = Eigh()


def eigh(
    x: ArrayLike,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: Subset = None,
    implementation: EighImplementation | None = None,
) -> tuple[Array, Array]:
    """Eigenvectors and eigenvalues of Hermitian matrices: (V, w) with x V = V diag(w).

    The columns of V are orthonormal.  All are NaN where the iteration did not converge.

    Shapes:     x: T[..., n, n] -> T[..., n, n], real T[..., n].
    Dtypes:     float32, float64, complex64, complex128; the eigenvalues are real.
    Derivative: of V only where no eigenvalue is repeated; of w always.
    Lowers to:  LAPACK's syevd on CPU, cuSOLVER's on GPU.

    Args:
        x: Hermitian matrices.
        lower: whether the lower triangle is read, where `symmetrize_input` does not make both
            equal.
        symmetrize_input: whether (x + xᴴ) / 2 is decomposed.
        sort_eigenvalues: whether eigenvalues ascend; those of the kernels always do.
        subset_by_index: the indices [start, end) of the eigenvalues wanted; the kernels compute
            all of them only.
        implementation: which algorithm; the platform's usual one where None.

    Raises:
        TypeError: the dtype is not inexact, or `x` is not a matrix.
        IncompatibleShapesError: the matrices are not square.
        NotImplementedError: the platform has not got the implementation, or a subset is asked for.

    Example:
        >>> lax.linalg.eigh(jnp.array([[3.0, 0.0], [0.0, 2.0]]))[1]
        Array([2., 3.], dtype=float32)
    """
    x = as_operand(x)
    kernels.check_matrices("eigh", "x", aval_of(x), square=True)
    if symmetrize_input:
        x = kernels.symmetrized(x)
    vectors, values = eigh_p.bind(
        x,
        lower=lower,
        sort_eigenvalues=sort_eigenvalues,
        subset_by_index=subset_by_index,
        algorithm=implementation,
    )
    return vectors, values


class Schur(kernels.BatchedPrimitive):
    """T, upper triangular, and Q, unitary, with Q T Qᴴ = x.

    Real matrices have a real T with a block of two rows and columns on the diagonal for each pair
    of complex eigenvalues.  T and Q are not unique: there is no jvp.

    Shapes: x: T[..., n, n] -> T[..., n, n], and with `compute_schur_vectors` T[..., n, n].
    """

    name = "schur"
    multiple_results = True

    def abstract_eval(
        self, x: ShapedArray, *, compute_schur_vectors: bool, **params: Any
    ) -> list[ShapedArray]:
        kernels.check_matrices("schur", "x", x, square=True)
        return [x] * (1 + compute_schur_vectors)

    def compute(
        self, platform: str, x: Array, *, compute_schur_vectors: bool, **params: Any
    ) -> list[Any]:
        if params["sort_eig_vals"]:
            problem = "eigenvalues cannot be sorted."
            got = f"sort_eig_vals: True, select_callable: {params['select_callable']}"
            fix = "sort_eig_vals=False"
            error(NotImplementedError, "lax.linalg.schur", problem, got=got, fix=fix)
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
        return kernels.nan_where_failed(info, *outs)


class Hessenberg(kernels.BatchedPrimitive):
    """H, zero below its first subdiagonal, where reflections are stored, and their scales.

    They are not unique: there is no jvp.

    Shapes: x: T[..., n, n] -> T[..., n, n], T[..., n - 1].
    """

    name = "hessenberg"
    multiple_results = True

    def abstract_eval(self, x: ShapedArray) -> list[ShapedArray]:
        kernels.check_matrices("hessenberg", "a", x, square=True)
        return [x, shaped_array(_scales_shape(x.shape), x.dtype, x.weak_type)]

    def compute(self, platform: str, x: Array) -> list[Any]:
        target = _on_host("hessenberg", platform, "gehrd", x.dtype)
        results = [(x.shape, x.dtype), (_scales_shape(x.shape), x.dtype)]
        attributes = {"low": np.int32(1), "high": np.int32(x.shape[-1])}
        return kernels.checked_call(platform, target, x, results, attributes)


def _scales_shape(shape: Sequence[int]) -> tuple[int, ...]:
    return (*shape[:-2], max(shape[-1] - 1, 0))


def _on_host(name: str, platform: str, routine: str, dtype: np.dtype[Any]) -> str:
    """A routine that only LAPACK has."""
    if platform != "cpu":
        kernels.refuse_platform(name, platform)
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

    Args:
        x: square matrices.
        compute_schur_vectors: whether Q is wanted; else the list has T alone.
        sort_eig_vals: whether some eigenvalues come first; not implemented.
        select_callable: which of them.

    Raises:
        TypeError: the dtype is not inexact, or `x` is not a matrix.
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

    Args:
        a: square matrices.

    Raises:
        TypeError: the dtype is not inexact, or `a` is not a matrix.
        IncompatibleShapesError: the matrices are not square.

    Example:
        >>> lax.linalg.hessenberg(jnp.array([[1.0, 2.0], [3.0, 4.0]]))[0]
        Array([[1., 2.],
               [3., 4.]], dtype=float32)
    """
    form, scales = hessenberg_p.bind(as_operand(a))
    return form, scales


class EigImplementation(enum.Enum):
    """The library that computes the eigenvalues of square matrices.

    Attributes:
        CUSOLVER: cuSOLVER, since 11.7.1, for right eigenvectors.
        MAGMA: the library MAGMA, where a GPU's host has it.
        LAPACK: LAPACK on the host, for GPUs as well.

    Example:
        >>> lax.linalg.EigImplementation("lapack")
        <EigImplementation.LAPACK: 'lapack'>
    """

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


# How the kernel that computes on the host is told whether to use MAGMA.
_MAGMA = {None: "auto", EigImplementation.MAGMA: "on", EigImplementation.LAPACK: "off"}


class _EigParams(NamedTuple):
    """What is asked for of a decomposition."""

    compute_left_eigenvectors: bool
    compute_right_eigenvectors: bool
    enable_eigvec_derivs: bool
    implementation: EigImplementation | None


class Eig(kernels.BatchedPrimitive):
    """Complex w, and where asked for U and V with Uᴴ x = diag(w) Uᴴ and x V = V diag(w).

    Columns have length 1, and a largest element that is real.

    Shapes: x: T[..., n, n] -> complex T[..., n], complex T[..., n, n] for U and for V.
    """

    name = "eig"
    multiple_results = True

    def abstract_eval(self, x: ShapedArray, **params: Any) -> list[ShapedArray]:
        kernels.check_matrices("eig", "x", x, square=True)
        dtype = dtypes.to_complex_dtype(x.dtype)
        count = sum(_EigParams(**params)[:2])
        values = shaped_array(x.shape[:-1], dtype, x.weak_type)
        return [values, *[shaped_array(x.shape, dtype, x.weak_type)] * count]

    def compute(self, platform: str, x: Array, **params: Any) -> list[Any]:
        attributes: dict[str, Any]
        *wanted, _, implementation = _EigParams(**params)
        target = kernels.routine("eig", platform, "geev", x.dtype)
        if platform == "cpu":
            if implementation not in (None, EigImplementation.LAPACK):
                _refuse(platform, implementation)
            modes = [kernels.VECTORS if each else kernels.NO_VECTORS for each in wanted]
            attributes = dict(zip(("compute_left", "compute_right"), modes, strict=True))
        else:
            if implementation is EigImplementation.CUSOLVER:
                _refuse(platform, implementation)
            kind = "comp" if x.dtype.kind == "c" else "real"
            target = f"{kernels.GPUS[platform]}hybrid_eig_{kind}"
            magma = _MAGMA[implementation]
            attributes = {"left": wanted[0], "right": wanted[1], "magma": magma}
        values, left, right = _called(platform, target, x, attributes)
        vectors = zip((left, right), wanted, strict=True)
        return [values, *(each for each, is_wanted in vectors if is_wanted)]

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], **params: Any) -> Dual:
        (x,), (x_dot,) = primals, tangents
        gives_left, gives_right, are_derivable, _ = _EigParams(**params)
        if (gives_left or gives_right) and not are_derivable:
            problem = "the derivatives of eigenvectors are asked for, which need not exist."
            expected = "distinct eigenvalues, and in each eigenvector one largest element"
            fix = (
                "enable_eigvec_derivs=True if you know that it is so; eigenvalues alone "
                "always have derivatives"
            )
            error(MissingRule, "lax.linalg.eig", problem, expected=expected, fix=fix)
        # Derivatives of eigenvalues depend on eigenvectors, yet not on lengths and phases, so they
        # have derivatives of their own wherever no eigenvalue is repeated.
        more = {"compute_right_eigenvectors": True, "enable_eigvec_derivs": True}
        outs = self.bind(x, **params | more)
        values, *left, right = outs
        outs = outs if gives_right else outs[:-1]
        x_dot = kernels.converted(x_dot, right.dtype)
        values_dot, right_dot = _tangents(values, right, x_dot)
        outs_dot = [values_dot]
        if left:
            # Left eigenvectors are the right ones of the adjoint matrix.
            of_adjoint = kernels.conjugate(values), left[0], kernels.adjoint(x_dot)
            outs_dot.append(_with_phase_kept(left[0], _tangents(*of_adjoint)[1]))
        if gives_right:
            outs_dot.append(_with_phase_kept(right, right_dot))
        return outs, outs_dot


def _called(platform: str, target: str, x: Array, attributes: dict[str, Any]) -> list[Any]:
    """Values, left and right vectors; NaN where the iteration did not converge."""
    batch, dtype = x.shape[:-2], dtypes.complex_dtype_of(x.dtype)
    # Kernels for real matrices give the two parts of eigenvalues apart.
    parts = [(x.shape[:-1], x.dtype)] * (1 if x.dtype == dtype else 2)
    results = [*parts, (x.shape, dtype), (x.shape, dtype), (batch, "int32")]
    *values, left, right, info = kernels.call(
        platform, target, [x], results, attributes, batch=len(batch)
    )
    whole = values[0] if len(values) == 1 else unary.complex(*values)
    return kernels.nan_where_failed(info, whole, left, right)


def _refuse(platform: str, implementation: EigImplementation | None) -> NoReturn:
    known = ("LAPACK",) if platform == "cpu" else ("MAGMA", "LAPACK")
    kernels.refuse_implementation("eig", platform, implementation, known, ValueError)


def _tangents(values: Array, vectors: Array, x_dot: Array) -> tuple[Any, Any]:
    """With P = V⁻¹ x' V: w' = diag(P), and V' = V (F ∘ P), up to lengths and phases.

    F_ij = 1 / (w_j - w_i) off the diagonal (Giles, 2008, An extended collection of matrix
    derivative results, §3.1).
    """
    inner = solve_square(vectors, kernels.product(x_dot, vectors))
    gaps = kernels.reciprocals_off_diagonal(binary.sub(*kernels.pairs(values)))
    turn = binary.mul(gaps, inner)
    return kernels.diagonal(inner), kernels.product(vectors, turn)


def _with_phase_kept(vectors: Array, vectors_dot: Array) -> Any:
    """Adds to each column's tangent that multiple of the column which keeps its norm and phase.

    The length stays 1, so the real part of vᴴ v' is zero; the largest element stays real.
    """
    rows = vectors.ndim - 2
    sizes = unary.abs(vectors)
    largest = reduction.argmax(sizes, rows, "int32")
    places = creation.broadcasted_iota("int32", vectors.shape, rows)
    columns = (*range(rows), rows + 1)
    is_largest = binary.eq(places, broadcast_in_dim(largest, vectors.shape, columns))

    def at_largest(x: Array) -> Any:
        alone = select(is_largest, x, full(x.shape, 0, x.dtype))
        return reduction.reduce_sum(alone, (rows,))

    along = reduction.reduce_sum(binary.mul(kernels.conjugate(vectors), vectors_dot), (rows,))
    turned = binary.div(unary.imag(at_largest(vectors_dot)), unary.real(at_largest(vectors)))
    correction = unary.complex(unary.real(along), turned)
    return binary.sub(vectors_dot, kernels.scaled_columns(vectors, correction))


eig_p = Eig()


def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Array]:
    """Eigenvalues and eigenvectors of square matrices: [w, U, V], or fewer.

    They are complex: x V = V diag(w) and Uᴴ x = diag(w) Uᴴ.  The columns of U and V have length 1
    and a largest element that is real.  All are NaN where the iteration did not converge.

    Shapes:     x: T[..., n, n] -> complex T[..., n], complex T[..., n, n] for U and for V.
    Dtypes:     float32, float64, complex64, complex128; the results are complex.
    Derivative: of w where no eigenvalue is repeated; of U and V, if enabled, where besides each
                column has a single largest element.
    Lowers to:  LAPACK's geev, also for GPUs, where MAGMA's may take its place.

    Args:
        x: square matrices.
        compute_left_eigenvectors: whether U is wanted.
        compute_right_eigenvectors: whether V is wanted.
        enable_eigvec_derivs: whether U and V may be differentiated; you promise what is said under
            Derivative, which cannot be checked.
        implementation: who computes; the platform's usual one where None.
        use_magma: deprecated; True for `EigImplementation.MAGMA`, False for `LAPACK`.

    Raises:
        TypeError: the dtype is not inexact, or `x` is not a matrix.
        ValueError: the matrices are not square, or the platform has not got the implementation.

    Example:
        >>> lax.linalg.eig(jnp.array([[0.0, 1.0], [-1.0, 0.0]]))[0]
        Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    if use_magma is not None:
        implementation = EigImplementation.MAGMA if use_magma else EigImplementation.LAPACK
        fix = f"implementation={implementation}"
        warn(DeprecationWarning, "lax.linalg.eig", "use_magma is deprecated.", fix=fix)
    outs: list[Any] = eig_p.bind(
        as_operand(x),
        compute_left_eigenvectors=compute_left_eigenvectors,
        compute_right_eigenvectors=compute_right_eigenvectors,
        enable_eigvec_derivs=enable_eigvec_derivs,
        implementation=implementation,
    )
    return outs
