"""Linear algebra: values are NumPy's, types and errors JAX's, slopes those of differences."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.core.config import enable_x64
from minijax.sharding import AxisType, NamedSharding
from minijax.sharding import PartitionSpec as P
from tests.numpy import facts

FACTS = facts.load("linalg")
RNG = np.random.default_rng(6)
BATCH = RNG.standard_normal((2, 4, 4))
COMPLEX = BATCH + 1j * RNG.standard_normal((2, 4, 4))
TALL = RNG.standard_normal((5, 3))
WIDE = np.ascontiguousarray(TALL.T)
VECTOR = RNG.standard_normal(4)
DEFINITE = BATCH @ BATCH.swapaxes(1, 2) + np.eye(4)
HERMITIAN = COMPLEX + COMPLEX.conj().swapaxes(1, 2)


def check_close(actual: Any, expected: Any, tolerance: float = 1e-9) -> None:
    found, wanted = minijax.tree.leaves(actual), minijax.tree.leaves(expected)
    assert [np.shape(x) for x in found] == [np.shape(x) for x in wanted]
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


def compute_in_both(compute: Callable[[Any], Any]) -> tuple[Any, Any]:
    """What a function of the library returns: ours as one compiled program in x64, NumPy's."""
    with enable_x64(True):
        return minijax.jit(lambda: compute(jnp))(), compute(np)


@pytest.mark.slow
@pytest.mark.feature("NP-01")
def test_types_errors_and_signatures_are_those_of_jax() -> None:
    names = facts.namespace(minijax, FACTS)
    wrong = {}
    for expression, expected in FACTS.answers.items():
        found, alternatives = facts.answer(expression, names)
        if expected not in (found, *alternatives):
            wrong[expression] = (found, expected)
    assert wrong == {}


@pytest.mark.slow
@pytest.mark.feature("NP-01")
def test_decompositions_are_those_of_numpy() -> None:
    def compute(np_: Any) -> list[Any]:
        la = np_.linalg
        return [
            la.cholesky(DEFINITE),
            [tuple(la.qr(x, mode)) for x in (TALL, WIDE) for mode in ("reduced", "complete")],
            [la.qr(COMPLEX[0]).R, la.qr(TALL, "r"), tuple(la.qr(WIDE, "raw"))],
            [la.svd(x).S for x in (TALL, WIDE, COMPLEX)],
            [la.svd(x, compute_uv=False) for x in (TALL, COMPLEX)],
            [abs(la.svd(x, full_matrices=False).U) for x in (TALL, WIDE)],
            [abs(x) for x in la.svd(HERMITIAN, hermitian=True)],
            [la.eigh(DEFINITE).eigenvalues, abs(la.eigh(HERMITIAN).eigenvectors)],
            [la.eigvalsh(HERMITIAN), la.eigvalsh(DEFINITE, "U"), la.svdvals(WIDE)],
            [np_.sort(la.eigvals(COMPLEX[0])), np_.sort(la.eig(BATCH[1]).eigenvalues)],
        ]

    check_close(*compute_in_both(compute))


@pytest.mark.feature("NP-01")
def test_upper_factors_are_adjoint_to_lower_ones() -> None:
    x = DEFINITE[0].astype(np.float32)
    upper = jnp.linalg.cholesky(x, upper=True)
    np.testing.assert_allclose(upper, np.linalg.cholesky(x).T, rtol=1e-4, atol=1e-5)
    one = jnp.linalg.cholesky(np.triu(x), upper=True, symmetrize_input=False)
    np.testing.assert_allclose(one, upper, rtol=1e-4, atol=1e-5)


@pytest.mark.feature("NP-01")
def test_eigenvectors_of_hermitian_matrices_are_singular_vectors() -> None:
    x = HERMITIAN.astype(np.complex64)
    u, s, vh = jnp.linalg.svd(x, hermitian=True)
    np.testing.assert_allclose(np.asarray(u) * s[:, None, :] @ np.asarray(vh), x, atol=1e-4)
    with pytest.raises(NotImplementedError, match=r"^numpy\.linalg\.svd: .* subset"):
        jnp.linalg.svd(x, hermitian=True, subset_by_index=(0, 2))


