"""`lax.while_loop`: carries, types, forward derivatives, batches, dead code, and refusals."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax

X = np.linspace(0.5, 1.5, 4, dtype=np.float32)


def signature(x):
    aval = jax.typeof(x)
    return str(aval.dtype), aval.shape, aval.weak_type


def doubled(x, limit=10.0):
    return lax.while_loop(lambda x: x < limit, lambda x: x * 2, x)


def power(x, n):
    """`x` to the n + 1, by a loop whose carry is (count, product)."""
    return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * x), (0, x))[1]


def loops(closed):
    """The while equations at the top of a jaxpr."""
    return [eqn for eqn in closed.jaxpr.eqns if str(eqn.primitive) == "while"]


@pytest.mark.feature("NP-02")
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_while_loop_runs_until_the_condition_fails(wrap):
    assert wrap(doubled)(np.float32(3)) == 12


def test_while_loop_whose_condition_fails_at_once_returns_its_start():
    assert doubled(np.float32(30)) == 30


def test_while_loop_carries_trees_with_none():
    start = {"i": 0, "x": X, "n": None}
    step = lambda c: {"i": c["i"] + 1, "x": c["x"] * 2, "n": None}
    out = lax.while_loop(lambda c: c["i"] < 3, step, start)
    assert out["n"] is None
    np.testing.assert_array_equal(out["x"], X * 8)


@pytest.mark.parametrize(
    ("start", "body", "expected"),
    [
        (1, lambda x: x * 2, ("int32", (), True)),
        (1, lambda x: x * 2.5, ("float32", (), False)),
        (1.0, lambda x: x * np.float32(2), ("float32", (), False)),
        (1, lambda x: x * np.float32(2), ("float32", (), False)),
        (np.float32(1), lambda x: x * 2.0, ("float32", (), False)),
        (np.float32(1), lambda x: 20.0, ("float32", (), True)),
        (np.int8(1), lambda x: x + 3, ("int8", (), False)),
    ],
)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_weak_types_of_the_start_give_way_as_in_jax(start, body, expected, wrap):
    out = wrap(lambda: lax.while_loop(lambda x: x < 10, body, start))()
    assert signature(out) == expected


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "complex64", "uint8"])
def test_while_loop_keeps_dtypes(dtype):
    start = jnp.ones(2, dtype)
    out = lax.while_loop(lambda c: jnp.abs(c).sum() < 16, lambda c: c + c, start)
    assert out.dtype == dtype
    np.testing.assert_array_equal(np.asarray(out, np.complex64), [8, 8])


def test_while_loop_carries_random_keys():
    step = lambda c: (c[0] + 1, jax.random.fold_in(c[1], c[0]))
    _, key = lax.while_loop(lambda c: c[0] < 2, step, (0, jax.random.key(0)))
    expected = jax.random.fold_in(jax.random.fold_in(jax.random.key(0), 0), 1)
    np.testing.assert_array_equal(jax.random.key_data(key), jax.random.key_data(expected))


def test_while_loop_carries_arrays_without_elements():
    out = lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] * 2), (0, np.zeros((0, 3))))
    assert out[1].shape == (0, 3)


def test_while_loop_without_carry_ends_at_once():
    assert lax.while_loop(lambda c: False, lambda c: c, ()) == ()


def test_while_loop_closes_over_tracers_of_every_transformation():
    def function(x, n):
        return jax.jvp(lambda x: power(x, n), (x,), (1.0,))[1]

    out = jax.jit(jax.vmap(function))(X, np.int32([0, 1, 2, 3]))
    np.testing.assert_allclose(out, [1, 2 * X[1], 3 * X[2] ** 2, 4 * X[3] ** 3], rtol=1e-6)


def test_unchanged_parts_of_the_carry_are_constants_of_the_loop():
    step = lambda c: (c[0] + 1, c[1] * c[3], c[2], c[3])
    closed = jax.make_jaxpr(
        lambda n, x: lax.while_loop(lambda c: c[0] < c[2], step, (0, jnp.ones(4), n, x))
    )(3, X)
    (loop,) = loops(closed)
    assert len(loop.outvars) == 2
    assert closed.jaxpr.outvars[2:] == closed.jaxpr.invars


@pytest.mark.feature("AD-01")
def test_jvp_of_a_while_loop_is_exact():
    assert jax.jvp(lambda x: power(x, 3), (2.0,), (1.0,)) == (16.0, 32.0)


@pytest.mark.feature("AD-01")
def test_tangents_of_a_carry_become_nonzero_on_the_way():
    def function(a):
        step = lambda c: (c[0] + 1, c[1] + c[2], c[2] * c[3], a * c[3])
        return lax.while_loop(lambda c: c[0] < 4, step, (0, 0.0, 1.0, 1.0))[1]

    # 1 + 1 + a + a**3 after four steps, by hand.
    value, tangent = jax.jvp(function, (1.5,), (1.0,))
    np.testing.assert_allclose([value, tangent], [2 + 1.5 + 1.5**3, 1 + 3 * 1.5**2], rtol=1e-6)


def test_tangents_of_parts_that_stay_constant_are_not_computed():
    closed = jax.make_jaxpr(lambda x: jax.jvp(lambda x: power(x, 3), (x,), (x,)))(X)
    (loop,) = loops(closed)
    assert [v.aval.dtype.name for v in loop.outvars] == ["int32", "float32", "float32"]


@pytest.mark.feature("PE-02")
def test_linearized_while_loop_matches_its_jvp():
    value, linear = jax.linearize(lambda x: power(x, 3), 2.0)
    assert (value, linear(0.5)) == (16.0, 16.0)


@pytest.mark.feature("PE-02")
def test_reverse_mode_passes_a_loop_without_tangents():
    def loss(x):
        steps = lax.while_loop(lambda i: i < 10, lambda i: i * 2, 1)
        stopped = lax.stop_gradient(power(x, 2))
        return x * steps + stopped

    assert jax.grad(loss)(2.0) == 16.0


@pytest.mark.feature("PE-02")
def test_reverse_mode_passes_the_known_part_of_a_carry():
    def loss(x):
        count, _ = lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, x))
        return count * x

    assert jax.grad(loss)(2.0) == 3.0


@pytest.mark.parametrize(
    "transform",
    [jax.grad, lambda f: lambda x: jax.vjp(f, x)[1](1.0), lambda f: jax.jit(jax.grad(f))],
    ids=["grad", "vjp", "jit"],
)
def test_reverse_mode_is_refused_with_the_remedies(transform):
    with pytest.raises(ValueError, match=r"reverse-mode[\s\S]*fori_loop with Python ints"):
        transform(lambda x: power(x, 3))(2.0)


@pytest.mark.feature("BT-01")
def test_batched_condition_stops_each_example_by_itself():
    starts = np.float32([0.5, 3, 40])
    np.testing.assert_array_equal(jax.vmap(doubled)(starts), [16, 12, 40])


@pytest.mark.feature("BT-01")
def test_batched_limit_stops_each_example_by_itself():
    outs = jax.vmap(doubled, in_axes=(None, 0))(np.float32(1), np.float32([1, 3, 100]))
    np.testing.assert_array_equal(outs, [1, 4, 128])


@pytest.mark.feature("BT-01")
def test_examples_that_are_done_keep_values_that_would_overflow():
    ends = np.int32([1, 200])
    grow = lambda n: lax.while_loop(
        lambda c: c[0] < n, lambda c: (c[0] + 1, jnp.exp(c[1])), (0, jnp.float32(1))
    )[1]
    outs = jax.vmap(grow)(ends)
    np.testing.assert_allclose(outs, [np.exp(np.float32(1)), np.inf], rtol=1e-6)


@pytest.mark.feature("BT-01")
def test_batched_body_leaves_the_condition_alone():
    closed = jax.make_jaxpr(jax.vmap(lambda x: power(x, 3)))(X)
    (loop,) = loops(closed)
    assert loop.params["cond_jaxpr"].out_avals[0].shape == ()
    assert [v.aval.shape for v in loop.outvars] == [(), (4,)]


@pytest.mark.feature("BT-01")
def test_nested_batches_stop_each_example_by_itself():
    starts = np.float32([[0.5, 3], [40, 6]])
    np.testing.assert_array_equal(jax.vmap(jax.vmap(doubled))(starts), [[16, 12], [40, 12]])


def test_jvp_of_a_batched_condition_matches_each_example():
    function = lambda x: lax.while_loop(lambda x: x < 10, lambda x: x * x, x)
    values, tangents = jax.jvp(jax.vmap(function), (np.float32([2, 3, 20]),), (np.ones(3, "f"),))
    np.testing.assert_array_equal(values, [16, 81, 20])
    np.testing.assert_array_equal(tangents, [32, 108, 1])


@pytest.mark.feature("PE-06")
def test_dead_parts_of_the_carry_leave_the_loop():
    def function(x):
        step = lambda c: (c[0] + 1, jnp.sin(c[1]), c[2] * jnp.exp(x))
        return lax.while_loop(lambda c: c[0] < 3, step, (0, x, x))[1]

    text = jax.jit(function).lower(X).as_text()
    assert "exponential" not in text
    assert "sine" in text


@pytest.mark.feature("PE-06")
def test_parts_that_the_condition_reads_stay():
    step = lambda c: (c[0] + c[1], c[1] * 2)
    out = jax.jit(lambda x: lax.while_loop(lambda c: c[0] < 10, step, (x, 1.0))[1])(0.5)
    assert out == 16


@pytest.mark.feature("PE-06")
def test_unused_loop_is_dropped():
    def function(x):
        power(x, 3)
        return x

    assert "while" not in jax.jit(function).lower(X).as_text()


def test_body_and_condition_are_staged_once_for_a_signature():
    calls = []

    def body(c):
        calls.append(c)
        return c * 2

    def condition(c):
        calls.append(c)
        return c < 10

    for start in (1.0, 2.0, 3.0):
        lax.while_loop(condition, body, start)
    assert len(calls) == 2


def test_disabled_jit_runs_the_body_in_python():
    seen = []

    def body(c):
        seen.append(float(c))
        return c * 2

    with jax.disable_jit():
        out = lax.while_loop(lambda c: c < 4, body, jnp.float32(1))
    assert (float(out), seen) == (4.0, [1.0, 2.0])


def test_disabled_jit_stages_what_only_a_tracer_decides():
    with jax.disable_jit():
        outs = jax.vmap(doubled)(np.float32([0.5, 3]))
    np.testing.assert_array_equal(outs, [16, 12])


def test_disagreeing_types_name_the_leaf_both_types_and_the_line():
    def body(c):
        wrong = c["w"].astype(jnp.int32)
        return {"i": c["i"] + 1, "w": wrong * 2}

    with pytest.raises(TypeError, match=r"lax.while_loop: body_fun returns a carry") as caught:
        lax.while_loop(lambda c: c["i"] < 3, body, {"i": 0, "w": X})
    text = str(caught.value)
    assert "init_val['w']: f32[4]   returned: i32[4]" in text
    assert "the dtypes differ; first by convert_element_type at test_while_loop.py:" in text
    assert f":{body.__code__.co_firstlineno + 1} in" in text
    assert "init_val['i']" not in text


def test_disagreeing_shapes_name_both():
    with pytest.raises(TypeError, match=r"init_val: f32\[4\]   returned: f32\[2\]"):
        lax.while_loop(lambda c: c[0] < 3, lambda c: c[:2], X)


def test_disagreeing_structures_name_the_place():
    with pytest.raises(TypeError, match="another structure than init_val") as caught:
        lax.while_loop(lambda c: True, lambda c: (c[0], (c[1], c[1])), (X, X))
    assert "init_val[1]: leaf   returned[1]: tuple of length 2" in str(caught.value)


@pytest.mark.parametrize(
    ("condition", "got"),
    [
        (lambda x: x > 0, r"bool\[4\]"),
        (lambda x: 1, r"i32\[\]"),
        (lambda x: (True, True), "a tree"),
        (lambda x: None, "a tree"),
    ],
)
def test_other_conditions_are_refused(condition, got):
    with pytest.raises(TypeError, match=rf"cond_fun must return a boolean scalar[\s\S]*{got}"):
        lax.while_loop(condition, lambda x: x * 2, X)


@pytest.mark.parametrize("functions", [(1, abs), (abs, 1)])
def test_what_cannot_be_called_is_refused(functions):
    with pytest.raises(TypeError, match=r"lax.while_loop: expected a function"):
        lax.while_loop(*functions, X)


def test_a_start_that_is_no_array_is_refused():
    with pytest.raises(TypeError, match=r"init_val\[1\] is neither an array nor a number"):
        lax.while_loop(lambda c: True, lambda c: c, (X, "text"))
