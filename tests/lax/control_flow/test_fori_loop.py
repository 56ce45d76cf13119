"""`lax.fori_loop`: bounds, the index, unrolling, both modes of derivatives, and refusals."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax

X = np.linspace(0.5, 1.5, 4, dtype=np.float32)


def total(lower, upper):
    return lax.fori_loop(lower, upper, lambda i, c: c + i, 0)


def loops(closed):
    """The primitives at the top of a jaxpr that are loops."""
    names = [str(eqn.primitive) for eqn in closed.jaxpr.eqns]
    return [name for name in names if name in ("scan", "while")]


@pytest.mark.feature("NP-02")
@pytest.mark.parametrize(("lower", "upper"), [(0, 4), (2, 5), (-3, 2), (3, 3), (5, 3)])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["known", "traced"])
def test_fori_loop_counts_as_range_does(lower, upper, wrap):
    assert wrap(total)(lower, upper) == sum(range(lower, upper))


@pytest.mark.parametrize(
    ("lower", "upper"),
    [(0, 3), (np.int8(0), np.int8(3)), (np.int32(0), 3), (0.0, 3.0), (np.array(0), np.array(3))],
)
def test_index_of_a_loop_with_known_bounds_is_a_weak_integer(lower, upper):
    seen = []
    lax.fori_loop(lower, upper, lambda i, c: seen.append(jax.typeof(i)) or c, X)
    assert {(aval.dtype.name, aval.weak_type) for aval in seen} == {("int32", True)}


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        (0, 3, ("int32", True)),
        (0, np.int32(3), ("int32", True)),
        (np.int32(0), 3, ("int32", False)),
        (0, np.int8(3), ("int8", False)),
        (np.int8(0), np.int8(3), ("int8", False)),
    ],
)
def test_index_of_a_loop_with_traced_bounds_has_their_type(lower, upper, expected):
    seen = []

    def function(upper):
        return lax.fori_loop(lower, upper, lambda i, c: seen.append(jax.typeof(i)) or c, X)

    jax.jit(function)(upper)
    assert {(aval.dtype.name, aval.weak_type) for aval in seen} == {expected}


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bfloat16", "complex64"])
def test_index_takes_the_dtype_of_the_carry_that_it_is_added_to(dtype):
    out = lax.fori_loop(0, 4, lambda i, c: c + i, jnp.zeros((), dtype))
    assert (out.dtype, complex(out)) == (dtype, 6)


def test_weak_carry_stays_weak():
    assert jax.typeof(total(0, 3)).weak_type


def test_known_bounds_make_a_scan_and_traced_ones_a_while_loop():
    known = jax.make_jaxpr(lambda x: lax.fori_loop(0, 3, lambda i, c: c * i, x))(X)
    traced = jax.make_jaxpr(lambda x, n: lax.fori_loop(0, n, lambda i, c: c * i, x))(X, 3)
    assert (loops(known), loops(traced)) == (["scan"], ["while"])


def test_traced_upper_bound_is_no_part_of_the_carry():
    closed = jax.make_jaxpr(lambda n: lax.fori_loop(0, n, lambda i, c: c + i, 0))(3)
    (loop,) = closed.jaxpr.eqns
    assert len(loop.outvars) == 2


@pytest.mark.parametrize("unroll", [None, False, 0, 1, 2, 3, 9, True])
def test_unrolled_loop_gives_the_same(unroll):
    out = jax.jit(lambda x: lax.fori_loop(0, 5, lambda i, c: c * x + i, x, unroll=unroll))(X)
    np.testing.assert_allclose(out, lax.fori_loop(0, 5, lambda i, c: c * X + i, X), rtol=1e-6)


def test_fully_unrolled_loop_has_no_loop():
    function = lambda x: lax.fori_loop(0, 3, lambda i, c: c * x, x, unroll=True)
    assert "while" not in jax.jit(function).lower(X).as_text()


@pytest.mark.parametrize("unroll", [None, False, 1, True])
def test_traced_bounds_allow_no_unrolling_at_all(unroll):
    function = jax.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c + i, 0, unroll=unroll))
    assert function(4) == 6


@pytest.mark.parametrize("unroll", [0, 2, -1])
def test_unroll_with_traced_bounds_is_refused(unroll):
    function = jax.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c + i, 0, unroll=unroll))
    with pytest.raises(ValueError, match=r"bounds known at staging[\s\S]*Python ints"):
        function(4)


@pytest.mark.feature("AD-01")
def test_known_bounds_have_reverse_mode():
    gradient = jax.grad(lambda x: lax.fori_loop(0, 3, lambda i, c: c * x, x))(2.0)
    assert gradient == 32.0


@pytest.mark.feature("AD-01")
def test_traced_bounds_have_forward_mode():
    power = jax.jit(lambda x, n: lax.fori_loop(0, n, lambda i, c: c * x, x))
    assert jax.jvp(lambda x: power(x, 3), (2.0,), (1.0,)) == (16.0, 32.0)


def test_traced_bounds_have_no_reverse_mode():
    function = jax.jit(lambda x, n: lax.fori_loop(0, n, lambda i, c: c * x, x))
    with pytest.raises(ValueError, match="reverse-mode"):
        jax.grad(function)(2.0, 3)


def test_bounds_known_under_grad_and_vmap_stay_known():
    function = jax.vmap(jax.grad(lambda x: lax.fori_loop(0, 3, lambda i, c: c * x, x)))
    np.testing.assert_allclose(function(X), 4 * X**3, rtol=1e-6)


@pytest.mark.feature("BT-01")
def test_batched_bounds_stop_each_example_by_itself():
    ends = np.int32([3, 0, 5])
    np.testing.assert_array_equal(jax.vmap(lambda n: total(0, n))(ends), [3, 0, 10])


def test_body_is_staged_once_for_known_bounds_of_any_size():
    calls = []

    def body(i, c):
        calls.append(i)
        return c + i

    for n in (2, 5, 1000):
        lax.fori_loop(0, n, body, 0)
    assert len(calls) == 1


def test_disabled_jit_runs_the_body_in_python():
    seen = []

    def body(i, c):
        seen.append((int(i), jax.typeof(i).weak_type, i.shape))
        return c + i

    with jax.disable_jit():
        out = lax.fori_loop(2, 4, body, 0)
    assert (int(out), seen) == (5, [(2, True, ()), (3, True, ())])


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["known", "traced"])
def test_disagreeing_types_name_the_users_leaf(wrap):
    def body(i, c):
        return {"a": c["a"].astype(jnp.int32)}

    with pytest.raises(TypeError, match=r"lax.fori_loop: body_fun returns a carry") as caught:
        wrap(lambda n: lax.fori_loop(0, n, body, {"a": X}))(3)
    text = str(caught.value)
    assert "init_val['a']: f32[4]   returned: i32[4]" in text
    assert f"test_fori_loop.py:{body.__code__.co_firstlineno + 1} in" in text
    assert f"{body.__name__} at" in text


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["known", "traced"])
def test_disagreeing_structures_name_the_users_tree(wrap):
    with pytest.raises(TypeError, match=r"init_val: leaf   returned: tuple of length 2"):
        wrap(lambda n: lax.fori_loop(0, n, lambda i, c: (c, c), X))(3)


@pytest.mark.parametrize(
    ("lower", "upper", "match"),
    [
        (0, X, "upper must be an integer scalar"),
        (1j, 3, "lower must be an integer scalar"),
        (True, 3, "lower must be an integer scalar"),
        (0, 3.5, "must have one dtype"),
        (np.int32(0), np.int8(3), "must have one dtype"),
        ("a", 3, "not a valid type"),
    ],
)
def test_other_bounds_are_refused(lower, upper, match):
    with pytest.raises(TypeError, match=match):
        total(lower, upper)


def test_negative_unroll_is_refused():
    with pytest.raises(ValueError, match=r"lax.fori_loop: unroll must be a boolean, or an integer"):
        lax.fori_loop(0, 3, lambda i, c: c, X, unroll=-1)


def test_what_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match=r"lax.fori_loop: expected a function"):
        lax.fori_loop(0, 3, 5, X)
