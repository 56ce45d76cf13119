"""Programs of equal structure share an executable; all others do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.interpreters import structural_keys

VECTOR = np.arange(3, dtype=np.float32)


def key(function: Callable[..., Any], *args: Any) -> Any:
    return structural_keys.key_of(jax.make_jaxpr(function)(*args))


def compilations(action: Callable[[], Any]) -> int:
    before = jax.cache_stats()["compile"].misses
    action()
    return jax.cache_stats()["compile"].misses - before


def test_function_defined_in_a_loop_compiles_once() -> None:
    def run() -> None:
        for i in range(4):
            found = jax.jit(lambda x: jnp.sin(x) * 1.25)(VECTOR + i)
            np.testing.assert_allclose(found, np.sin(VECTOR + i) * 1.25, rtol=1e-6)

    run()
    assert compilations(run) == 0


def test_branches_defined_in_a_loop_compile_once() -> None:
    def run() -> None:
        for i in range(4):
            found = lax.cond(i % 2 == 0, lambda x: x * 2.25, lambda x: x - 2.25, VECTOR)
            np.testing.assert_allclose(found, VECTOR * 2.25 if i % 2 == 0 else VECTOR - 2.25)

    run()
    assert compilations(run) == 0


def test_closure_that_changes_is_seen() -> None:
    for factor in (2.0, 3.0, np.float32(4)):
        np.testing.assert_allclose(jax.jit(lambda x: x * factor)(VECTOR), VECTOR * factor)  # noqa: B023


def test_numpy_constant_written_into_is_seen() -> None:
    constant = np.ones(3, np.float32)
    for value in (1.0, 5.0):
        constant[:] = value
        np.testing.assert_allclose(jax.jit(lambda x: x + constant)(VECTOR), VECTOR + value)


def test_attribute_that_changes_is_seen() -> None:
    class Model:
        scale = 2.0

    model = Model()
    for scale in (2.0, 3.0):
        model.scale = scale
        np.testing.assert_allclose(jax.jit(lambda x: x * model.scale)(VECTOR), VECTOR * scale)


def test_equal_functions_have_equal_keys() -> None:
    assert key(lambda x: jnp.sin(x) + 1, VECTOR) == key(lambda y: jnp.sin(y) + 1, VECTOR)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda x: x + 1, lambda x: x + 2),
        (lambda x: x * 0.0, lambda x: x * -0.0),
        (lambda x: x + 1, lambda x: x - 1),
        (lambda x: x.sum(0), lambda x: x.sum()[None]),
        (lambda x: (x, x + 1), lambda x: (x + 1, x)),
        (
            lambda x: lax.fori_loop(0, 3, lambda i, c: c + i, x),
            lambda x: lax.fori_loop(0, 4, lambda i, c: c + i, x),
        ),
        (
            lambda x: lax.cond(x[0] > 0, lambda: x, lambda: -x),
            lambda x: lax.cond(x[0] > 0, lambda: -x, lambda: x),
        ),
        (lambda x: x + jnp.zeros(3), lambda x: x + np.ones(3, np.float32)),
        (lambda x: x.astype(jnp.int32), lambda x: x.astype(jnp.int8)),
    ],
)
def test_different_functions_have_different_keys(first: Any, second: Any) -> None:
    assert key(first, VECTOR) != key(second, VECTOR)


def test_types_of_arguments_are_part_of_the_key() -> None:
    def function(x: Any) -> Any:
        return x * 2

    keys = {key(function, x) for x in (VECTOR, VECTOR[:2], VECTOR.astype(np.int32), 1.0)}
    assert len(keys) == 4


def test_constants_of_the_device_are_told_apart_by_identity() -> None:
    first, second = jnp.ones(3), jnp.ones(3)
    assert key(lambda x: x + first, VECTOR) == key(lambda x: x + first, VECTOR)
    assert key(lambda x: x + first, VECTOR) != key(lambda x: x + second, VECTOR)


def test_large_programs_are_not_compared() -> None:
    def function(x: Any) -> Any:
        for _ in range(2001):
            x = lax.sin(x)
        return x

    assert key(function, VECTOR) is None
