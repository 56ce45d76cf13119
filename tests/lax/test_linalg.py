"""Factorizations beyond the laws: which kernels are called, where they fail, and how they divide.

The calls in `golden/linalg_kernels.txt` are those that JAX 0.10.2 prints for the same programs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.core.errors import ShardingTypeError
from minijax.sharding import AxisType, NamedSharding
from minijax.sharding import PartitionSpec as P

Golden = Callable[[str, str], None]

_linalg = lax.linalg


def _type(*shape: int, dtype: str = "float32") -> Any:
    return minijax.ShapeDtypeStruct(shape, np.dtype(dtype))


def _complex(*shape: int) -> Any:
    return _type(*shape, dtype="complex64")


def _solve(**options: bool) -> Callable[[Any, Any], Any]:
    return lambda a, b: _linalg.triangular_solve(a, b, left_side=True, lower=True, **options)


_PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "cholesky": (_linalg.cholesky, (_type(2, 3, 3),)),
    "cholesky of complex": (_linalg.cholesky, (_complex(3, 3),)),
    "cholesky_update": (_linalg.cholesky_update, (_type(4, 4), _type(4))),
    "householder_product": (_linalg.householder_product, (_type(2, 5, 3), _type(2, 3))),
    "lu": (_linalg.lu, (_type(2, 3, 4),)),
    "lu of complex": (_linalg.lu, (_complex(3, 3),)),
    "ormqr": (_linalg.ormqr, (_type(2, 5, 3), _type(2, 3), _type(2, 5, 4))),
    "ormqr of complex": (
        lambda a, t, c: _linalg.ormqr(a, t, c, left=False, transpose=True),
        (_complex(5, 3), _complex(3), _complex(4, 5)),
    ),
    "qr": (_linalg.qr, (_type(2, 3, 4),)),
    "qr in full": (_linalg.qr, (_type(5, 3),)),
    "qr with pivoting": (
        lambda x: _linalg.qr(x, pivoting=True, full_matrices=False),
        (_type(2, 5, 3),),
    ),
    "symmetric_product": (
        lambda a, c: _linalg.symmetric_product(a, c, alpha=2.0, beta=3.0),
        (_type(2, 5, 3), _type(2, 5, 5)),
    ),
    "triangular_solve": (_solve(), (_type(2, 3, 3), _type(2, 3, 4))),
    "triangular_solve of complex": (
        _solve(transpose_a=True, conjugate_a=True, unit_diagonal=True),
        (_complex(3, 3), _complex(3, 4)),
    ),
    "triangular_solve with one matrix": (
        minijax.vmap(_solve(), (None, 1)),
        (_type(2, 3, 3), _type(2, 5, 3, 4)),
    ),
}


_SPELLINGS = re.compile(r'api_version = 4 : i32, |backend_config = "", |mhlo\.(?=backend_config)')


def kernel_calls(text: str) -> list[str]:
    """The calls of kernels in a module, in the words that minijax and JAX share."""
    found = []
    for target, attributes, types in re.findall(
        r"custom_call @(\w+)\([^)]*\) \{(.*)\} : (.*)", text
    ):
        # JAX writes the same attributes by another name, and leaves the version out.
        kept = _SPELLINGS.sub("", attributes)
        found.append(f"{target} {types}\n    {kept}")
    return found


@pytest.mark.feature("NP-01", "FF-10")
def test_kernels_are_called_as_jax_calls_them(golden: Golden) -> None:
    lines = []
    for name, (function, types) in _PROGRAMS.items():
        traced = minijax.jit(function).trace(*types)
        for platform in ("cpu", "cuda"):
            text = traced.lower(lowering_platforms=(platform,)).as_text()
            lines += [f"{name} on {platform}", *(f"  {call}" for call in kernel_calls(text))]
    golden("linalg_kernels.txt", "\n".join(lines) + "\n")


def test_platforms_without_kernels_are_refused() -> None:
    traced = minijax.jit(_linalg.lu).trace(_type(3, 3))
    with pytest.raises(NotImplementedError, match=r"lax.linalg.lu: there is no kernel for tpu"):
        traced.lower(lowering_platforms=("tpu",))


def test_solve_of_many_right_sides_with_one_matrix_is_one_solve() -> None:
    mapped = minijax.vmap(_solve(), (None, 0))
    jaxpr = minijax.make_jaxpr(mapped)(_type(3, 3), _type(5, 3, 4))
    (eqn,) = (e for e in jaxpr.jaxpr.eqns if e.primitive is _linalg.triangular_solve_p)
    assert [v.aval.shape for v in eqn.invars] == [(3, 3), (3, 20)]


def test_failed_entries_alone_are_nan() -> None:
    good, bad = np.eye(2, dtype=np.float32), -np.eye(2, dtype=np.float32)
    factors = np.asarray(_linalg.cholesky(np.stack([good, bad])))
    assert np.isfinite(factors[0]).all()
    assert np.isnan(factors[1][np.tril_indices(2)]).all()


def test_singular_matrices_have_their_lu_factors() -> None:
    factors, pivots, _ = _linalg.lu(np.ones((2, 2), np.float32))
    assert factors.tolist() == [[1, 1], [1, 0]]
    assert pivots.tolist() == [0, 1]


@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (0, 3), (0, 3, 3), (2, 0, 3)], ids=str)
def test_matrices_without_elements_have_factors(shape: tuple[int, ...]) -> None:
    *batch, rows, columns = shape
    count = min(rows, columns)

    def factors(x: Any) -> Any:
        return _linalg.lu(x), _linalg.qr(x), _linalg.qr(x, full_matrices=False, pivoting=True)

    lu, full, pivoted = minijax.jit(factors)(np.zeros(shape, np.float32))
    assert [x.shape for x in lu] == [shape, (*batch, count), (*batch, rows)]
    assert [x.shape for x in full] == [(*batch, rows, rows), shape]
    assert np.array_equal(full[0], np.broadcast_to(np.eye(rows), full[0].shape)) or 0 in shape[:-1]
    assert [x.shape for x in pivoted[1:]] == [(*batch, count, columns), (*batch, columns)]


def test_weak_types_pass_through() -> None:
    weak = jnp.full((2, 2), 1.0)
    assert weak.weak_type
    assert all(x.weak_type for x in _linalg.lu(weak))
    assert not _linalg.triangular_solve(weak, np.ones((2, 2), np.float32)).weak_type


@pytest.mark.feature("NP-01")
def test_cholesky_update_takes_batches_under_vmap() -> None:
    rng = np.random.default_rng(0)
    r = np.triu(rng.uniform(1, 2, (3, 4, 4))).astype(np.float32)
    w = rng.uniform(1, 2, (3, 4)).astype(np.float32)
    updated = np.asarray(minijax.vmap(_linalg.cholesky_update)(r, w))
    expected = r.swapaxes(1, 2) @ r + w[:, :, None] * w[:, None, :]
    np.testing.assert_allclose(updated.swapaxes(1, 2) @ updated, expected, rtol=1e-5)


def _factors(x: Any) -> Any:
    """All factorizations of positive definite matrices."""
    solved = _linalg.triangular_solve(x, x)
    product = _linalg.symmetric_product(x, x)
    pivoted = _linalg.qr(x, pivoting=True)
    return _linalg.cholesky(x), _linalg.lu(x), _linalg.qr(x), pivoted, solved, product


def _matrices(*shape: int) -> Any:
    x = np.random.default_rng(0).uniform(-1, 1, shape)
    return (x @ x.swapaxes(-1, -2) + np.eye(shape[-1])).astype(np.float32)


def _check_equal(actual: Any, expected: Any) -> None:
    for x, y in zip(minijax.tree.leaves(actual), minijax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4)


_COMMUNICATION = re.compile(r"all-gather|all-reduce|all-to-all|collective-permute")


@pytest.mark.slow
@pytest.mark.feature("NP-01", "FF-07", "FF-08")
@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
def test_split_batches_stay_where_they_are(kind: str) -> None:
    x = _matrices(8, 4, 4)
    with minijax.cpu_devices(4):
        mesh = minijax.make_mesh((4,), ("x",), axis_types=(AxisType[kind],))
        with minijax.set_mesh(mesh):
            split = minijax.device_put(x, NamedSharding(mesh, P("x")))
            compiled = minijax.jit(_factors).lower(split).compile()
            results = compiled(split)
            assert _COMMUNICATION.search(compiled.as_text()) is None
            specs = {out.sharding.spec[0] for out in minijax.tree.leaves(results)}
            assert specs == {"x"}
    _check_equal(results, minijax.jit(_factors)(x))


@pytest.mark.slow
@pytest.mark.feature("NP-01")
def test_split_matrices_are_gathered_or_refused() -> None:
    x = _matrices(4, 4)
    with minijax.cpu_devices(4):
        mesh = minijax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
        split = minijax.device_put(x, NamedSharding(mesh, P("x")))
        results = minijax.jit(_factors)(split)
        explicit = minijax.make_mesh((4,), ("x",), axis_types=(AxisType.Explicit,))
        with minijax.set_mesh(explicit):
            split = minijax.device_put(x, NamedSharding(explicit, P("x")))
            for factor in (_linalg.lu, _linalg.qr, _linalg.cholesky):
                with pytest.raises(ShardingTypeError, match="split over 'x'"):
                    minijax.eval_shape(factor, split)
    _check_equal(results, minijax.jit(_factors)(x))


@pytest.mark.slow
@pytest.mark.feature("NP-01")
def test_factors_of_each_device_are_those_of_the_whole_batch() -> None:
    x = _matrices(4, 3, 3)

    def loss(x: Any) -> Any:
        return jnp.sum(_linalg.cholesky(x) ** 2) + jnp.sum(_linalg.lu(x)[0] ** 2)

    expected, slope = minijax.jit(lambda x: (_factors(x), minijax.grad(loss)(x)))(x)
    with minijax.cpu_devices(4):
        mesh = minijax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))

        def mapped(function: Any) -> Any:
            return minijax.shard_map(function, mesh=mesh, in_specs=P("x"), out_specs=P("x"))

        def both(x: Any) -> Any:
            return mapped(_factors)(x), mapped(minijax.grad(loss))(x)

        _check_equal(minijax.jit(both)(x), (expected, slope))
        _check_equal(minijax.pmap(_factors)(x), expected)
