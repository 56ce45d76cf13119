"""Keys: their bits, which are JAX's, and their life as arrays of an extended dtype."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import random
from tests.random import recorded, samples

pytestmark = pytest.mark.feature("NP-03")


def data(keys):
    return np.asarray(random.key_data(keys))


@pytest.fixture
def key():
    return random.key(samples.SEED)


@pytest.fixture
def keys(key):
    return random.split(key, (2, 3))


@pytest.mark.parametrize("name", samples.CALLS["keys"])
def test_figures_equal_those_of_jax(key, name):
    recorded.check(name, samples.CALLS["keys"][name](jax, key))


@pytest.mark.parametrize("name", samples.CALLS_X64["keys"])
def test_figures_equal_those_of_jax_with_64_bits(name):
    with jax.enable_x64(True):
        result = samples.CALLS_X64["keys"][name](jax, random.key(samples.SEED))
    recorded.check(name, result, x64=True)


@pytest.mark.parametrize("name", recorded.FIGURES["signatures"])
def test_signatures_equal_those_of_jax(name):
    parameters = inspect.signature(getattr(random, name)).parameters.values()
    actual = [[p.name, p.kind.name, repr(p.default)] for p in parameters]
    assert actual == recorded.FIGURES["signatures"][name]


@pytest.mark.parametrize("name", ["split 5", "split (2, 3)", "fold_in 7", "fold_in int64"])
def test_old_style_keys_have_the_same_figures(name):
    old = random.PRNGKey(samples.SEED)
    recorded.check(name, samples.CALLS["keys"][name](jax, old))


@pytest.mark.parametrize("name", ["split 5", "fold_in 7", "fold_in of fold_in"])
def test_jit_has_the_same_figures(key, name):
    jitted = jax.jit(lambda k: samples.CALLS["keys"][name](jax, k))
    recorded.check(name, jitted(key))


@pytest.mark.parametrize("seed", [3, -3, 2**31 - 1])
def test_traced_seed_gives_the_same_key(seed):
    np.testing.assert_array_equal(data(jax.jit(random.key)(seed)), data(random.key(seed)))


def test_results_follow_the_style_of_the_argument():
    new, old = random.key(0), random.PRNGKey(0)
    assert random.split(new).dtype == random.fold_in(new, 1).dtype == random.key_dtype()
    assert random.split(old).dtype == random.fold_in(old, 1).dtype == np.uint32
    assert random.clone(old).dtype == np.uint32


def test_key_dtype_is_a_prng_key_and_no_number(key):
    assert jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    assert jnp.issubdtype(key.dtype, jax.dtypes.extended)
    assert not jnp.issubdtype(key.dtype, jnp.number)
    assert str(key.dtype) == key.dtype.name == "key<fry>"


def test_key_impl_names_the_generator(key):
    assert random.key_impl(key) == random.key_impl(random.PRNGKey(0)) == "threefry2x32"


def test_wrap_key_data_inverts_key_data(keys):
    wrapped = random.wrap_key_data(random.key_data(keys))
    assert (wrapped.dtype, wrapped.shape) == (keys.dtype, keys.shape)
    np.testing.assert_array_equal(data(wrapped), data(keys))


def test_wrap_key_data_takes_numpy_arrays():
    bits = np.arange(6, dtype=np.uint32).reshape(3, 2)
    np.testing.assert_array_equal(data(random.wrap_key_data(bits)), bits)


def test_repr_shows_the_underlying_integers():
    assert repr(random.key(7)) == "Array((), dtype=key<fry>) overlaying:\n[0 7]"


def test_metadata_hides_the_physical_dimension(keys):
    assert (keys.shape, keys.ndim, keys.size, len(keys)) == ((2, 3), 2, 6, 2)
    assert str(jax.typeof(keys)) == "key<fry>[2,3]"


@pytest.mark.parametrize(
    "index",
    [
        0,
        -1,
        (1, 2),
        (slice(None), 1),
        (1, slice(None, None, 2)),
        (slice(None), None, 0),
        np.array([1, 0, 1]),
    ],
    ids=str,
)
def test_indexing_acts_as_on_the_data(keys, index):
    np.testing.assert_array_equal(data(keys[index]), data(keys)[index])


def test_iteration_yields_keys(keys):
    rows = [data(row) for row in keys]
    np.testing.assert_array_equal(np.stack(rows), data(keys))


def test_indexed_update_replaces_keys(keys, key):
    expected = data(keys).copy()
    expected[0] = data(key)
    np.testing.assert_array_equal(data(keys.at[0].set(key)), expected)


RESHAPED = {
    "reshape": (lambda k: k.reshape(3, 2), lambda d: d.reshape(3, 2, 2)),
    "ravel": (jnp.ravel, lambda d: d.reshape(6, 2)),
    "transpose": (lambda k: k.T, lambda d: d.transpose(1, 0, 2)),
    "expand_dims": (lambda k: jnp.expand_dims(k, 1), lambda d: d[:, None]),
    "squeeze": (lambda k: jnp.squeeze(k[:1]), lambda d: d[0]),
    "broadcast_to": (lambda k: jnp.broadcast_to(k, (4, 2, 3)), lambda d: np.stack([d] * 4)),
    "stack": (lambda k: jnp.stack([k, k], 1), lambda d: np.stack([d, d], 1)),
    "concatenate": (lambda k: jnp.concatenate([k, k], 1), lambda d: np.concatenate([d, d], 1)),
    "array": (lambda k: jnp.array([k[0], k[1]]), lambda d: d),
    "flip": (lambda k: jnp.flip(k, 0), lambda d: d[::-1]),
    "roll": (lambda k: jnp.roll(k, 1, 1), lambda d: np.roll(d, 1, 1)),
    "take": (lambda k: jnp.take(k, 1, axis=1), lambda d: d[:, 1]),
    "take out of range": (
        lambda k: jnp.take(k, 9, axis=0),
        lambda d: np.full_like(d[0], 2**32 - 1),
    ),
    "zeros_like": (jnp.zeros_like, np.zeros_like),
    "ones of a dtype": (lambda k: jnp.ones(2, k.dtype), lambda d: np.ones((2, 2), d.dtype)),
    "full of a number": (
        lambda k: jnp.full((2,), 7, k.dtype),
        lambda d: np.full((2, 2), 7, d.dtype),
    ),
    "full_like": (lambda k: jnp.full_like(k, k[0, 0]), lambda d: d[:1, :1] + 0 * d),
    "tril": (jnp.tril, lambda d: d * np.tri(2, 3, dtype=d.dtype)[:, :, None]),
    "where": (
        lambda k: jnp.where(np.array([True, False, True]), k, k[::-1]),
        lambda d: np.where(np.array([[True], [False], [True]]), d, d[::-1]),
    ),
}


@pytest.mark.parametrize("name", RESHAPED)
def test_shape_functions_act_as_on_the_data(keys, name):
    function, oracle = RESHAPED[name]
    np.testing.assert_array_equal(data(function(keys)), oracle(data(keys)))


@pytest.mark.parametrize("name", RESHAPED)
def test_jitted_shape_functions_act_as_on_the_data(keys, name):
    function, oracle = RESHAPED[name]
    np.testing.assert_array_equal(data(jax.jit(function)(keys)), oracle(data(keys)))


def test_keys_are_equal_where_all_their_words_are(keys, key):
    half = random.wrap_key_data(data(keys) * np.array([0, 1], np.uint32))
    others = jnp.stack([keys[0], half[1]])
    same = np.array([[True] * 3, [False] * 3])
    for call in (lambda f: f, jax.jit, jax.vmap):
        np.testing.assert_array_equal(call(lambda x, y: x == y)(keys, others), same)
        np.testing.assert_array_equal(call(lambda x, y: x != y)(keys, others), ~same)
    np.testing.assert_array_equal(keys == keys[0, 1], [[False, True, False], [False] * 3])
    assert str(jax.make_jaxpr(jnp.equal)(key, key)).count("eq") == 1
    assert jnp.array_equal(keys, keys)
    assert not jnp.array_equal(keys, others)


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda k: pickle.loads(pickle.dumps(k)), random.clone]
)
def test_copies_are_the_same_keys(keys, duplicate):
    again = duplicate(keys)
    assert again.dtype == keys.dtype
    np.testing.assert_array_equal(data(again), data(keys))


def test_keys_pass_through_jit(keys):
    inner = jax.jit(lambda tree: {"out": tree["in"], "row": tree["in"][1]})({"in": keys})
    np.testing.assert_array_equal(data(inner["out"]), data(keys))
    np.testing.assert_array_equal(data(inner["row"]), data(keys)[1])


def test_keys_are_constants_of_jit(key):
    assert data(jax.jit(lambda: random.fold_in(key, 1))()).tolist() == (
        data(random.fold_in(key, 1)).tolist()
    )


def test_eval_shape_describes_keys():
    out = jax.eval_shape(random.split, random.key(0))
    assert (out.shape, out.dtype) == ((2,), random.key_dtype())


def test_vmap_of_split_stacks_along_the_out_axis(keys):
    flat = keys.reshape(6)
    stacked = jax.vmap(lambda k: random.split(k, 2), out_axes=1)(flat)
    expected = np.stack([data(random.split(k, 2)) for k in flat], 1)
    np.testing.assert_array_equal(data(stacked), expected)


def test_vmap_maps_an_inner_axis_of_keys(keys):
    out = jax.vmap(lambda k: random.fold_in(k[0], 3), in_axes=1)(keys)
    expected = np.stack([data(random.fold_in(keys[0, i], 3)) for i in range(3)])
    np.testing.assert_array_equal(data(out), expected)


@pytest.mark.parametrize("in_axes", [(0, None), (None, 0), (0, 0)], ids=str)
def test_vmap_of_fold_in_maps_either_argument(keys, in_axes):
    row, numbers = keys[0], jnp.arange(3)
    args = [x if axis == 0 else x[1] for x, axis in zip((row, numbers), in_axes, strict=True)]
    out = jax.vmap(random.fold_in, in_axes)(*args)
    pairs = [
        [x[i] if axis == 0 else x for x, axis in zip(args, in_axes, strict=True)] for i in range(3)
    ]
    expected = np.stack([data(random.fold_in(k, n)) for k, n in pairs])
    np.testing.assert_array_equal(data(out), expected)


@pytest.mark.parametrize("make", [random.key, random.PRNGKey])
def test_vmap_makes_keys_of_many_seeds(make):
    out = jax.vmap(make)(jnp.arange(-1, 2))
    expected = np.stack([data(make(seed)) for seed in (-1, 0, 1)])
    np.testing.assert_array_equal(data(out), expected)


def test_nested_vmap_of_split_equals_a_loop(keys):
    out = jax.vmap(jax.vmap(random.split))(keys)
    assert out.shape == (2, 3, 2)
    np.testing.assert_array_equal(data(out[1, 2]), data(random.split(keys[1, 2])))


def test_grad_passes_keys_by(key):
    gradient = jax.grad(lambda x, k: x * random.normal(k))(2.0, key)
    assert gradient == random.normal(key)


def test_grad_by_a_key_is_refused(key):
    with pytest.raises(TypeError, match="key<fry>"):
        jax.grad(random.normal)(key)


def test_grad_by_a_key_is_empty_where_integers_are_allowed(key):
    assert jax.grad(random.normal, allow_int=True)(key).dtype == jax.dtypes.float0


def test_jaxpr_reads_as_that_of_jax(key):
    text = str(jax.make_jaxpr(lambda k: random.split(random.fold_in(k, 3), (2, 3)))(key))
    assert text == (
        "{ lambda ; a:key<fry>[]. let\n"
        "    b:key<fry>[] = random_fold_in a 3:u32[]\n"
        "    c:key<fry>[2,3] = random_split[shape=(2, 3)] b\n"
        "  in (c,) }"
    )


def test_jaxpr_of_old_style_keys_wraps_and_unwraps():
    jaxpr = jax.make_jaxpr(random.split)(random.PRNGKey(0))
    names = [eqn.primitive.name for eqn in jaxpr.eqns]
    assert names == ["random_wrap", "random_split", "random_unwrap"]


ERRORS = {
    "integer for key": (lambda k: random.normal(3), TypeError, "random.normal: .*not a random key"),
    "list for key": (lambda k: random.normal([0, 1]), TypeError, "not a random key"),
    "wrong size": (lambda k: random.split(jnp.zeros(3, "uint32")), TypeError, r"u32\[3\]"),
    "wrong dtype": (lambda k: random.split(jnp.zeros(2)), TypeError, r"f32\[2\]"),
    "many keys": (lambda k: random.normal(random.split(k)), ValueError, "minijax.vmap"),
    "many old keys": (
        lambda k: random.normal(random.split(random.PRNGKey(0))),
        ValueError,
        "needs one key",
    ),
    "split of many": (lambda k: random.split(random.split(k)), ValueError, "random.split"),
    "negative split": (lambda k: random.split(k, -1), TypeError, "must not be negative"),
    "fractional split": (lambda k: random.split(k, 2.5), TypeError, "concrete integers"),
    "fold_in of float": (lambda k: random.fold_in(k, 1.5), TypeError, "integer scalar"),
    "fold_in of vector": (lambda k: random.fold_in(k, jnp.arange(2)), TypeError, "integer scalar"),
    "fold_in of negative": (lambda k: random.fold_in(k, -1), OverflowError, "32 bits"),
    "fold_in of large": (lambda k: random.fold_in(k, 2**32), OverflowError, "32 bits"),
    "float seed": (lambda k: random.key(1.5), TypeError, "must be an integer"),
    "many seeds": (lambda k: random.key(jnp.arange(2)), TypeError, "vmap"),
    "key for seed": (random.key, TypeError, "in place of a seed"),
    "large seed": (lambda k: random.key(2**63), OverflowError, "64 bits"),
    "text seed": (lambda k: random.key("a"), TypeError, "not a valid type"),
    "unknown generator": (lambda k: random.key(0, impl="x"), ValueError, "'threefry2x32'"),
    "number for generator": (lambda k: random.key(0, impl=3), TypeError, "named by a string"),
    "generator twice": (
        lambda k: random.key(0, impl="threefry2x32", dtype=k.dtype),
        ValueError,
        "either",
    ),
    "unknown key dtype": (lambda k: random.key_dtype("x"), ValueError, "unknown"),
    "wrapped integers": (
        lambda k: random.wrap_key_data(jnp.zeros(2, "int32")),
        TypeError,
        r"u32\[\.\.\., 2\]",
    ),
    "numpy conversion": (np.asarray, TypeError, "random.key_data"),
    "addition": (lambda k: k + k, TypeError, "key<fry>"),
    "negation": (lambda k: -k, TypeError, "key<fry>"),
    "order": (lambda k: k < random.clone(k), TypeError, "key<fry>"),
    "conversion": (lambda k: k.astype("uint32"), ValueError, "key<fry>"),
    "truth": (bool, TypeError, "random.key_data"),
    "comparison with a number": (lambda k: k == 0, TypeError, "key<fry>"),
    "comparison with other keys": (
        lambda k: k == random.key(0, impl="rbg"),
        TypeError,
        "key<rbg>|key<fry>",
    ),
    "hash": (hash, TypeError, "unhashable"),
    "length": (len, TypeError, "no dimensions"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_misuse_is_refused(key, name):
    call, error, match = ERRORS[name]
    with pytest.raises(error, match=match):
        call(key)
