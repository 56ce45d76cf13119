"""The player of calls: the keys for which a function was traced, and where they differ."""

import pytest

import minijax as jax
import minijax.numpy as jnp

pytestmark = pytest.mark.feature("PG-02")


@pytest.fixture
def scaled():
    """A function of which nothing is remembered."""

    def function(params, x, n):
        return params["w"] * x**n

    return function


def test_second_call_shows_what_fits_and_what_does_not(scaled):
    f = jax.jit(scaled, static_argnames="n")
    f({"w": jnp.ones(3)}, jnp.ones(3), n=2)
    data = jax.explain.page(f)({"w": jnp.ones(3)}, jnp.ones((1, 3)), n=3).data["calls"]
    first, second = data["calls"]
    assert data["parts"] == ["params['w']", "x", "n"]
    assert first["key"] == {"params['w']": "f32[3]", "x": "f32[3]", "n": "static 2"}
    assert (first["nearest"], first["differs"], first["words"]) == (None, {}, "")
    assert second["key"]["x"] == "f32[1,3]"
    assert set(second["differs"]) == {"x", "n"}
    assert second["nearest"] == 0
    assert second["differs"]["x"].startswith("number of dimensions, before: f32[3]; reshape ")


def test_words_are_those_of_retraces(scaled):
    f = jax.jit(scaled, static_argnames="n")
    f({"w": 1.0}, jnp.ones(3), n=2)
    data = jax.explain.page(f)({"w": 1.0}, jnp.ones(4), n=2).data["calls"]
    (retrace,) = jax.explain.retraces(f).retraces
    assert data["calls"][1]["words"] == str(retrace)


def test_configuration_is_a_part_of_the_key():
    f = jax.jit(lambda x: 2 * x)
    f(jnp.ones(3))
    with jax.enable_x64(True):
        data = jax.explain.page(f)(jnp.ones(3)).data["calls"]
    assert data["calls"][1]["key"]["config.enable_x64"] == "True"


def test_call_that_the_cache_answers_fits_throughout(scaled):
    f = jax.jit(scaled, static_argnames="n")
    for n in (2, 3, 4):
        f({"w": 1.0}, jnp.ones(3), n=n)
    *traced, own = jax.explain.page(f)({"w": 1.0}, jnp.ones(3), n=3).data["calls"]["calls"]
    assert len(traced) == 3
    assert (own["nearest"], own["differs"], own["words"], own["at"]) == (1, {}, "", "")
    assert own["key"] == traced[1]["key"]
    assert own["key"]["n"] == "static 3"


def test_first_call_has_nothing_to_be_compared_with():
    assert jax.explain.page(jax.jit(lambda x: 2 * x))(jnp.ones(3)).data["calls"] is None


def test_functions_made_anew_by_a_line_are_compared():
    for _ in range(2):
        f = jax.jit(lambda x: 2 * x)
        f(jnp.ones(3))
    data = jax.explain.page(f)(jnp.ones(3)).data["calls"]
    assert list(data["calls"][1]["differs"]) == ["new function object"]