@pytest.mark.slow
@pytest.mark.feature("NP-01")
def test_solutions_are_those_of_numpy() -> None:
    def compute(np_: Any) -> list[Any]:
        la = np_.linalg
        cube = np.arange(36.0).reshape(2, 3, 6) + 7 * np.eye(6).reshape(2, 3, 6)
        many = np.stack([BATCH[0], BATCH[1], 2 * BATCH[0]])
        return [
            [la.solve(BATCH, VECTOR), la.solve(BATCH[0], VECTOR), la.solve(COMPLEX, BATCH)],
            [la.solve(BATCH, BATCH[0]), la.solve(BATCH[0], many), la.solve(BATCH[:, None], many)],
            [la.inv(BATCH), la.inv(COMPLEX), la.pinv(TALL), la.pinv(COMPLEX), la.pinv(WIDE)],
            [la.pinv(BATCH, rtol=0.3), la.pinv(HERMITIAN, hermitian=True)],
            [la.tensorinv(cube, 2), la.tensorsolve(cube, TALL[:2])],
            [la.lstsq(TALL, TALL[:, :2] + 1), la.lstsq(WIDE, TALL[0])[::2]],
            [la.lstsq(TALL, TALL[:, 0], rcond=0.7)[2:], la.lstsq(np.ones((4, 2)), VECTOR)[0]],
            [la.matrix_power(BATCH, n) for n in (0, 1, 2, 5, 8, -1, -3)],
        ]

    check_close(*compute_in_both(compute))


@pytest.mark.feature("NP-01")
def test_determinants_are_those_of_numpy() -> None:
    def compute(np_: Any) -> list[Any]:
        la = np_.linalg
        squares = [x[:, :n, :n] for x in (BATCH, COMPLEX) for n in range(5)]
        singular = np.ones((5, 5))
        return [[la.det(x), tuple(la.slogdet(x))] for x in (*squares, singular)]

    actual, expected = compute_in_both(compute)
    check_close(actual, expected)
    with enable_x64(True):
        check_close(tuple(jnp.linalg.slogdet(BATCH, method="qr")), tuple(np.linalg.slogdet(BATCH)))


_ORDERS = (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)


@pytest.mark.slow
@pytest.mark.feature("NP-01")
def test_norms_conditions_and_ranks_are_those_of_numpy() -> None:
    def compute(np_: Any) -> list[Any]:
        la = np_.linalg
        orders = [order for order in _ORDERS if not isinstance(order, str)]
        return [
            [la.norm(COMPLEX[0], order) for order in _ORDERS],
            [la.norm(BATCH, order, axis=(2, 0), keepdims=True) for order in _ORDERS],
            [la.matrix_norm(BATCH, ord=order) for order in _ORDERS[1:]],
            [la.norm(COMPLEX, p, axis=1) for p in (*orders, 0, 3, 0.5)],
            [la.vector_norm(BATCH, ord=p, axis=(0, 2), keepdims=True) for p in (0, 1, 2, 3.5)],
            [la.cond(BATCH, order) for order in _ORDERS],
            [la.matrix_rank(np.ones((2, 3, 4))), la.matrix_rank(VECTOR), la.matrix_rank(0 * TALL)],
            [la.matrix_rank(HERMITIAN, hermitian=True), la.norm(BATCH), la.norm(VECTOR, 4)],
        ]

    check_close(*compute_in_both(compute))


@pytest.mark.feature("NP-01")
def test_condition_of_singular_matrices_is_infinite() -> None:
    singular = np.stack([np.zeros((3, 3)), np.full((3, 3), np.nan)]).astype(np.float32)
    assert np.isinf(jnp.linalg.cond(singular, 1)[0])
    assert np.isnan(jnp.linalg.cond(singular, 1)[1])


@pytest.mark.feature("NP-01")
def test_products_are_those_of_numpy() -> None:
    def compute(np_: Any) -> list[Any]:
        la = np_.linalg
        return [
            la.multi_dot([TALL, WIDE, TALL, WIDE]),
            la.multi_dot([TALL[0], WIDE, TALL, WIDE[:, 0]]),
            [la.cross(TALL, TALL[::-1]), la.diagonal(BATCH, offset=-1), la.trace(BATCH, offset=1)],
            [la.outer(VECTOR, VECTOR), la.matrix_transpose(BATCH), la.vecdot(COMPLEX, BATCH)],
            [la.matmul(BATCH, VECTOR), la.tensordot(BATCH, BATCH, axes=((0, 1), (0, 2)))],
        ]

    check_close(*compute_in_both(compute))


@pytest.mark.feature("NP-01")
def test_chains_are_multiplied_in_the_cheapest_order() -> None:
    sizes = (9, 2, 8, 3, 7, 4)
    chain = [minijax.ShapeDtypeStruct(s, np.float32) for s in itertools.pairwise(sizes)]
    jaxpr = minijax.make_jaxpr(lambda *xs: jnp.linalg.multi_dot(xs))(*chain).jaxpr
    shapes = [[v.aval.shape for v in eqn.invars] for eqn in jaxpr.eqns]

    def least(i: int, j: int) -> int:
        splits = (
            least(i, k) + least(k + 1, j) + sizes[i] * sizes[k + 1] * sizes[j + 1]
            for k in range(i, j)
        )
        return min(splits, default=0)

    assert sum(m * k * n for (m, k), (_, n) in shapes) == least(0, len(chain) - 1)


