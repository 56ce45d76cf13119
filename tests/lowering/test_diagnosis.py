"""`debug_nans` and `debug_infs`: which operation, which line, which index."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental import io_callback

X = np.array([1.0, -1.0, 2.0], np.float32)


def bad_result(function, *args, nans=True):
    """The text of the error that calling the function raises."""
    state = jax.debug_nans if nans else jax.debug_infs
    with state(True), pytest.raises(FloatingPointError) as caught:
        function(*args)
    return str(caught.value)


def log_here(x):
    return jnp.log(x)


with_custom_rule = jax.custom_jvp(log_here)
with_custom_rule.defjvp(lambda primals, tangents: (log_here(*primals), tangents[0]))


def through_a_reference(x):
    ref = jax.new_ref(x)
    ref[...] = log_here(ref[...])
    return ref[...]


CASES = {
    "eager": lambda x: log_here(x),
    "jit": jax.jit(lambda x: log_here(x) + 1),
    "jit in jit": jax.jit(lambda x: jax.jit(log_here)(x) + 1),
    "cond": jax.jit(lambda x: jax.lax.cond(x[0] > 0, log_here, jnp.sin, x)),
    "custom_jvp": jax.jit(with_custom_rule),
    "checkpoint": jax.jit(jax.checkpoint(log_here)),
    "references": jax.jit(through_a_reference),
    "effects": jax.jit(lambda x: (jax.debug.callback(lambda y: None, x), log_here(x))[1]),
}


@pytest.mark.parametrize("function", CASES.values(), ids=CASES)
def test_nans_are_traced_to_the_operation_the_line_and_the_index(function):
    text = bad_result(function, X)
    assert text.startswith("log: produced a NaN at index (1,).")
    line = log_here.__code__.co_firstlineno + 1
    assert f"test_diagnosis.py:{line} in log_here" in text


def test_nans_in_scan_are_traced_into_the_body():
    text = bad_result(lambda: jax.lax.scan(lambda c, x: (c + log_here(x), None), 0.0, X))
    assert text.startswith("log: produced a NaN at index ().")
    assert "in log_here" in text


def test_nans_in_while_are_traced_into_the_body():
    text = bad_result(
        lambda: jax.lax.while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.sqrt(c[1] - 1)), (0, 1.5)
        )
    )
    assert text.startswith("sqrt: produced a NaN")


def test_nans_of_batched_loops_are_those_of_examples_that_go_on():
    def function(steps, start):
        return jax.lax.while_loop(
            lambda c: c[0] < steps, lambda c: (c[0] + 1, jnp.sqrt(c[1] - 1)), (0, start)
        )[1]

    with jax.debug_nans(True):
        fine = jax.vmap(function)(jnp.array([1, 0]), jnp.array([2.0, -7.0]))
    assert fine.tolist() == [1.0, -7.0]
    text = bad_result(jax.vmap(function), jnp.array([1, 3]), jnp.array([-2.0, -7.0]))
    assert text.startswith("sqrt: produced a NaN at index (0,)")


def test_nans_given_as_arguments_are_told_from_new_ones():
    text = bad_result(jax.jit(lambda x: x + 1), jnp.array([0.0, np.nan]))
    assert "add: produced a NaN at index (1,)" in text
    assert "an operand that had one already: f32[2] with NaN at (1,)" in text


def test_eager_errors_name_the_line_of_the_call():
    jnp.log(jnp.asarray(X) * 0 + 1)
    lines = []
    for _ in range(1):
        lines.append(bad_result(lambda: jnp.log(jnp.asarray(X))))
    lines.append(bad_result(lambda: jnp.log(jnp.asarray(X))))
    places = {text.split("test_diagnosis.py:")[1].split()[0] for text in lines}
    assert len(places) == 2


def test_infinities_are_found_where_asked():
    text = bad_result(jax.jit(lambda x: 1 / (x - 1)), X, nans=False)
    assert text.startswith("div: produced an inf at index (0,).")


def test_nans_are_no_infinities():
    with jax.debug_infs(True):
        assert np.isnan(jnp.log(jnp.asarray(X))[1])


def test_donated_arguments_prevent_a_second_run():
    text = bad_result(jax.jit(lambda x: jnp.log(x) * 1, donate_argnums=0), jnp.asarray(X))
    assert "donated" in text
    assert "donate_argnums" in text


def test_programs_with_io_are_not_repeated():
    calls = []

    def callback(x):
        calls.append(1)
        return x

    like = jax.ShapeDtypeStruct((3,), np.float32)
    text = bad_result(jax.jit(lambda x: jnp.log(io_callback(callback, like, x))), X)
    assert "effects" in text
    assert len(calls) == 1


def test_masked_nans_are_no_error():
    with jax.debug_nans(True):
        out = jax.jit(lambda x: jnp.where(x > 0, jnp.log(x), 0))(X)
    assert out[1] == 0


def test_integers_and_tokens_are_fine():
    with jax.debug_nans(True), jax.debug_infs(True):
        assert int(jax.jit(lambda x: x + 1)(1)) == 2
