"""The players of derivatives and batches: what each equation became, and what is kept."""

import pytest

import minijax as jax
import minijax.numpy as jnp

pytestmark = pytest.mark.feature("PG-02")


def wave(w, x):
    return jnp.sum(x * jnp.sin(w * x))


def row(data, name):
    return next(row for row in data["rows"] if row["name"] == name)


def test_derivative_tells_what_is_known_linear_and_transposed():
    found = jax.explain.derivative(wave, argnums=0)(2.0, jnp.arange(6.0))
    assert row(found.data, "sin")["known"] == ["d:f32[6] = sin c", "e:f32[6] = cos c"]
    (linear,) = row(found.data, "sin")["linear"]
    assert linear["text"] == "t_c:f32[6] = mul t_b e"
    (transposed,) = row(found.data, "sin")["transposed"]
    assert transposed["text"] == "c_d:f32[6] = mul c_c e"
    assert transposed["needs"] == ["e"]
    assert [r["name"] for r in found.data["residuals"]] == ["b", "e"]
    assert sum(r["bytes"] for r in found.data["residuals"]) == 48
    assert row(found.data, "sin")["line"].startswith("test_transformed.py:")


def test_cotangents_of_one_value_are_added():
    found = jax.explain.derivative(lambda x: jnp.sin(x) * x)(1.0)
    sums = [x for r in found.data["rows"] for x in r["transposed"] if x["sum"]]
    assert [x["text"] for x in sums] == ["c_e:f32[] = add_any c_b c_d"]
    assert found.data["gradients"] == ["c_e"]


def test_derivative_prints_its_parts_in_order():
    text = repr(jax.explain.derivative(lambda x: jnp.sin(x) * x)(1.0))
    assert text.startswith("Derivative of <lambda>: 2 equations; 12 bytes are kept\n")
    places = [text.index(part) for part in ("forward: ", "kept: ", "linear in", "backward, ")]
    assert places == sorted(places)
    assert text.endswith("gradients: c_e")


def test_derivative_of_a_loop_keeps_what_the_steps_need():
    def scanned(x):
        return jax.lax.scan(lambda c, t: (jnp.tanh(c) * t, c), x, jnp.arange(1.0, 5.0))[0]

    found = jax.explain.derivative(scanned)(0.5)
    (transposed,) = row(found.data, "scan")["transposed"]
    assert "reverse=True" in transposed["text"]
    assert "f32[4]" in [r["type"] for r in found.data["residuals"]]


def test_arguments_by_which_nothing_can_be_differentiated_are_refused():
    with pytest.raises(ValueError, match=r"explain\.derivative: no result depends on these"):
        jax.explain.derivative(lambda x: x + 1)(3)


@pytest.mark.parametrize("argnums", [2, -3, (0, 5)])
def test_position_out_of_range_is_refused(argnums):
    with pytest.raises(ValueError, match=r"explain\.derivative: argnums is out of range"):
        jax.explain.derivative(wave, argnums)(2.0, jnp.arange(6.0))


def test_derivative_refuses_what_is_no_function():
    with pytest.raises(TypeError, match=r"explain\.derivative: expected a function"):
        jax.explain.derivative(3)


def test_page_of_a_gradient_plays_its_derivative():
    data = jax.explain.page(jax.jit(jax.grad(wave)))(2.0, jnp.arange(6.0)).data
    assert data["batch"] is None
    names = [data["equations"][n]["name"] for n in row(data["derivative"], "sin")["n"]]
    assert {"sin", "cos"} <= set(names)


def test_page_of_a_batch_says_where_the_batch_is():
    mapped = jax.vmap(jax.grad(wave), in_axes=(None, -1))
    data = jax.explain.page(mapped)(2.0, jnp.ones((4, 3))).data
    batch = data["batch"]
    assert batch["size"] == 3
    assert [x["dim"] for x in batch["arguments"]] == [None, 1]
    assert row(batch, "sin")["dims"] == [1]
    assert row(batch, "broadcast_in_dim")["dims"] == [None]
    assert row(batch, "reduce_sum")["text"] == "g:f32[] = reduce_sum[axes=(0,)] f"
    (summed,) = row(batch, "reduce_sum")["became"]
    assert summed.startswith("g:f32[3] = reduce_sum[axes=(0,)")
    assert row(batch, "sin")["n"]
    assert data["derivative"] is not None
    assert data["columns"][1]["lines"][0]["t"] == "{ lambda ; a:f32[] b:f32[4]. let"


def test_page_of_a_batch_shows_one_example():
    columns = jax.explain.page(jax.vmap(jnp.sin))(jnp.ones(3)).data["columns"]
    assert [c["key"] for c in columns][:2] == ["python", "jaxpr"]
    columns = jax.explain.page(jax.vmap(lambda x: jnp.sin(x)))(jnp.ones(3)).data["columns"]
    assert columns[1]["title"] == "one example"


def test_named_batch_and_loop_without_reverse_mode_have_no_player():
    named = jax.vmap(lambda x: x / jax.lax.psum(x, "i"), axis_name="i")
    assert jax.explain.page(named)(jnp.ones(3)).data["batch"] is None

    def loop(x):
        return jax.lax.while_loop(lambda y: y < 3, lambda y: y * 2, x)

    forward = jax.jit(lambda x: jax.jvp(loop, (x,), (x,)))
    assert jax.explain.page(forward)(1.0).data["derivative"] is None
