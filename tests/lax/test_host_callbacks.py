"""Calls of Python functions from programs: `pure_callback` and `io_callback`."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental import io_callback

X = np.arange(3, dtype=np.float32)
BATCH = np.arange(6, dtype=np.float32).reshape(2, 3)
LIKE_X = jax.ShapeDtypeStruct((3,), np.float32)
SCALAR = jax.ShapeDtypeStruct((), np.float32)


def double(x):
    return np.asarray(x) * 2


class Calls:
    """A callback that remembers the shapes that it was given."""

    def __init__(self, function):
        self.function = function
        self.shapes = []

    def __call__(self, *args):
        self.shapes.append(tuple(x.shape for x in args))
        return self.function(*args)


def on_rows(method, *more):
    """`x + sum(more)` for each row of BATCH, by a callback with the given vmap_method."""
    calls = Calls(lambda x, *more: np.asarray(x) + sum(np.asarray(y) for y in more))
    function = jax.vmap(lambda x: jax.pure_callback(calls, LIKE_X, x, *more, vmap_method=method))
    return np.asarray(function(BATCH)), calls.shapes


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, lambda f: jax.jit(jax.jit(f))])
def test_pure_callback_gives_what_the_function_returns(wrap):
    result = wrap(lambda x: jax.pure_callback(double, LIKE_X, x))(X)
    assert np.asarray(result).tolist() == [0.0, 2.0, 4.0]


def test_callbacks_get_arrays_in_the_trees_of_the_call():
    seen = []

    def callback(pair, *, scale):
        seen.append((isinstance(pair[0], jax.Array), pair[1]["x"].shape, float(scale)))
        return {"b": np.float32(1), "a": np.int32(2)}

    promise = {"a": jax.ShapeDtypeStruct((), np.int32), "b": SCALAR}
    out = jax.jit(lambda x: jax.pure_callback(callback, promise, (x, {"x": x}), scale=3.0))(X)
    assert seen == [(True, (3,), 3.0)]
    assert {key: float(value) for key, value in out.items()} == {"a": 2.0, "b": 1.0}


@pytest.mark.parametrize("size", [0, 1, 100_000])
def test_callbacks_keep_their_arguments_beyond_the_call(size):
    kept = []
    x = np.arange(size, dtype=np.float32)
    like = jax.ShapeDtypeStruct((), np.float32)
    function = jax.jit(
        lambda x: jax.pure_callback(lambda y: (kept.append(y), np.float32(0))[1], like, x + 1)
    )
    function(x).block_until_ready()
    function(x * 0).block_until_ready()
    assert np.array_equal(kept[0], x + 1)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "bfloat16", "complex64"])
def test_pure_callback_passes_every_dtype(dtype):
    x = jnp.array([0, 1, 2]).astype(dtype)
    out = jax.jit(lambda x: jax.pure_callback(lambda y: np.asarray(y), x, x))(x)
    assert (out.dtype, out.tolist()) == (x.dtype, x.tolist())


def test_pure_callback_sees_matrices_row_by_row():
    out = jax.jit(lambda x: jax.pure_callback(lambda y: np.asarray(y) * [1, 10, 100], x, x))(
        jnp.asarray(BATCH.T.copy()).T
    )
    assert np.array_equal(out, BATCH * [1, 10, 100])


def test_unused_pure_callback_is_not_called():
    calls = Calls(double)
    jax.jit(lambda x: (jax.pure_callback(calls, LIKE_X, x), x)[1])(X).block_until_ready()
    assert calls.shapes == []


def test_unused_io_callback_is_called():
    calls = Calls(double)
    jax.jit(lambda x: (io_callback(calls, LIKE_X, x), x)[1])(X).block_until_ready()
    jax.effects_barrier()
    assert calls.shapes == [((3,),)]


def test_random_keys_reach_callbacks_as_integers():
    key = jax.random.key(7)
    like = jax.ShapeDtypeStruct((2,), np.uint32)
    for wrap in (jax.jit, lambda f: f):
        out = wrap(lambda k: jax.pure_callback(lambda data: data, like, k))(key)
        assert out.tolist() == jax.random.key_data(key).tolist()


@pytest.mark.parametrize(
    ("method", "shapes"),
    [
        ("sequential", [((3,), (3,))] * 2),
        ("sequential_unrolled", [((3,), (3,))] * 2),
        ("expand_dims", [((2, 3), (1, 3))]),
        ("broadcast_all", [((2, 3), (2, 3))]),
        ("legacy_vectorized", [((2, 3), (3,))]),
    ],
)
def test_vmap_method_decides_what_the_callback_gets(method, shapes):
    out, seen = on_rows(method, jnp.ones(3))
    assert np.array_equal(out, BATCH + 1)
    assert seen == shapes


def test_pure_callback_refuses_vmap_by_default():
    with pytest.raises(NotImplementedError, match=r"vmap_method=None[\s\S]*'sequential'"):
        on_rows(None)


def test_pure_callback_of_unmapped_values_needs_no_method():
    function = jax.vmap(lambda x: x + jax.pure_callback(double, LIKE_X, jnp.ones(3)))
    assert np.array_equal(function(BATCH), BATCH + 2)


def test_pure_callback_refuses_unknown_methods():
    with pytest.raises(ValueError, match="unknown vmap_method 'faster'"):
        jax.pure_callback(double, LIKE_X, X, vmap_method="faster")


def test_io_callback_is_called_once_per_example():
    calls = Calls(double)
    assert np.array_equal(jax.vmap(lambda x: io_callback(calls, LIKE_X, x))(BATCH), BATCH * 2)
    assert calls.shapes == [((3,),)] * 2


def test_vmap_refuses_ordered_io_callbacks():
    with pytest.raises(ValueError, match="cannot order the calls of double"):
        jax.vmap(lambda x: io_callback(double, LIKE_X, x, ordered=True))(BATCH)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: jax.pure_callback(double, LIKE_X, x),
        lambda x: io_callback(double, LIKE_X, x),
    ],
)
def test_callbacks_have_no_derivative(call):
    with pytest.raises(ValueError, match=r"derivative of double[\s\S]*custom_jvp"):
        jax.jvp(call, (X,), (X,))


def test_pure_callback_is_not_transposed():
    with pytest.raises(ValueError, match="derivative of double"):
        jax.linear_transpose(lambda x: jax.pure_callback(double, LIKE_X, x), X)(X)


def test_callbacks_of_constants_stand_in_differentiated_functions():
    def loss(x):
        scale = jax.pure_callback(lambda: np.float32(3), SCALAR)
        return jnp.sum(x * scale)

    assert np.array_equal(jax.grad(loss)(X), [3, 3, 3])


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (np.zeros(4, np.float32), r"promised f32\[3\], returned f32\[4\]"),
        (np.zeros(3, np.int32), r"promised f32\[3\], returned i32\[3\]"),
        (1.0, r"promised f32\[3\], returned f32\[\]"),
        ((X, X), r"returned 2 array\(s\) in place of 1"),
        (None, r"returned 0 array\(s\) in place of 1"),
    ],
)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_callbacks_must_return_what_they_promise(wrap, result, text):
    def broken(x):
        return result

    with pytest.raises(RuntimeError, match=f"pure_callback: broken[\\s\\S]*{text}"):
        wrap(lambda x: jax.pure_callback(broken, LIKE_X, x))(X).block_until_ready()


@pytest.mark.parametrize("result", [[0.0], np.zeros(1), jnp.zeros(1), np.zeros((1, 2))[:, 0]])
def test_callbacks_may_return_whatever_numpy_understands(result):
    promise = [jax.ShapeDtypeStruct((), np.float32)] if type(result) is list else jnp.zeros(1)
    out = jax.jit(lambda: jax.pure_callback(lambda: result, promise))()
    assert np.asarray(out).tolist() == [0.0]


def test_promises_need_shape_and_dtype():
    with pytest.raises(AttributeError, match="without shape and dtype"):
        jax.pure_callback(double, 3, X)


def test_promises_of_64_bits_are_refused_while_disabled():
    with pytest.raises(ValueError, match="64-bit result"):
        jax.pure_callback(double, np.zeros(3), X)


def test_64_bit_results_pass_where_enabled():
    with jax.enable_x64(True):
        out = jax.jit(lambda: jax.pure_callback(lambda: np.float64(1e300), np.zeros(())))()
        assert (out.dtype, float(out)) == (np.float64, 1e300)


def test_arguments_of_callbacks_are_arrays():
    with pytest.raises(TypeError, match=r"args\[1\]"):
        jax.pure_callback(double, LIKE_X, X, "text")


def test_callbacks_are_callable():
    with pytest.raises(TypeError, match="pure_callback: expected a function"):
        jax.pure_callback(3, LIKE_X, X)


def test_callbacks_run_on_single_devices_only():
    with pytest.raises(NotImplementedError, match="sharding must be a single device's"):
        jax.pure_callback(double, LIKE_X, X, sharding="everywhere")


def test_jaxprs_name_the_callback():
    text = str(jax.make_jaxpr(lambda x: io_callback(double, LIKE_X, x, ordered=True))(X))
    assert "io_callback[\n      callback=double\n      ordered=True" in text


def test_callbacks_compute_with_arrays():
    out = jax.jit(lambda x: jax.pure_callback(lambda y: jnp.sin(y) + 1, LIKE_X, x))(X)
    np.testing.assert_allclose(out, np.sin(X) + 1, rtol=1e-6)


def test_pure_callback_runs_in_every_step_of_a_loop():
    def step(carry, x):
        carry = jax.pure_callback(lambda c, y: np.asarray(c) * 2 + np.asarray(y), SCALAR, carry, x)
        return carry, carry

    _, ys = jax.lax.scan(step, jnp.float32(1), jnp.arange(3.0))
    assert ys.tolist() == [2.0, 5.0, 12.0]


def test_checkpoint_repeats_no_io_callback():
    function = jax.checkpoint(lambda x: (io_callback(double, LIKE_X, X), jnp.sin(x))[1])
    with pytest.raises(NotImplementedError, match=r"effects \[IO\]"):
        jax.grad(function)(2.0)


def test_calls_of_programs_with_callbacks_stay_correct_when_repeated():
    state = []
    function = jax.jit(lambda x: io_callback(lambda y: state.append(float(y)), None, x))
    for i in range(3):
        function(float(i))
    jax.effects_barrier()
    assert state == [0.0, 1.0, 2.0]


@pytest.mark.feature("UX-03")
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
@pytest.mark.parametrize("callback", [jax.pure_callback, io_callback])
def test_functions_are_given_strong_types(callback, wrap):
    def look(*args):
        seen.extend((x.dtype.name, x.weak_type) for x in args)
        return np.float32(0)

    seen = []
    jax.block_until_ready(wrap(lambda x: callback(look, SCALAR, x, 3, 1.0))(2))
    assert seen == [("int32", False), ("int32", False), ("float32", False)]