@pytest.mark.feature("NP-01")
def test_polynomials_and_their_zeros_are_those_of_numpy() -> None:
    x, w = np.arange(6.0), np.array([1.0, 2, 1, 3, 1, 2])
    y = np.array([1.0, 3, 2, 5, 4, 4])

    def compute(np_: Any) -> list[Any]:
        both = np.stack([y, y**2], 1)
        return [
            [np_.polyfit(x, y, 3), np_.polyfit(x, both, 2, w=w)],
            np_.polyfit(x, y, 2, full=True)[:4],
            [np_.polyfit(x, y, 2, cov=True), np_.polyfit(x, y, 2, w=w, cov="unscaled")],
            np_.polyfit(x, both, 2, cov=True),
            [np_.poly(y[:3]), np_.poly(DEFINITE[0])],
        ]

    check_close(*compute_in_both(compute), 1e-8)
    with enable_x64(True):
        for p in ([0.0, 0, 1, -6, 11, -6], [1.0, -3, 2, 0, 0], [1, 0, 1], [2, 4j], [0.0, 0]):
            found, expected = np.asarray(jnp.roots(np.asarray(p))), np.roots(p)
            check_close(np.sort_complex(found), np.sort_complex(expected + 0j), 1e-6)
        found = np.asarray(jnp.roots(jnp.array([0.0, 0, 1, -3, 0]), strip_zeros=False))
    assert np.isnan(found[2:]).all()
    check_close(np.sort(found[:2].real), np.array([0.0, 3.0]))


_DIFFERENTIABLE: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "det": (jnp.linalg.det, (BATCH,)),
    "det of complex": (jnp.linalg.det, (COMPLEX,)),
    "slogdet": (lambda x: tuple(jnp.linalg.slogdet(x)), (COMPLEX,)),
    "slogdet by qr": (lambda x: jnp.linalg.slogdet(x, method="qr").logabsdet, (BATCH,)),
    "solve": (jnp.linalg.solve, (COMPLEX, BATCH[:, :, :2])),
    "solve one": (jnp.linalg.solve, (BATCH[0], COMPLEX)),
    "inv": (jnp.linalg.inv, (COMPLEX,)),
    "pinv": (jnp.linalg.pinv, (TALL,)),
    "pinv of Hermitian": (lambda x: jnp.linalg.pinv(x, hermitian=True), (HERMITIAN,)),
    "pinv of wide": (jnp.linalg.pinv, (COMPLEX[:, :2],)),
    "lstsq": (lambda a, b: jnp.linalg.lstsq(a, b)[:2], (TALL, TALL[:, 0] + 1)),
    "norm": (lambda x: [jnp.linalg.norm(x, p) for p in ("fro", "nuc", 1, 2)], (BATCH[0],)),
    "vector_norm": (lambda x: [jnp.linalg.norm(x, p) for p in (None, 1, 3)], (COMPLEX[0, 0],)),
    "matrix_power": (lambda x: jnp.linalg.matrix_power(x, -3), (BATCH,)),
    "eigvalsh": (jnp.linalg.eigvalsh, (HERMITIAN,)),
    "polyfit": (lambda y: jnp.polyfit(np.arange(5.0), y, 2), (TALL,)),
}
_STEP = 1e-6


@pytest.mark.slow
@pytest.mark.feature("NP-01", "AD-01")
@pytest.mark.parametrize("name", _DIFFERENTIABLE)
def test_slopes_are_those_of_differences(name: str) -> None:
    function, primals = _DIFFERENTIABLE[name]
    rng = np.random.default_rng(1)

    def noise(x: Any) -> Any:
        real = rng.standard_normal(x.shape)
        return real + 1j * rng.standard_normal(x.shape) if x.dtype.kind == "c" else real

    tangents = tuple(map(noise, primals))
    cotangents = minijax.tree.map(noise, minijax.eval_shape(function, *primals))

    def pairing(xs: Any, ys: Any) -> Any:
        pairs = zip(minijax.tree.leaves(xs), minijax.tree.leaves(ys), strict=True)
        return sum(jnp.real(jnp.sum(x * y)) for x, y in pairs)

    def gradient(*primals: Any) -> Any:
        return minijax.vjp(function, *primals)[1](cotangents)

    def compute(step: Any) -> Any:
        ahead = [x + step * v for x, v in zip(primals, tangents, strict=True)]
        behind = [x - step * v for x, v in zip(primals, tangents, strict=True)]
        slope = minijax.jvp(function, primals, tangents)[1]
        second = minijax.jvp(gradient, primals, tangents)[1]
        differences = [
            minijax.tree.map(lambda a, b: (a - b) / (2 * step), f(*ahead), f(*behind))
            for f in (function, gradient)
        ]
        return [slope, second, pairing(cotangents, slope)], [
            *differences,
            pairing(gradient(*primals), tangents),
        ]

    with enable_x64(True):
        cotangents = minijax.tree.map(lambda x: x.astype(x.dtype.str.replace("4", "8")), cotangents)
        check_close(*minijax.jit(compute)(_STEP), 1e-4)


