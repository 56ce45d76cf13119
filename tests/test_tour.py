"""The public interface in one file: each test shows one thing that users do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.experimental.jet import jet


def loss(params: Any, x: Any, y: Any) -> Any:
    weight, bias = params
    return jnp.mean((jnp.tanh(x @ weight + bias) - y) ** 2)


PARAMS = (np.array([0.5, -0.25], np.float32), np.float32(0.1))
X = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]], np.float32)
Y = np.array([1.0, 0.0, 0.5], np.float32)


def test_arrays_behave_as_numpy_arrays() -> None:
    x = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(x.T @ x + 1, np.asarray(x).T @ np.asarray(x) + 1)
    np.testing.assert_array_equal(x.at[0, 1:].set(7.0), [[0, 7, 7], [3, 4, 5]])


def test_jit_compiles_once_for_each_signature() -> None:
    bodies = []

    @jax.jit
    def double(x: Any) -> Any:
        bodies.append(x)
        return 2 * x

    assert [float(double(1.0)), float(double(2.0))] == [2.0, 4.0]
    assert len(bodies) == 1


def test_a_function_can_be_read_at_every_stage() -> None:
    traced = jax.jit(loss).trace(PARAMS, X, Y)
    assert "tanh" in str(traced.jaxpr)
    assert "stablehlo.tanh" in traced.lower().as_text()
    np.testing.assert_allclose(traced.lower().compile()(PARAMS, X, Y), loss(PARAMS, X, Y))


def test_derivatives_nest() -> None:
    gradient = jax.grad(loss)(PARAMS, X, Y)
    assert jax.tree.map(np.shape, gradient) == ((2,), ())
    curvature = jax.hessian(lambda w: loss((w, PARAMS[1]), X, Y))(PARAMS[0])
    np.testing.assert_allclose(curvature, np.asarray(curvature).T, rtol=1e-4)


def test_vmap_maps_over_examples() -> None:
    each = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(PARAMS, X, Y)
    mean = jax.tree.map(lambda g: g.mean(0), each)
    for found, expected in zip(
        jax.tree.leaves(mean), jax.tree.leaves(jax.grad(loss)(PARAMS, X, Y)), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_scan_is_a_loop_with_a_derivative() -> None:
    def total(decay: Any) -> Any:
        def step(mean: Any, x: Any) -> Any:
            mean = decay * mean + (1 - decay) * x
            return mean, mean

        return lax.scan(step, 0.0, jnp.array([1.0, 2.0, 3.0]))[1].sum()

    slope = (total(0.5 + 1e-2) - total(0.5 - 1e-2)) / 2e-2
    np.testing.assert_allclose(jax.grad(total)(0.5), slope, rtol=1e-3)


def test_loops_and_branches_follow_values() -> None:
    @jax.jit
    def collatz(n: Any) -> Any:
        def step(state: Any) -> Any:
            n, count = state
            return lax.cond(n % 2 == 0, lambda: n // 2, lambda: 3 * n + 1), count + 1

        return lax.while_loop(lambda state: state[0] > 1, step, (n, 0))[1]

    assert int(collatz(27)) == 111
    assert jax.vmap(collatz)(jnp.array([1, 6, 7])).tolist() == [0, 8, 16]


def test_rules_of_users_replace_ours() -> None:
    @jax.custom_vjp
    def clipped(x: Any) -> Any:
        return x

    clipped.defvjp(lambda x: (x, None), lambda _, ct: (jnp.clip(ct, -1, 1),))
    assert float(jax.grad(lambda x: clipped(x) * 10)(3.0)) == 1.0


def test_checkpoint_computes_again_what_it_does_not_save() -> None:
    def wave(x: Any) -> Any:
        return jnp.sin(jnp.sin(x))

    saved = jax.ad_checkpoint.saved_residuals(jax.checkpoint(wave), 1.0)
    assert [where for _, where in saved] == ["from the argument x"]
    np.testing.assert_allclose(jax.grad(jax.checkpoint(wave))(1.0), jax.grad(wave)(1.0))


def test_references_are_written_in_place() -> None:
    counts = jax.new_ref(jnp.zeros(3, jnp.int32))

    @jax.jit
    def count(i: Any) -> None:
        counts[i] += 1

    for i in (0, 2, 2):
        count(i)
    assert counts[...].tolist() == [1, 0, 2]


def test_prints_come_out_of_compiled_loops_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    @jax.jit
    def count(n: Any) -> Any:
        def step(i: Any, total: Any) -> Any:
            jax.debug.print("step {}", i, ordered=True)
            return total + i

        return lax.fori_loop(0, n, step, 0)

    assert int(count(3)) == 3
    jax.effects_barrier()
    assert capsys.readouterr().out == "step 0\nstep 1\nstep 2\n"


def test_checked_finds_what_went_wrong() -> None:
    def pick(table: Any, i: Any) -> Any:
        return lax.fori_loop(0, 2, lambda k, total: total + table[i + k], 0.0)

    picks = jax.jit(jax.vmap(pick, in_axes=(None, 0)))
    assert jax.checked(picks)(jnp.arange(3.0), jnp.array([0, 1])).tolist() == [1.0, 3.0]
    with pytest.raises(IndexError, match=r"index 3 is out of bounds[\s\S]*example \[1\]"):
        jax.checked(picks)(jnp.arange(3.0), jnp.array([0, 2]))


def test_retraces_are_explained() -> None:
    double = jax.jit(lambda x: 2 * x)
    double(jnp.ones(3))
    double(jnp.ones(4))
    assert "x: shape, f32[3] -> f32[4]" in str(jax.explain.retraces(double))


def test_random_numbers_follow_from_keys() -> None:
    one, other = jax.random.split(jax.random.key(0))
    assert float(jax.random.normal(one)) != float(jax.random.normal(other))
    assert float(jax.random.normal(one)) == float(jax.random.normal(one))


def test_taylor_series_to_any_order() -> None:
    value, (first, second) = jet(jnp.exp, (0.0,), ((1.0, 0.0),))
    assert [float(value), float(first), float(second)] == [1.0, 1.0, 1.0]
