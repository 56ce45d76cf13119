"""Spectra beyond the laws: which kernels are called, where they fail, and how they divide.

The calls in `golden/linalg_spectra_kernels.txt` are those that JAX 0.10.2 prints for the same
programs, but for the sizes of singular vectors that nobody asks LAPACK for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import minijax
from minijax import lax
from minijax.core.config import enable_x64
from minijax.core.errors import MissingRule, ShardingTypeError
from minijax.sharding import AxisType, NamedSharding
from minijax.sharding import PartitionSpec as P
from minijax.testing import assert_collectives
from tests.lax.test_linalg import kernel_calls

Golden = Callable[[str, str], None]
Program = tuple[Callable[..., Any], tuple[Any, ...], tuple[str, ...]]

_linalg = lax.linalg
_BOTH = ("cpu", "cuda")


def _type(*shape: int, dtype: str = "float32") -> Any:
    return minijax.ShapeDtypeStruct(shape, np.dtype(dtype))


def _svd(**options: Any) -> Callable[[Any], Any]:
    return lambda x: _linalg.svd(x, **options)


def _eigh(**options: Any) -> Callable[[Any], Any]:
    return lambda x: _linalg.eigh(x, symmetrize_input=False, **options)


_Svd, _Eigh, _Eig = _linalg.SvdAlgorithm, _linalg.EighImplementation, _linalg.EigImplementation
_SQUARE, _BATCH = _type(3, 3), _type(2, 3, 3)
_COMPLEX = _type(3, 3, dtype="complex64")
_VECTORS = (_type(2, 4), _type(2, 4), _type(2, 4), _type(2, 4, 3))

_PROGRAMS: dict[str, Program] = {
    "eig": (_linalg.eig, (_BATCH,), _BOTH),
    "eig of complex": (
        lambda x: _linalg.eig(x, compute_left_eigenvectors=False, implementation=_Eig.LAPACK),
        (_COMPLEX,),
        _BOTH,
    ),
    "eigh": (_eigh(), (_BATCH,), _BOTH),
    "eigh of complex": (_eigh(lower=False, implementation=_Eigh.QR), (_COMPLEX,), _BOTH),
    "eigh by Jacobi": (_eigh(implementation=_Eigh.JACOBI), (_SQUARE,), ("cuda",)),
    "hessenberg": (_linalg.hessenberg, (_BATCH,), ("cpu",)),
    "schur": (_linalg.schur, (_BATCH,), ("cpu",)),
    "schur of complex": (_linalg.schur, (_COMPLEX,), ("cpu",)),
    "svd": (_svd(), (_type(2, 3, 4),), _BOTH),
    "svd of complex": (_svd(full_matrices=False), (_COMPLEX,), _BOTH),
    "svd without vectors": (_svd(full_matrices=False, compute_uv=False), (_SQUARE,), _BOTH),
    "svd by QR": (_svd(algorithm=_Svd.QR), (_type(4, 3),), _BOTH),
    "svd by QR, wide": (
        _svd(full_matrices=False, algorithm=_Svd.QR),
        (_type(2, 3, 4),),
        _BOTH,
    ),
    "svd by QR, without vectors": (
        _svd(full_matrices=False, compute_uv=False, algorithm=_Svd.QR),
        (_type(2, 3, 3),),
        _BOTH,
    ),
    "svd by Jacobi": (_svd(full_matrices=False), (_type(34, 33),), ("cuda",)),
    "svd by polar": (_svd(full_matrices=False, algorithm=_Svd.POLAR), (_type(3, 4),), ("cuda",)),
    "svd of large matrices": (_svd(full_matrices=False), (_type(1025, 2),), ("cuda",)),
    "svd by halves": (_svd(algorithm=_Svd.DIVIDE_AND_CONQUER), (_type(3, 4),), ("cpu", "rocm")),
    "tridiagonal": (_linalg.tridiagonal, (_BATCH,), _BOTH),
    "tridiagonal of complex": (
        lambda x: _linalg.tridiagonal(x, lower=False),
        (_COMPLEX,),
        _BOTH,
    ),
    "tridiagonal_solve": (_linalg.tridiagonal_solve, _VECTORS, _BOTH),
    "tridiagonal_solve with perturbations": (
        lambda *args: _linalg.tridiagonal_solve(*args, perturb_singular=True),
        _VECTORS,
        _BOTH,
    ),
}


@pytest.mark.feature("NP-01", "FF-10")
def test_kernels_are_called_as_jax_calls_them(golden: Golden) -> None:
    lines = []
    for name, (function, types, platforms) in _PROGRAMS.items():
        traced = minijax.jit(function).trace(*types)
        for platform in platforms:
            text = traced.lower(lowering_platforms=(platform,)).as_text()
            lines += [f"{name} on {platform}", *(f"  {call}" for call in kernel_calls(text))]
    golden("linalg_spectra_kernels.txt", "\n".join(lines) + "\n")


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize(
    ("platform", "function", "error"),
    [
        ("cuda", _svd(algorithm=_Svd.DIVIDE_AND_CONQUER), NotImplementedError),
        ("cuda", _eigh(implementation=_Eigh.QDWH), NotImplementedError),
        ("cuda", lambda x: _linalg.eig(x, implementation=_Eig.CUSOLVER), ValueError),
        ("cuda", _linalg.schur, NotImplementedError),
        ("tpu", _linalg.svd, NotImplementedError),
    ],
    ids=["svd", "eigh", "eig", "schur", "tpu"],
)
def test_what_a_platform_has_not_got_is_refused(
    platform: str, function: Any, error: type[Exception]
) -> None:
    traced = minijax.jit(function).trace(_SQUARE)
    with pytest.raises(error, match=rf"lax.linalg.*{platform}"):
        traced.lower(lowering_platforms=(platform,))


def _all(x: Any) -> Any:
    rows = x[..., 0, :]
    return (
        _linalg.eigh(x),
        _linalg.svd(x),
        _linalg.eig(x),
        _linalg.schur(x),
        _linalg.hessenberg(x),
        _linalg.tridiagonal(x),
        _linalg.tridiagonal_solve(rows, rows, rows, x),
    )


def test_failed_entries_alone_are_nan() -> None:
    x = np.stack([np.eye(2), np.full((2, 2), np.nan)]).astype(np.float32)

    def failing(x: Any) -> Any:
        return _linalg.eigh(x), _linalg.svd(x), _linalg.eig(x), _linalg.schur(x)

    for leaf in minijax.tree.leaves(minijax.jit(failing)(x)):
        assert np.isfinite(leaf[0]).all()
        assert np.isnan(leaf[1]).any()


@pytest.mark.parametrize("shape", [(0, 0), (0, 3, 3), (2, 0, 0)], ids=str)
def test_matrices_without_elements_have_spectra(shape: tuple[int, ...]) -> None:
    def spectra(x: Any) -> Any:
        return _linalg.eigh(x), _linalg.eig(x), _linalg.schur(x), _linalg.hessenberg(x)

    eigh, eig, schur, hessenberg = minijax.jit(spectra)(np.zeros(shape, np.float32))
    values = shape[:-1]
    assert [x.shape for x in (*eigh, *eig)] == [shape, values, values, shape, shape]
    assert [x.shape for x in schur] == [shape, shape]
    assert hessenberg[1].shape == (*shape[:-2], max(shape[-1] - 1, 0))


def test_singular_vectors_of_nothing_are_those_of_the_identity() -> None:
    u, values, vh = _linalg.svd(np.zeros((2, 0, 3), np.float32))
    assert (u.shape, values.shape) == ((2, 0, 0), (2, 0))
    assert np.array_equal(vh, np.broadcast_to(np.eye(3), (2, 3, 3)))
    assert _linalg.svd(np.zeros((3, 0)), full_matrices=False)[0].shape == (3, 0)


@pytest.mark.feature("NP-01")
def test_derivatives_that_need_not_exist_are_refused() -> None:
    square, tall = np.eye(3, dtype=np.float32), np.ones((4, 3), np.float32)
    refused: list[tuple[Any, Any, str]] = [
        (_linalg.svd, tall, "svd: there is no derivative of the singular vectors that complete"),
        (_linalg.eig, square, "eig: the derivatives of eigenvectors"),
        (_linalg.schur, square, "schur: the primitive has no rule"),
        (_linalg.hessenberg, square, "hessenberg: the primitive has no rule"),
        (_linalg.tridiagonal, square, "tridiagonal: the primitive has no rule"),
    ]
    for function, x, match in refused:
        with pytest.raises(MissingRule, match=match):
            minijax.jvp(function, (x,), (x,))


def test_use_magma_is_deprecated() -> None:
    with pytest.warns(DeprecationWarning, match="implementation=EigImplementation.LAPACK"):
        values, *_ = _linalg.eig(np.eye(2, dtype=np.float32), use_magma=False)
    assert values.tolist() == [1, 1]


def test_solve_of_many_right_sides_with_one_matrix_is_one_solve() -> None:
    mapped = minijax.vmap(_linalg.tridiagonal_solve, (None, None, None, 0))
    jaxpr = minijax.make_jaxpr(mapped)(*[_type(3)] * 3, _type(5, 3, 4))
    (eqn,) = (e for e in jaxpr.jaxpr.eqns if e.primitive is _linalg.tridiagonal_solve_p)
    assert eqn.invars[-1].aval.shape == (3, 20)


def test_zero_pivots_are_perturbed_where_asked_for() -> None:
    zeros, ones = np.zeros(2, np.float32), np.ones((2, 1), np.float32)
    assert np.isnan(_linalg.tridiagonal_solve(zeros, zeros, zeros, ones)).all()
    perturbed = _linalg.tridiagonal_solve(zeros, zeros, zeros, ones, perturb_singular=True)
    assert np.isfinite(perturbed).all()


@pytest.mark.feature("NP-01")
def test_qdwh_finds_the_polar_decomposition() -> None:
    rng = np.random.default_rng(0)
    complex_ = rng.normal(size=(5, 3)) + 1j * rng.normal(size=(5, 3))
    graded = np.diag([1e-3, 1.0, 1e3, 1e-12])
    with enable_x64(True):
        for x in (complex_, graded, rng.normal(size=(6, 6))):
            u, h, count, converged = minijax.jit(_linalg.qdwh)(x)
            unitary, hermitian = scipy.linalg.polar(x)
            np.testing.assert_allclose(u, unitary, atol=1e-13)
            np.testing.assert_allclose(h, hermitian, atol=1e-12, rtol=1e-12)
            assert converged
            assert count.dtype == np.int32
            assert 1 < int(count) <= 6 + (x is graded)


@pytest.mark.feature("NP-01")
def test_qdwh_leaves_padding_out_and_stops_when_told() -> None:
    x = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    u, h, _, _ = _linalg.qdwh(x, dynamic_shape=(4, 2))
    unitary, hermitian = scipy.linalg.polar(x[:4, :2])
    np.testing.assert_allclose(u[:4, :2], unitary, atol=1e-6)
    np.testing.assert_allclose(h[:2, :2], hermitian, atol=1e-6)
    assert not np.asarray(u)[4:].any()
    assert not np.asarray(u)[:, 2:].any()
    *_, count, converged = _linalg.qdwh(x, max_iterations=1)
    assert (int(count), bool(converged)) == (1, False)


@pytest.mark.parametrize(
    ("x", "options", "match"),
    [
        (np.ones((3, 4), np.float32), {}, "more columns than rows"),
        (np.ones((4, 3), np.float32), {"is_hermitian": True}, "cannot be Hermitian"),
        (np.ones((3, 3), np.int32), {}, "not inexact"),
        (np.ones((2, 3, 3), np.float32), {}, "not a matrix"),
    ],
    ids=["wide", "Hermitian", "integers", "batch"],
)
def test_qdwh_refuses_what_is_no_tall_matrix(x: Any, options: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        _linalg.qdwh(x, **options)


def _matrices(*shape: int) -> Any:
    x = np.random.default_rng(0).uniform(-1, 1, shape)
    return (x + x.swapaxes(-1, -2) + np.diag(np.arange(3, 3 * shape[-1] + 1, 3))).astype(np.float32)


def _check_equal(actual: Any, expected: Any) -> None:
    for x, y in zip(minijax.tree.leaves(actual), minijax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.feature("NP-01", "FF-07", "FF-08")
@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
def test_split_batches_stay_where_they_are(kind: str) -> None:
    x = _matrices(8, 4, 4)
    expected = minijax.jit(_all)(x)
    with minijax.cpu_devices(4):
        mesh = minijax.make_mesh((4,), ("x",), axis_types=(AxisType[kind],))
        with minijax.set_mesh(mesh):
            split = minijax.device_put(x, NamedSharding(mesh, P("x")))
            spectra = minijax.jit(_all)
            assert_collectives(spectra, exactly=True)(split)
            results = spectra(split)
            assert {out.sharding.spec[0] for out in minijax.tree.leaves(results)} == {"x"}
            if kind == "Explicit":
                tangents = minijax.eval_shape(
                    lambda x: minijax.jvp(lambda x: (_linalg.eigh(x), _linalg.svd(x)), (x,), (x,)),
                    split,
                )
                assert {x.sharding.spec[0] for x in minijax.tree.leaves(tangents)} == {"x"}
                with pytest.raises(ShardingTypeError, match="split over 'x'"):
                    minijax.eval_shape(_linalg.svd, minijax.reshard(split, P(None, "x")))
    _check_equal(results, expected)


@pytest.mark.parametrize("name", ["cholesky", "eigh"])
def test_integers_are_refused_by_their_dtype(name: str) -> None:
    with pytest.raises(TypeError, match=rf"^lax\.linalg\.{name}: does not accept dtype int32"):
        getattr(_linalg, name)(np.eye(2, dtype=np.int32))
