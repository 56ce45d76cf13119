"""`lax.scan`: steps, types, what stays out of the loop, derivatives, batches, and refusals."""

import collections
import functools

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax

X = np.linspace(0.5, 1.5, 5, dtype=np.float32)
Pair = collections.namedtuple("Pair", "carry y")


def running(carry, x):
    """Sums so far: the carry after a step, and before it."""
    return carry + x, carry


def signature(x):
    aval = jax.typeof(x)
    return str(aval.dtype), aval.shape, aval.weak_type


def scans(closed):
    """The scan equations at the top of a jaxpr."""
    return [eqn for eqn in closed.jaxpr.eqns if str(eqn.primitive) == "scan"]


def primitives(jaxpr):
    return [str(eqn.primitive) for eqn in jaxpr.eqns]


@pytest.mark.feature("NP-02")
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_scan_returns_the_last_carry_and_stacks_results(wrap):
    last, sums = wrap(lambda x: lax.scan(running, np.float32(0), x))(X)
    assert last == pytest.approx(X.sum())
    np.testing.assert_allclose(sums, np.cumsum(X) - X, rtol=1e-6, atol=1e-7)


def test_reversed_scan_runs_from_the_last_slice():
    last, sums = lax.scan(running, np.float32(0), X, reverse=True)
    assert last == pytest.approx(X.sum())
    np.testing.assert_allclose(sums, np.cumsum(X[::-1])[::-1] - X, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [0, 1, 2, 3, 5, 9, True, False, np.int32(2)])
def test_unrolled_scan_gives_the_same(unroll, reverse):
    actual = jax.jit(lambda x: lax.scan(running, 0.0, x, reverse=reverse, unroll=unroll))(X)
    expected = lax.scan(running, 0.0, X, reverse=reverse)
    np.testing.assert_allclose(actual[0], expected[0], rtol=1e-6)
    np.testing.assert_allclose(actual[1], expected[1], rtol=1e-6)


@pytest.mark.parametrize("unroll", [0, 5, 9, True])
def test_fully_unrolled_scan_has_no_loop(unroll):
    compiled = jax.jit(lambda x: lax.scan(running, 0.0, x, unroll=unroll))
    assert "while" not in compiled.lower(X).as_text()


def test_scan_without_slices_counts_to_its_length():
    assert lax.scan(lambda c, _: (c * 2, None), 1, None, length=4) == (16, None)


@pytest.mark.parametrize("length", [5, 5.0, np.int32(5)])
def test_length_may_repeat_what_the_slices_say(length):
    assert lax.scan(running, 0.0, X, length=length)[1].shape == (5,)


def test_scan_passes_trees_with_none_through():
    step = lambda c, x: ({"a": c["a"] + x["u"], "b": None}, [x["v"] * 2, None])
    start, xs = {"a": 0.0, "b": None}, {"u": X, "v": X, "w": None}
    carry, ys = lax.scan(step, start, xs)
    assert (carry["b"], ys[1]) == (None, None)
    np.testing.assert_array_equal(ys[0], 2 * X)


@pytest.mark.parametrize("pair", [tuple, list, Pair._make], ids=["tuple", "list", "named"])
def test_scan_returns_the_kind_of_pair_that_the_step_does(pair):
    out = lax.scan(lambda c, x: pair((c + x, x)), 0.0, X)
    assert type(out) is type(pair((0, 0)))


@pytest.mark.parametrize(
    ("start", "step", "carry", "ys"),
    [
        (0, lambda c, x: (c + 1, c), ("int32", (), True), ("int32", (2,), True)),
        (0, lambda c, x: (c + 1.5, c), ("float32", (), False), ("float32", (2,), False)),
        (0.0, lambda c, x: (c + x, 1.0), ("float32", (), False), ("float32", (2,), True)),
        (0, lambda c, x: (c + x, c), ("float32", (), False), ("float32", (2,), False)),
        (np.float32(0), lambda c, x: (1.0, x), ("float32", (), True), ("float32", (2,), False)),
        (np.float32(0), lambda c, x: (c + 1.0, 3), ("float32", (), False), ("int32", (2,), True)),
        (0, lambda c, x: (jnp.int8(1), c), ("int8", (), False), ("int8", (2,), False)),
    ],
)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_weak_types_of_the_start_give_way_as_in_jax(start, step, carry, ys, wrap):
    outs = wrap(lambda x: lax.scan(step, start, x))(X[:2])
    assert tuple(map(signature, outs)) == (carry, ys)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "complex64", "uint8", "bool"])
