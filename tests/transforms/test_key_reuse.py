"""Random keys that are used twice are found; keys that are used once are not."""

from collections.abc import Callable
from typing import Any

import pytest

import minijax as jax
from minijax import errors, lax, random
from minijax import numpy as jnp


def two_of_split(key: Any) -> Any:
    first, second = random.split(key)
    return random.normal(first) + random.normal(second)


def rows(key: Any) -> Any:
    keys = random.split(key, 3)
    return random.normal(keys[0]) + random.normal(keys[-1]) + random.normal(keys[1:][0])


def chained(key: Any) -> Any:
    def step(key: Any, _: Any) -> Any:
        key, own = random.split(key)
        return key, random.normal(own)

    return lax.scan(step, key, None, 3)[1]


ONCE: list[Callable[[Any], Any]] = [
    lambda key: random.normal(key),
    two_of_split,
    rows,
    chained,
    lambda key: random.normal(random.fold_in(key, 1)) + random.normal(random.fold_in(key, 2)),
    lambda key: random.normal(random.clone(key)) + random.normal(key),
    lambda key: jax.vmap(random.normal)(random.split(key, 3)),
    lambda key: jax.vmap(lambda a: a + random.normal(key))(jnp.arange(3.0)),
    lambda key: lax.cond(True, random.normal, lambda key: random.uniform(key), key),
    lambda key: lax.map(random.normal, random.split(key, 3)),
    lambda key: jax.grad(jax.checkpoint(lambda v: v * random.normal(key)))(1.0),
    lambda key: random.normal(key) + jnp.sum(random.key_data(key)) * 0,
    lambda key: random.permutation(key, 5),
]


def one_row_twice(key: Any) -> Any:
    keys = random.split(key)
    return random.normal(keys[0]) + random.normal(keys[0])


def one_row_by_two_names(key: Any) -> Any:
    keys = random.split(key)
    return random.normal(keys[1]) + random.normal(keys[-1])


def all_rows_and_one(key: Any) -> Any:
    keys = random.split(key)
    return jnp.sum(jax.vmap(random.normal)(keys)) + random.normal(keys[0])


TWICE: list[Callable[[Any], Any]] = [
    lambda key: random.normal(key) + random.normal(key),
    lambda key: random.normal(key) + random.uniform(random.split(key)[0]),
    one_row_twice,
    one_row_by_two_names,
    lambda key: jax.jit(random.normal)(key) + jax.jit(random.normal)(key),
    lambda key: lax.scan(lambda c, _: (c + random.normal(key), None), 0.0, None, 3)[0],
    lambda key: lax.scan(lambda c, _: (c, random.normal(c)), key, None, 3)[1],
    lambda key: lax.fori_loop(0, 3, lambda i, c: c + random.normal(key), 0.0),
    lambda key: lax.while_loop(lambda c: c < 3, lambda c: c + random.normal(key) ** 2, 0.0),
    lambda key: lax.cond(True, random.normal, lambda key: 0.0, key) + random.normal(key),
    all_rows_and_one,
]


@pytest.mark.parametrize("number", range(len(ONCE)))
@pytest.mark.parametrize("make", [random.key, random.PRNGKey])
def test_checked_accepts_keys_used_once(number: int, make: Any) -> None:
    expected = ONCE[number](make(0))
    assert jnp.allclose(jax.checked(ONCE[number])(make(0)), expected)


@pytest.mark.feature("LG-10")
@pytest.mark.parametrize("number", range(len(TWICE)))
@pytest.mark.parametrize("make", [random.key, random.PRNGKey])
def test_checked_refuses_keys_used_twice(number: int, make: Any) -> None:
    with pytest.raises(errors.CheckedKeyReuseError):
        jax.checked(TWICE[number])(make(0))


def test_the_error_of_a_key_names_both_lines() -> None:
    def function(key: Any) -> Any:
        first = random.normal(key)
        return first + random.uniform(key)

    start = function.__code__.co_firstlineno
    with pytest.raises(errors.KeyReuseError, match="is used a second time") as info:
        jax.checked(function)(random.key(0))
    assert f"test_key_reuse.py:{start + 1} in" in str(info.value)
    assert f"test_key_reuse.py:{start + 2} in" in info.value.line


def test_debug_key_reuse_refuses_a_program() -> None:
    with jax.debug_key_reuse(True), pytest.raises(errors.KeyReuseError):
        jax.jit(TWICE[0])(random.key(0))


def test_debug_key_reuse_refuses_a_second_eager_use() -> None:
    key = random.key(0)
    with jax.debug_key_reuse(True):
        random.normal(key)
        with pytest.raises(errors.KeyReuseError, match="was used before"):
            random.uniform(key)


def test_debug_key_reuse_accepts_new_keys() -> None:
    with jax.debug_key_reuse(True):
        first, second = random.split(random.key(0))
        total = random.normal(first) + random.normal(second) + random.normal(random.key(1))
    assert jnp.isfinite(total)


def test_keys_may_be_used_twice_by_default() -> None:
    key = random.key(0)
    assert random.normal(key) == random.normal(key)


def test_clone_gives_the_same_numbers() -> None:
    key = random.key(3)
    assert random.normal(random.clone(key)) == random.normal(key)


def test_clone_of_a_used_key_may_be_used() -> None:
    key = random.key(3)
    with jax.debug_key_reuse(True):
        before = random.normal(key)
        assert random.normal(random.clone(key)) == before


def dropped(x: Any, key: Any) -> Any:
    for own in random.split(key, 2):
        x = jnp.where(random.bernoulli(own, 0.5, x.shape), jnp.sin(x), 0)
    return x.sum()


def test_keys_split_inside_a_checkpointed_function_are_used_once() -> None:
    derivative = jax.grad(jax.checkpoint(dropped))
    args = jnp.ones(3), random.key(0)
    assert jnp.array_equal(jax.checked(derivative)(*args), derivative(*args))


def drawn_from(ref: Any) -> Any:
    ref[...], own = random.split(ref[...])
    return random.normal(own)


def test_keys_in_references_are_followed() -> None:
    def draws(key: Any) -> Any:
        ref = jax.new_ref(key)
        return lax.scan(lambda c, _: (c, drawn_from(ref)), 0, None, 3)[1]

    assert jnp.array_equal(jax.checked(draws)(random.key(1)), draws(random.key(1)))


def test_key_in_a_reference_that_is_not_replaced_is_found() -> None:
    def draws(key: Any) -> Any:
        ref = jax.new_ref(key)
        return lax.scan(lambda c, _: (c, random.normal(ref[...])), 0, None, 3)[1]

    with pytest.raises(errors.CheckedKeyReuseError, match="next step of a loop"):
        jax.checked(draws)(random.key(1))


def test_function_that_is_called_twice_with_a_key_is_found() -> None:
    draw = jax.jit(lambda key: random.normal(key))
    with pytest.raises(errors.CheckedKeyReuseError, match="called a second time"):
        jax.checked(lambda key: draw(key) + draw(key))(random.key(1))
