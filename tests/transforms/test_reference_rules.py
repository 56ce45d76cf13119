"""Rules of the user's for derivatives, and gradients themselves, that change references."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.sharding import PartitionSpec as P


@jax.custom_vjp
def counted(x, count):
    """Twice x; its gradient is called 3."""
    count[...] += x
    return x * 2


def _counted_forward(x, count):
    count[...] += x
    return x * 2, None


counted.defvjp(_counted_forward, lambda _, ct: (ct * 3, None))


@jax.custom_vjp
def spied(x, total):
    """x, whose cotangents are added to `total`."""
    return x


def _spied_backward(total, ct):
    total[...] += ct
    return ct, None


spied.defvjp(lambda x, total: (x, total), _spied_backward)


def zero():
    return jax.new_ref(jnp.float32(0))


def _looped(f):
    return lambda x, ref: lax.fori_loop(0, 1, lambda i, c: f(c, ref), x)


def _scanned(f):
    return lambda x, ref: lax.scan(lambda c, _: (f(c, ref), None), x, None, length=1)[0]


_PLACES = {
    "jit": jax.jit,
    "jit of jit": lambda f: jax.jit(jax.jit(f)),
    "closed over by jit": lambda f: lambda x, ref: jax.jit(lambda x: f(x, ref))(x),
    "checkpoint": jax.checkpoint,
    "cond": lambda f: lambda x, ref: lax.cond(x > 0, f, lambda x, ref: x, x, ref),
    "fori_loop": _looped,
    "scan": _scanned,
}

_AROUND = {"eager": lambda f: f, "jit": jax.jit}


@pytest.mark.feature("UX-06")
@pytest.mark.parametrize("around", _AROUND)
@pytest.mark.parametrize("place", _PLACES)
def test_function_with_rules_changes_references(place, around):
    count = zero()
    out = _AROUND[around](_PLACES[place](counted))(1.5, count)
    assert (float(out), float(count[...])) == (3.0, 1.5)


@pytest.mark.feature("UX-06")
@pytest.mark.parametrize("around", _AROUND)
@pytest.mark.parametrize("place", _PLACES)
def test_rules_that_change_references_give_the_gradient(place, around):
    count = zero()
    f = _PLACES[place](counted)
    found = _AROUND[around](lambda x, ref: jax.grad(lambda x: f(x, ref))(x))(1.5, count)
    assert float(found) == 3.0
    # `checkpoint` computes again what it needs, and changes nothing twice.
    assert float(count[...]) == 1.5


@pytest.mark.feature("UX-06")
@pytest.mark.parametrize("around", _AROUND)
@pytest.mark.parametrize("place", ["jit", "jit of jit", "closed over by jit"])
def test_reference_is_saved_for_the_backward_rule(place, around):
    total = zero()
    f = _PLACES[place](lambda x, ref: jnp.sin(spied(x * 2, ref)))
    found = _AROUND[around](lambda x, ref: jax.grad(lambda x: f(x, ref))(x))(1.5, total)
    np.testing.assert_allclose(found, 2 * np.cos(3.0), rtol=1e-6)
    np.testing.assert_allclose(total[...], np.cos(3.0), rtol=1e-6)


@pytest.mark.parametrize("place", ["checkpoint", "cond", "scan"])
def test_reference_saved_out_of_control_flow_is_refused(place):
    f = _PLACES[place](spied)
    with pytest.raises(NotImplementedError, match="and save none"):
        jax.grad(lambda x, ref: f(x, ref))(1.5, zero())


def test_rules_that_close_over_a_reference_change_it():
    count = zero()

    @jax.custom_vjp
    def f(x):
        count[...] += x
        return x * 2

    f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct * 3,))
    assert [float(g(1.0)) for g in (f, jax.jit(f), jax.grad(jax.jit(f)))] == [2.0, 2.0, 3.0]
    assert float(count[...]) == 3.0
    with pytest.raises(NotImplementedError, match="that it is given"):
        jax.grad(lambda x: lax.cond(x > 0, f, f, x))(1.0)


def test_what_rules_write_has_no_derivative():
    def of_both(x):
        ref = jax.new_ref(x)
        out = counted(2 * x, ref)
        return out + 10 * ref[...]

    for f in (of_both, jax.jit(of_both)):
        assert float(jax.grad(f)(1.5)) == 6.0 + 10.0
    assert float(jax.grad(lambda x: counted(2.0, r := jax.new_ref(x)) + r[...])(1.5)) == 1.0


@pytest.mark.parametrize("place", ["plain", *_PLACES])
def test_rules_that_change_references_are_batched(place):
    x, count = jnp.arange(1.0, 4.0), jax.new_ref(jnp.zeros(3))
    f = counted if place == "plain" else _PLACES[place](counted)

    assert jax.grad(lambda x: jax.vmap(f)(x, count).sum())(x).tolist() == [3.0, 3.0, 3.0]
    assert jax.vmap(f)(x, count).tolist() == [2.0, 4.0, 6.0]
    assert jax.vmap(jax.grad(f))(x, count).tolist() == [3.0, 3.0, 3.0]
    assert count[...].tolist() == [3.0, 6.0, 9.0]


@pytest.mark.feature("UX-06")
def test_backward_rule_that_closes_over_a_reference_is_refused_in_loops():
    count = zero()
    f = jax.custom_vjp(lambda x: x * 2)

    def backward(_, ct):
        count[...] += ct
        return (ct * 2,)

    f.defvjp(lambda x: (f(x), None), backward)
    assert float(jax.grad(jax.jit(f))(1.0)) == 2.0
    assert float(count[...]) == 1.0
    with pytest.raises(
        NotImplementedError, match="no rule of custom_vjp can close over a reference"
    ):
        jax.grad(lambda x: lax.fori_loop(0, 2, lambda _, y: f(y), x))(1.0)


@pytest.mark.parametrize("place", ["plain", *_PLACES])
def test_forward_rule_that_writes_more_than_the_function_is_not_ignored(place):
    seen = zero()

    def forward(x, ref):
        ref[...] = x
        return x * 2, None

    observed = jax.custom_vjp(lambda x, ref: x * 2)
    observed.defvjp(forward, lambda _, ct: (ct * 3, None))
    f = observed if place == "plain" else _PLACES[place](observed)
    if place in ("checkpoint", "cond", "fori_loop", "scan"):
        with pytest.raises(NotImplementedError, match="write those that the function writes"):
            jax.grad(lambda x: f(x, seen))(1.5)
    else:
        assert float(jax.grad(lambda x: f(x, seen))(1.5)) == 3.0
        assert float(seen[...]) == 1.5


def test_rules_that_change_references_run_per_device():
    with jax.cpu_devices(2):
        mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        f = jax.shard_map(counted, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
        count = jax.new_ref(jnp.zeros(4))
        assert jax.jit(f)(jnp.arange(4.0), count).tolist() == [0.0, 2.0, 4.0, 6.0]
        assert count[...].tolist() == [0.0, 1.0, 2.0, 3.0]


def pulled_back():
    primals = {"w": jnp.arange(3.0)}, jnp.ones(3)
    return jax.vjp(lambda d, x: (d["w"] * x * x).sum(), *primals)[1]


@pytest.mark.feature("UX-06")
def test_gradients_are_added_to_references():
    sums, whole = jax.new_ref(jnp.ones(3)), jax.new_ref(jnp.zeros(5))

    @jax.jit
    def step(sums, whole):
        return pulled_back().with_refs({"w": sums}, whole.at[1:4])(1.0) and None

    pull_back = pulled_back().with_refs({"w": sums}, True)
    dropped, kept = pull_back(2.0)
    step(sums, whole)

    assert repr(dropped) == "{'w': GradRef()}"
    assert kept.tolist() == [0.0, 4.0, 8.0]
    assert sums[...].tolist() == [4.0, 4.0, 4.0]
    assert whole[...].tolist() == [0.0, 0.0, 2.0, 4.0, 0.0]
    assert pulled_back().with_refs()(1.0)[1].tolist() == [0.0, 2.0, 4.0]


def test_gradient_of_an_integer_is_not_added():
    steps = jax.new_ref(jnp.int32(7))
    _, pull_back = jax.vjp(lambda x, n: x * n, 3.0, 2)
    assert float(pull_back.with_refs(True, steps)(1.0)[0]) == 2.0
    assert int(steps[...]) == 7


@pytest.mark.parametrize(
    ("wanted", "match"),
    [
        (lambda ref: (ref, ref), "with_refs: the arguments have another tree"),
        (lambda ref: ({"w": ref}, jax.new_ref(jnp.ones(4))), "another shape"),
        (lambda ref: ({"w": ref}, jax.new_ref(jnp.ones(3, "bfloat16"))), "another dtype"),
    ],
    ids=["tree", "shape", "dtype"],
)
def test_gradients_fit_to_their_references(wanted, match):
    with pytest.raises(ValueError, match=match):
        pulled_back().with_refs(*wanted(jax.new_ref(jnp.ones(3))))(1.0)