def test_scan_keeps_dtypes(dtype):
    xs = jnp.ones(3, dtype)
    last, ys = lax.scan(lambda c, x: (c | x if dtype == "bool" else c + x, c), xs[0], xs)
    assert (last.dtype, ys.dtype) == (dtype, dtype)


def test_scan_carries_and_stacks_random_keys():
    step = lambda key, _: (jax.random.fold_in(key, 1), key)
    last, keys = lax.scan(step, jax.random.key(0), None, length=3)
    assert keys.shape == (3,)
    expected = jax.random.fold_in(keys[2], 1)
    np.testing.assert_array_equal(jax.random.key_data(last), jax.random.key_data(expected))


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_over_random_keys_takes_one_after_the_other(reverse):
    keys = jax.random.split(jax.random.key(0), 3)
    draw = jax.jit(
        lambda keys: lax.scan(lambda c, k: (c, jax.random.uniform(k)), 0, keys, reverse=reverse)
    )
    np.testing.assert_array_equal(draw(keys)[1], jax.vmap(jax.random.uniform)(keys))


@pytest.mark.parametrize("unroll", [1, 3, True])
def test_scan_of_no_steps_returns_its_start(unroll):
    last, ys = lax.scan(lambda c, x: (c * x, jnp.stack([c, x])), 2.0, X[:0], unroll=unroll)
    assert (last, ys.shape) == (2.0, (0, 2))


def test_gradient_of_a_scan_of_no_steps_is_that_of_its_start():
    function = lambda a, x: lax.scan(lambda c, x: (c * x * a, c), a, x)[0]
    by_start, by_slices = jax.grad(function, argnums=(0, 1))(2.0, X[:0])
    assert (by_start, by_slices.shape) == (1.0, (0,))


def test_scan_of_arrays_without_elements_keeps_shapes():
    step = lambda c, x: (c + x, x.sum())
    last, ys = jax.jit(lambda xs: lax.scan(step, jnp.zeros((0,)), xs))(jnp.zeros((3, 0)))
    assert (last.shape, ys.tolist()) == ((0,), [0, 0, 0])


def test_unchanged_parts_of_the_carry_are_constants_of_the_scan():
    closed = jax.make_jaxpr(
        lambda a, x: lax.scan(lambda c, x: ((c[0], c[1] * x), c[0]), (a, 1.0), x)
    )(2.0, X)
    (scan,) = scans(closed)
    assert (scan.params["num_consts"], scan.params["num_carry"]) == (1, 1)
    assert closed.jaxpr.outvars[0] is closed.jaxpr.invars[0]


def test_results_that_are_slices_are_not_stacked_again():
    closed = jax.make_jaxpr(lambda x: lax.scan(lambda c, x: (c + x, (x, c)), 0.0, x))(X)
    (scan,) = scans(closed)
    assert len(scan.outvars) == 2
    assert closed.jaxpr.outvars[1] is closed.jaxpr.invars[0]


def test_parts_of_the_carry_that_change_places_are_carried():
    last, _ = lax.scan(lambda c, _: (c[::-1], None), (1, 2), None, length=3)
    assert last == (2, 1)


def test_constants_of_a_body_may_be_its_results():
    last, ys = jax.jit(lambda x: lax.scan(lambda c, x: (np.float32(7), 3), np.float32(0), x))(X)
    assert (last, ys.tolist()) == (7, [3] * 5)


@pytest.mark.feature("AD-01")
def test_gradient_of_a_product_is_the_product_of_the_others():
    gradient = jax.grad(lambda x: lax.scan(lambda c, x: (c * x, None), 1.0, x)[0])(X)
    np.testing.assert_allclose(gradient, X.prod() / X, rtol=1e-5)


