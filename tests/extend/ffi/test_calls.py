"""A kernel of our own is a function like any other: eager, compiled, in loops, on many devices."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import P, ffi, lax
from minijax.core.aval import abstract_token
from minijax.sharding import AxisType
from tests.extend.ffi.conftest import PREFIX

pytestmark = pytest.mark.usefixtures("kernels")

X = np.arange(1, 25, dtype=np.float32).reshape(8, 3)
Devices = Callable[[int], list[Any]]


def struct(*shape: int, dtype: Any = np.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def normalize(x: Any, **options: Any) -> Any:
    """Rows of length one, by the kernel."""
    return ffi.ffi_call(PREFIX + "normalize_rows", struct(*x.shape), **options)(x)


def normalized(x: Any) -> Any:
    """The same by NumPy."""
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:normalize. jit of pmap")
@pytest.mark.feature("FF-01")
@pytest.mark.feature("FF-05")
def test_kernel_computes_what_numpy_does(devices: Devices) -> None:
    devices(8)
    mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))

    def loop(x: Any) -> Any:
        return lax.scan(lambda total, row: (total + 1, normalize(row)), 0, x)[1]

    per_device = jax.shard_map(normalize, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    ways = {
        "eager": normalize,
        "jit": jax.jit(normalize),
        "scan": jax.jit(loop),
        "pmap": jax.pmap(normalize),
        "jit of pmap": jax.jit(jax.pmap(normalize)),
        "shard_map": jax.jit(per_device),
    }

    for name, way in ways.items():
        np.testing.assert_allclose(way(X), normalized(X), rtol=1e-6, err_msg=name)


def test_results_have_the_tree_that_promises_have() -> None:
    like = struct(3)
    promises = like, [like], (like,)
    one, several, pair = (ffi.ffi_call(PREFIX + "normalize_rows", p)(X[0]) for p in promises)

    assert isinstance(one, jax.Array)
    assert [type(several), type(pair)] == [list, tuple]


def test_result_of_64_bits_needs_no_x64() -> None:
    out = tell()

    assert out.dtype == np.float64


def tell(**changes: Any) -> Any:
    """The numbers that a kernel finds in its attributes."""
    given = {
        "flag": True,
        "count": 3,
        "factor": 2.5,
        "narrow": np.float32(1.5),
        "letter": np.uint8(76),
        "word": "kernel",
        "list": np.array([1, 2, 4]),
        "options": {"depth": 7, "inner": {"x": 1.0}},
    }
    return ffi.ffi_call(PREFIX + "tell", struct(8, dtype=np.float64))(**{**given, **changes})


@pytest.mark.feature("FF-10")
def test_attributes_of_each_kind_reach_the_kernel() -> None:
    text = jax.jit(tell).lower().as_text()

    assert tell().tolist() == [1, 3, 2.5, 1.5, 76, 6, 7, 7]
    for written in (
        "flag = true",
        "count = 3 : i64",
        "factor = 2.500000e+00 : f64",
        "narrow = 1.500000e+00 : f32",
        "letter = 76 : ui8",
        'word = "kernel"',
        "list = dense<[1, 2, 4]> : tensor<3xi64>",
        "options = {depth = 7 : i64, inner = {x = 1.000000e+00 : f64}}",
    ):
        assert written in text


def test_attributes_are_compared_by_value_and_type() -> None:
    tell(list=np.array([5, 6]))
    before = jax.cache_stats()["eager"].misses

    assert tell(list=np.array([5, 6]))[6] == 11
    assert jax.cache_stats()["eager"].misses == before
    # 3 == 3.0, but a kernel that asks for an integer gets none.
    with pytest.raises(jax.errors.JaxRuntimeError, match="expected S64 but got F64"):
        tell(count=3.0)


def test_attribute_that_changes_later_is_copied() -> None:
    given = np.array([1, 2])
    staged = jax.make_jaxpr(lambda: tell(list=given))()
    given[:] = 100

    assert jax.eval_jaxpr(staged.jaxpr, staged.consts)[0][6] == 3


@pytest.mark.feature("FF-06")
def test_state_lives_as_long_as_the_executable() -> None:
    count = jax.jit(lambda: ffi.ffi_call(PREFIX + "counter", struct(dtype=np.int32))(start=7))

    assert [int(count()) for _ in range(3)] == [7, 8, 9]


def note(x: Any, **options: Any) -> Any:
    return ffi.ffi_call(PREFIX + "note", struct(*x.shape), **options)(x)


@pytest.mark.feature("FF-10", "EF-06")
def test_side_effects_happen_although_nobody_uses_the_result(kernels: Any) -> None:
    def f(x: Any, has_side_effect: bool) -> Any:
        note(x, has_side_effect=has_side_effect)
        return x

    x = np.float32([1, 2])
    before = kernels.sum_of_notes()
    texts = {on: jax.jit(f, static_argnums=1).lower(x, on).as_text() for on in (True, False)}
    jax.jit(f, static_argnums=1)(x, True).block_until_ready()

    assert kernels.sum_of_notes() - before == 3
    assert "has_side_effect = true" in texts[True]
    assert "custom_call" not in texts[False]


def test_side_effects_happen_once_for_each_step_of_a_loop(kernels: Any) -> None:
    def noted(x: Any) -> Any:
        return note(x, has_side_effect=True)

    def step(total: Any, x: Any) -> tuple[Any, None]:
        return total + lax.cond(x > 2, noted, jnp.negative, x), None

    before = kernels.sum_of_notes()
    total, _ = jax.jit(lambda xs: lax.scan(step, 0.0, xs))(jnp.arange(5.0))

    assert total == 3 + 4 - (0 + 1 + 2)
    assert kernels.sum_of_notes() - before == 3 + 4


@pytest.mark.feature("FF-10")
def test_result_takes_the_memory_of_an_operand() -> None:
    increment = jax.jit(
        ffi.ffi_call(
            PREFIX + "increment",
            [struct(3), struct(dtype=np.bool_)],
            input_output_aliases={0: 0},
        )
    )
    x = jnp.zeros(3)
    out, in_place = increment(x)

    assert "output_operand_alias<output_tuple_indices = [0], operand_index = 0" in (
        increment.lower(x).as_text()
    )
    assert (out.tolist(), bool(in_place), x.tolist()) == ([1.0] * 3, True, [0.0] * 3)


@pytest.mark.slow
@pytest.mark.feature("FF-10")
def test_layouts_are_those_of_lapack() -> None:
    lax.linalg.cholesky(jnp.eye(2))  # makes the kernels of linear algebra known
    factor = ffi.ffi_call(
        "lapack_spotrf_ffi",
        [struct(2, 3, 3), struct(2, dtype=np.int32)],
        input_layouts=[(0, 2, 1)],
        output_layouts=[(0, 2, 1), None],
        input_output_aliases={0: 0},
    )
    a = np.float32([[[4, 9, 9], [2, 5, 9], [6, 7, 14]], np.eye(3)])
    out, info = factor(a, uplo=np.uint8(ord("L")))

    assert info.tolist() == [0, 0]
    np.testing.assert_allclose(np.tril(out)[0], [[2, 0, 0], [1, 2, 0], [3, 2, 1]], rtol=1e-6)


@pytest.mark.feature("FF-10")
def test_tokens_pass_through() -> None:
    follow = ffi.ffi_call(PREFIX + "follow", (abstract_token, struct(8, 3)))

    def f(x: Any) -> Any:
        token, y = follow(lax.create_token(), x)
        return follow(token, y)[1]

    np.testing.assert_array_equal(jax.jit(f)(X), X)


@pytest.mark.feature("FF-10")
def test_interface_without_types_gets_a_text() -> None:
    double = ffi.ffi_call(
        PREFIX + "double_four",
        struct(4),
        custom_call_api_version=1,
        legacy_backend_config="a text",
    )

    assert double(np.float32([1, 2, 3, 4])).tolist() == [2, 4, 6, 8]
    assert 'backend_config = "a text"' in jax.jit(double).lower(struct(4)).as_text()


def test_program_for_another_platform_is_written() -> None:
    traced = jax.jit(normalize).trace(struct(8, 3))
    text = traced.lower(lowering_platforms=("cuda",)).as_text()

    assert f"stablehlo.custom_call @{PREFIX}normalize_rows" in text


@jax.custom_vjp
def unit(x: Any) -> Any:
    return normalize(x)


def _unit_forward(x: Any) -> tuple[Any, tuple[Any, Any]]:
    return unit(x), (unit(x), jnp.sqrt(jnp.sum(x * x, axis=-1, keepdims=True)))


def _unit_backward(saved: tuple[Any, Any], ct: Any) -> tuple[Any]:
    y, norm = saved
    return ((ct - y * jnp.sum(y * ct, axis=-1, keepdims=True)) / norm,)


unit.defvjp(_unit_forward, _unit_backward)


def test_gradient_by_custom_vjp_is_that_of_finite_differences() -> None:
    weights = np.float32([[1, -2, 3], [0.5, 1, 2]])
    x = np.float32([[1, 2, 2], [2, -1, 2]])

    def loss(x: Any) -> Any:
        return jnp.sum(weights * unit(x))

    eps = 1e-2
    steps = eps * np.eye(6, dtype=np.float32).reshape(6, 2, 3)
    exact = [(weights * (normalized(x + s) - normalized(x - s))).sum() / (2 * eps) for s in steps]

    np.testing.assert_allclose(jax.jit(jax.grad(loss))(x).ravel(), exact, atol=1e-3)