@pytest.mark.feature("NP-01")
def test_cofactors_of_singular_matrices_are_exact() -> None:
    dependent = [BATCH[0].copy() for _ in range(4)]
    for column, x in enumerate(dependent):
        x[:, column] = x[:, column - 1] - 2 * x[:, column - 2]
    diagonal = [np.diag(np.arange(1.0, 5) * (np.arange(4) != k)) for k in range(4)]
    matrices = np.stack([*dependent, *diagonal, np.zeros((4, 4))])
    with enable_x64(True):
        slopes = minijax.grad(lambda x: jnp.sum(jnp.linalg.det(x)))(matrices)
    others = [[i for i in range(4) if i != k] for k in range(4)]
    minors = [
        [np.linalg.det(matrices[:, others[i]][:, :, others[j]]) for j in range(4)] for i in range(4)
    ]
    signs = (-1.0) ** np.add.outer(np.arange(4), np.arange(4))
    check_close(slopes, np.moveaxis(np.array(minors), -1, 0) * signs)


@pytest.mark.feature("NP-01")
def test_eigenvalues_of_nothing_have_slopes() -> None:
    nothing = np.zeros((0, 0), np.complex64)
    values, pullback = minijax.vjp(jnp.linalg.eigvals, nothing)
    assert pullback(values)[0].shape == (0, 0)


@pytest.mark.feature("NP-01")
def test_slope_of_a_length_at_zero_is_not_a_number() -> None:
    assert np.isnan(minijax.grad(jnp.linalg.norm)(np.zeros(2, np.float32))).all()


@pytest.mark.feature("NP-01", "BT-01")
def test_solutions_under_vmap_are_those_of_a_loop() -> None:
    mapped = [
        minijax.vmap(jnp.linalg.solve, axes) for axes in ((0, None), (None, 1), (0, 0), (2, None))
    ]
    arguments = [(BATCH, VECTOR), (BATCH[0], BATCH[1]), (BATCH, BATCH), (BATCH.T, VECTOR)]
    with enable_x64(True):
        found = minijax.jit(lambda: [f(*args) for f, args in zip(mapped, arguments, strict=True)])()
    solve = np.linalg.solve
    expected = [
        solve(BATCH, VECTOR),
        solve(BATCH[0], BATCH[1]).T,
        solve(BATCH, BATCH),
        solve(BATCH.swapaxes(1, 2), VECTOR),
    ]
    check_close(found, expected)


@pytest.mark.slow
@pytest.mark.feature("NP-01", "FF-08")
@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
def test_split_batches_stay_where_they_are(kind: str) -> None:
    x = np.concatenate([DEFINITE, DEFINITE + 1]).astype(np.float32)

    def compute(x: Any) -> list[Any]:
        la = jnp.linalg
        gradients = [
            minijax.grad(lambda x, f=f: jnp.sum(f(x)))(x) for f in (la.det, la.inv, la.pinv)
        ]
        solutions = [la.solve(x, x), la.solve(x, np.ones(4, np.float32)), la.matrix_power(x, -3)]
        return [*gradients, *solutions, la.slogdet(x), la.cond(x, 1), la.matrix_rank(x)]

    with minijax.cpu_devices(4):
        mesh = minijax.make_mesh((4,), ("x",), axis_types=(AxisType[kind],))
        with minijax.set_mesh(mesh):
            split = minijax.device_put(x, NamedSharding(mesh, P("x")))
            compiled = minijax.jit(compute).lower(split).compile()
            results = compiled(split)
            specs = {out.sharding.spec[0] for out in minijax.tree.leaves(results)}
        by_hand = minijax.shard_map(compute, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
        each = minijax.jit(by_hand)(x) if kind == "Auto" else results
    text = compiled.as_text()
    assert not [word for word in ("all-gather", "all-reduce", "all-to-all") if word in text]
    assert specs == {"x"}
    expected = minijax.jit(compute)(x)
    check_close(results, expected, 2e-3)
    check_close(each, expected, 2e-3)