@pytest.mark.feature("AD-01")
@pytest.mark.parametrize("unroll", [1, 2, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("split", [False, True])
def test_gradient_has_the_options_of_the_scan(unroll, reverse, split):
    def function(x):
        step = lambda c, x: (jnp.sin(c * x), c * c)
        options = {"unroll": unroll, "reverse": reverse, "_split_transpose": split}
        return lax.scan(step, 1.0, x, **options)[1].sum()

    def plain(x):
        carry, total = 1.0, 0.0
        for each in x[::-1] if reverse else x:
            total += carry * carry
            carry = jnp.sin(carry * each)
        return total

    np.testing.assert_allclose(jax.grad(function)(X), jax.grad(plain)(X), rtol=1e-5)


@pytest.mark.feature("AD-01")
def test_hessian_of_a_product_is_the_product_of_the_other_others():
    hessian = jax.hessian(lambda x: lax.scan(lambda c, x: (c * x, None), 1.0, x)[0])(X)
    expected = X.prod() / np.outer(X, X) * (1 - np.eye(5))
    np.testing.assert_allclose(hessian, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.feature("AD-01")
def test_tangents_of_a_carry_become_nonzero_on_the_way():
    def function(a):
        step = lambda c, _: ((c[1], c[2], a * c[2]), c[0])
        return lax.scan(step, (1.0, 1.0, 1.0), None, length=5)[0]

    values, tangents = jax.jvp(function, (2.0,), (1.0,))
    assert values == (8.0, 16.0, 32.0)
    assert tangents == (12.0, 32.0, 80.0)


@pytest.mark.feature("PE-02")
def test_parts_of_the_carry_become_unknown_on_the_way():
    def function(a):
        step = lambda c, _: ((c[1], c[2], a * c[2]), c[0])
        return sum(lax.scan(step, (1.0, 1.0, 1.0), None, length=5)[0])

    value, linear = jax.linearize(function, 2.0)
    assert (value, linear(1.0)) == (56.0, 124.0)
    assert jax.grad(function)(2.0) == 124.0


@pytest.mark.feature("PE-02")
def test_integer_parts_of_the_carry_stay_out_of_the_backward_scan():
    def loss(x):
        step = lambda c, x: ((c[0] + 1, c[1] * x * c[0]), c[0])
        return lax.scan(step, (1, 1.0), x)[0][1]

    closed = jax.make_jaxpr(jax.grad(loss))(X)
    _, backward = scans(closed)
    assert all(v.aval.dtype == np.float32 for v in backward.invars)
    np.testing.assert_allclose(jax.grad(loss)(X), 120 * X.prod() / X, rtol=1e-5)


def test_gradient_by_integer_slices_is_float0():
    function = lambda x, i: lax.scan(lambda c, xi: (c + xi[0] * xi[1], None), 0.0, (x, i))[0]
    gradient = jax.grad(function, argnums=(0, 1), allow_int=True)(X, np.arange(5))
    np.testing.assert_array_equal(gradient[0], np.arange(5))
    assert gradient[1].dtype == jax.dtypes.float0


@pytest.mark.feature("PE-02")
def test_what_follows_from_constants_is_computed_once_outside_of_the_loop():
    def loss(w):
        step = lambda c, _: (jnp.tanh(jnp.exp(w) * c), None)
        return lax.scan(step, 1.0, None, length=4)[0]

    closed = jax.make_jaxpr(jax.grad(loss))(0.5)
    assert primitives(closed.jaxpr).count("exp") == 1
    assert all("exp" not in primitives(scan.params["jaxpr"]) for scan in scans(closed))
    step = 1e-3
    slope = float(loss(0.5 + step) - loss(0.5 - step)) / (2 * step)
    assert jax.grad(loss)(0.5) == pytest.approx(slope, rel=1e-2)


@pytest.mark.feature("PE-02")
def test_residuals_that_are_slices_or_constants_are_not_stacked():
    def loss(w, x):
        return lax.scan(lambda c, x: (c * w + x * w * x, None), 0.0, x)[0]

    closed = jax.make_jaxpr(jax.grad(loss))(2.0, X)
    forward, backward = scans(closed)
    stacked = [v for v in forward.outvars if v.aval.shape]
    assert len(stacked) == 1
    assert closed.jaxpr.invars[0] in backward.invars


@pytest.mark.feature("PE-06")
def test_carry_that_no_result_reads_has_no_cotangent():
    """Its derivative, cos(inf) = NaN, has no part in the gradient."""

    def function(start, xs):
        return jnp.sum(lax.scan(lambda c, x: (jnp.sin(c), x * x), start, xs)[1])

    start, slopes = jax.grad(function, (0, 1))(jnp.inf, jnp.arange(3.0))
    assert start == 0.0
    np.testing.assert_array_equal(slopes, [0.0, 2.0, 4.0])


def test_gradient_needs_no_values_that_nobody_asks_for():
    linear = lambda x: lax.scan(lambda c, x: (c + 2 * x, None), 0.0, x)[0]
    text = jax.jit(jax.grad(linear)).lower(X).as_text()
    assert text.count("stablehlo.while") == 1


@pytest.mark.feature("AD-01")
def test_linear_transpose_takes_integer_counters():
    def linear(x):
        step = lambda c, x: ((c[0] + 1, c[1] + x * c[0]), c[1])
        return lax.scan(step, (0, jnp.float32(0)), x)[1]

    (transposed,) = jax.linear_transpose(linear, X)(np.ones(5, np.float32))
    np.testing.assert_array_equal(transposed, [0, 3, 4, 3, 0])


@pytest.mark.feature("AD-01")
def test_linear_transpose_takes_constants_and_starts():
    matrix = np.float32([[1, 2], [3, 4]])

    def linear(b, start):
        return lax.scan(lambda c, _: (matrix @ c + b, None), start, None, length=3)[0]

    ct = np.float32([1, -1])
    by_constant, by_start = jax.linear_transpose(linear, ct, ct)(ct)
    powers = [np.linalg.matrix_power(matrix, k) for k in range(4)]
    np.testing.assert_allclose(by_constant, sum(powers[:3]).T @ ct, rtol=1e-6)
    np.testing.assert_allclose(by_start, powers[3].T @ ct, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["bfloat16", "complex64"])
def test_gradients_keep_dtypes(dtype):
    x = jnp.ones(3, dtype)
    loss = lambda x: jnp.abs(lax.scan(lambda c, x: (c * x, None), jnp.ones((), dtype), x)[0])
    gradient = jax.grad(lambda x: loss(x).astype(jnp.float32))(x)
    assert gradient.dtype == dtype
    np.testing.assert_array_equal(np.asarray(gradient, np.complex64), [1, 1, 1])


@pytest.mark.feature("BT-01")
def test_parts_of_the_carry_are_batched_only_if_need_be():
    def function(a):
        step = lambda c, x: ((c[0] + x, c[1] * a), c[0])
        return lax.scan(step, (jnp.float32(0), jnp.float32(1)), X)

    closed = jax.make_jaxpr(jax.vmap(function))(X)
    (scan,) = scans(closed)
    assert [v.aval.shape for v in scan.outvars] == [(), (5,), (5,)]


@pytest.mark.feature("BT-01")
@pytest.mark.parametrize(("in_axes", "out_axes"), [(0, 0), (1, 1), (1, 0)])
def test_vmap_over_slices_matches_stacking(in_axes, out_axes):
    xs = np.arange(12, dtype=np.float32).reshape(3, 4)
    function = lambda x: lax.scan(running, np.float32(0), x)[1]
    actual = jax.vmap(function, in_axes=in_axes, out_axes=out_axes)(xs)
    rows = np.moveaxis(xs, in_axes, 0)
    np.testing.assert_allclose(actual, np.stack(list(map(function, rows)), out_axes))


@pytest.mark.slow
def test_scan_in_scan_in_while_in_cond_has_gradients_of_every_order():
    def nested(x):
        def outer(c, x):
            def inner(d, _):
                halved = lax.while_loop(lambda i: i < 2, lambda i: i + 1, 0) * 0.25
                return lax.cond(d > 1, lambda d: d * halved, lambda d: d * x + 1, d), d

            d, ys = lax.scan(inner, c, None, length=3)
            return jnp.sin(d), ys.sum()

        return lax.scan(outer, 1.5, x)[1].sum()

    def plain(x):
        c, total = 1.5, 0.0
        for each in x:
            for _ in range(3):
                total += c
                c = jnp.where(c > 1, c * 0.5, c * each + 1)
            c = jnp.sin(c)
        return total

    batch = np.stack([X, X[::-1], 2 * X])
    for function in (nested, lambda x: (jax.grad(nested)(x) ** 2).sum()):
        reference = plain if function is nested else lambda x: (jax.grad(plain)(x) ** 2).sum()
        actual = jax.jit(jax.vmap(jax.value_and_grad(function)))(batch)
        expected = jax.jit(jax.vmap(jax.value_and_grad(reference)))(batch)
        np.testing.assert_allclose(actual[0], expected[0], rtol=1e-4)
        np.testing.assert_allclose(actual[1], expected[1], rtol=1e-3, atol=1e-4)


def test_body_closes_over_tracers_of_every_transformation():
    @jax.jit
    @functools.partial(jax.vmap, in_axes=(0, None))
    def function(a, x):
        return jax.grad(lambda w: lax.scan(lambda c, x: (c + w * a * x, None), 0.0, x)[0])(a)

    np.testing.assert_allclose(function(X, X), X * X.sum(), rtol=1e-6)


def test_body_kept_by_the_user_reads_the_tracers_of_each_call():
    held = {}

    def step(c, x):
        return c + held["w"] * x, None

    def loss(w):
        held["w"] = w
        return lax.scan(step, 0.0, X)[0]

    for w in (1.0, 2.0):
        assert jax.value_and_grad(loss)(w) == pytest.approx((w * X.sum(), X.sum()), rel=1e-6)


def test_transformations_inside_a_body():
    def step(c, x):
        slope = jax.grad(lambda c: jnp.sin(c * x))(c)
        return slope, jax.vmap(jnp.square)(jnp.stack([c, x])).sum()

    last, _ = jax.jit(lambda x: lax.scan(step, 1.0, x))(X)
    expected = 1.0
    for x in X:
        expected = x * np.cos(expected * x)
    assert last == pytest.approx(expected, rel=1e-5)


@pytest.mark.feature("PE-06")
def test_dead_parts_of_the_carry_and_results_leave_the_loop():
    def function(x):
        step = lambda c, x: ((c[0] + x, jnp.exp(c[1])), (jnp.tanh(x), jnp.cos(c[1])))
        return lax.scan(step, (0.0, 0.0), x)[0][0]

    text = jax.jit(function).lower(X).as_text()
    assert not any(name in text for name in ("exponential", "tanh", "cosine"))


@pytest.mark.feature("PE-06")
def test_parts_of_the_carry_that_others_read_stay():
    def function(x):
        return lax.scan(
            lambda c, x: ((c[0] + c[1], c[1] + c[2], c[2] * x), None), (0.0, 0.0, 1.0), x
        )

    live = jax.jit(lambda x: function(x)[0][0])(X)
    assert live == pytest.approx(float(function(X)[0][0]), rel=1e-6)


@pytest.mark.feature("PE-06")
def test_unused_scan_is_dropped():
    def function(x):
        lax.scan(running, 0.0, x)
        return x

    assert "while" not in jax.jit(function).lower(X).as_text()


def test_body_is_staged_once_for_any_number_of_steps():
    calls = []

    def step(c, x):
        calls.append(c)
        return c * x, c

    for n in (2, 5, 1000):
        lax.scan(step, np.float32(1), np.ones(n, np.float32))
    assert len(calls) == 1


def test_body_is_staged_again_where_weak_types_give_way():
    calls = []

    def step(c, x):
        calls.append(jax.typeof(c).dtype.name)
        return c * x, c

    lax.scan(step, 1, X)
    assert calls == ["int32", "float32"]


@pytest.mark.feature("LG-05")
def test_body_is_transformed_once_for_any_number_of_steps():
    def step(c, x):
        return jnp.sin(c * x), c

    def lower(n):
        loss = lambda x: lax.scan(step, np.float32(1), x)[0]
        jax.jit(jax.vmap(jax.grad(loss))).lower(np.ones((2, n), np.float32))
        return jax.cache_stats()["transform"].misses

    assert lower(2) == lower(3) == lower(100_000)


def test_size_of_the_program_does_not_grow_with_the_number_of_steps():
    gradient = jax.jit(jax.grad(lambda x: lax.scan(lambda c, x: (jnp.sin(c * x), c), 1.0, x)[0]))
    sizes = {len(gradient.lower(np.ones(n, np.float32)).as_text().split("\n")) for n in (3, 30_000)}
    assert len(sizes) == 1


def test_cleared_caches_stage_a_body_again():
    calls = []

    def step(c, x):
        calls.append(c)
        return c * x, c

    lax.scan(step, np.float32(1), X)
    jax.clear_caches()
    lax.scan(step, np.float32(1), X)
    assert len(calls) == 2


def test_disabled_jit_runs_the_body_in_python():
    seen = []

    def step(c, x):
        seen.append((float(c), float(x)))
        return c + x, {"y": c}

    with jax.disable_jit():
        last, ys = lax.scan(step, 0.0, np.float32([1, 2]), reverse=True)
    assert (float(last), ys["y"].tolist(), seen) == (3.0, [2, 0], [(0.0, 2.0), (2.0, 1.0)])


def test_disagreeing_types_name_the_leaf_both_types_and_the_line():
    def step(c, x):
        long = c["w"][None]
        return {"w": long * 2, "n": c["n"].astype(jnp.float32), "ok": c["ok"]}, x

    with pytest.raises(TypeError, match=r"lax.scan: f returns a carry of other types") as caught:
        lax.scan(step, {"w": X, "n": np.arange(2), "ok": X}, X)
    text = str(caught.value)
    line = step.__code__.co_firstlineno + 1
    assert f"step at {__file__}:{line - 1}" in text
    assert "init['w']: f32[5]   returned: f32[1,5]   (the shapes differ; first by " in text
    assert f"test_scan.py:{line} in" in text
    assert "init['n']: i32[2]   returned: f32[2]   (the dtypes differ; first by " in text
    assert f"test_scan.py:{line + 1} in" in text
    assert "'ok'" not in text


def test_disagreeing_structures_name_the_place():
    with pytest.raises(TypeError, match="another structure than init") as caught:
        lax.scan(lambda c, x: ((c[0], [c[1]]), x), (X, X), X)
    assert "init[1]: leaf   returned[1]: list of length 1" in str(caught.value)


@pytest.mark.parametrize(
    ("out", "got"),
    [
        (lambda c: c, r"f32\[\]"),
        (lambda c: None, "None"),
        (lambda c: (c, c, c), "tuple of length 3"),
        (lambda c: jnp.stack([c, c]), r"f32\[2\]"),
    ],
)
def test_a_step_that_returns_no_pair_is_refused(out, got):
    match = rf"f must return a pair \(carry, y\)[\s\S]*{got}[\s\S]*return \(carry, None\)"
    with pytest.raises(TypeError, match=match):
        lax.scan(lambda c, x: out(c), np.float32(0), X)


def test_disagreeing_lengths_are_listed():
    with pytest.raises(ValueError, match="lengths of what is scanned over disagree") as caught:
        lax.scan(running, 0.0, {"a": X, "b": [X[:2]]}, length=7)
    for fact in ("xs['a']: f32[5]", "xs['b'][0]: f32[2]", "length: 7"):
        assert fact in str(caught.value)


def test_negative_length_is_refused():
    with pytest.raises(ValueError, match="are negative"):
        lax.scan(lambda c, _: (c + 1, c), 0.0, None, length=-1)


def test_missing_length_is_refused():
    with pytest.raises(ValueError, match=r"the number of steps is unknown[\s\S]*give length"):
        lax.scan(running, 0.0, None)


@pytest.mark.parametrize("length", [2.5, "3", [3]])
def test_a_length_that_is_no_integer_is_refused(length):
    with pytest.raises(TypeError, match="the length must be a concrete integer"):
        lax.scan(lambda c, _: (c, None), 0.0, None, length=length)


def test_traced_length_is_refused_with_the_remedy():
    function = jax.jit(lambda n: lax.scan(lambda c, _: (c, None), 0.0, None, length=n))
    with pytest.raises(jax.errors.ConcretizationTypeError, match="while_loop where the number"):
        function(3)


def test_scalars_cannot_be_scanned_over():
    with pytest.raises(ValueError, match=r"xs\['b'\] cannot be scanned over"):
        lax.scan(lambda c, x: (c, x), 0.0, {"a": X, "b": 2.0})


@pytest.mark.parametrize(
    ("unroll", "error"), [(-1, ValueError), (-3, ValueError), (1.5, TypeError), (None, TypeError)]
)
def test_other_values_of_unroll_are_refused(unroll, error):
    with pytest.raises(error, match=r"lax.scan: unroll must be a boolean, or an integer"):
        lax.scan(running, 0.0, X, unroll=unroll)


def test_what_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match=r"lax.scan: expected a function"):
        lax.scan(3, 0.0, X)


@pytest.mark.parametrize(("init", "xs", "name"), [("text", X, "init"), (0.0, ["text"], r"xs\[0\]")])
def test_leaves_that_are_no_arrays_are_refused(init, xs, name):
    with pytest.raises(TypeError, match=rf"the argument {name} is neither an array nor a number"):
        lax.scan(running, init, xs)
