"""Discharging references, and control flow whose bodies mutate."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.core.check import check_jaxpr
from minijax.core.errors import MissingRule
from minijax.core.primitive import PRIMITIVES, Primitive
from minijax.core.refs import AbstractRef
from minijax.core.trace import current
from minijax.interpreters import discharge, staging


def primitives_in(jaxpr):
    """The names of all primitives of a jaxpr and of those inside it."""
    names = {eqn.primitive.name for eqn in jaxpr.eqns}
    for eqn in jaxpr.eqns:
        for value in eqn.params.values():
            for inner in value if isinstance(value, tuple) else (value,):
                names |= primitives_in(inner.jaxpr) if hasattr(inner, "jaxpr") else set()
    return names


_STATEFUL = {"new_ref", "freeze", "get", "swap", "addupdate"}


@pytest.mark.feature("ST-03")
def test_discharged_jaxpr_takes_and_returns_values():
    def f(a, b, x):
        a[0] = x
        return b[...] * 2.0

    closed = jax.make_jaxpr(f)(jax.new_ref(jnp.zeros(2)), jax.new_ref(3.0), 4.0)
    pure, finals = discharge.discharge_jaxpr(closed)
    assert finals == (0,)
    assert [a.str_short() for a in pure.in_avals] == ["f32[2]", "f32[]", "f32[]"]
    assert not pure.effects
    check_jaxpr(pure)
    outs = staging.eval_closed_jaxpr(pure, jnp.zeros(2), 3.0, 4.0)
    assert [np.asarray(x).tolist() for x in outs] == [6.0, [4.0, 0.0]]


def test_discharge_returns_the_final_values_asked_for():
    closed = jax.make_jaxpr(lambda a: a[0])(jax.new_ref(jnp.zeros(2)))
    pure, _ = discharge.discharge_jaxpr(closed, (0,))
    assert [a.str_short() for a in pure.out_avals] == ["f32[]", "f32[2]"]


def test_jaxpr_without_references_is_left_alone():
    closed = jax.make_jaxpr(lambda x: jax.jit(jnp.sin)(x))(1.0)
    assert discharge.without_references(closed) is closed


@pytest.mark.feature("ST-03")
def test_discharge_reaches_into_bodies():
    def f(x):
        def body(c, _):
            ref = jax.new_ref(c)
            lax.cond(c > 1.0, lambda: ref.__setitem__(..., ref[...] * 2.0), lambda: None)
            return jax.jit(lambda: ref[...] + 1.0)(), None

        return lax.scan(body, x, None, length=3)[0]

    closed = jax.make_jaxpr(f)(1.0)
    assert primitives_in(closed.jaxpr) >= {"new_ref", "get", "swap"}
    pure = discharge.without_references(closed)
    assert not primitives_in(pure.jaxpr) & _STATEFUL
    check_jaxpr(pure)
    assert float(staging.eval_closed_jaxpr(pure, 1.0)[0]) == float(f(1.0)) == 11.0


def test_discharge_names_the_primitive_without_a_rule():
    class Peek(Primitive):
        name = "peek_without_discharge"
        discharge = None

        def abstract_eval(self, ref):
            return ref.inner_aval

    peek = Peek()
    before = current.value
    current.set_local(discharge.DischargeTrace(before))
    try:
        with pytest.raises(MissingRule, match="peek_without_discharge"):
            peek.bind(jax.new_ref(1.0))
    finally:
        current.set_local(before)
        del PRIMITIVES["peek_without_discharge"]


def numpy_scan(a, xs):
    ys = []
    for x in xs:
        a[0] += x
        ys.append(a.sum())
    return ys


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_scan_mutates_what_its_body_closes_over(wrap):
    ref, expected = jax.new_ref(jnp.zeros(2)), np.zeros(2)
    xs = np.arange(4.0, dtype=np.float32)

    def run(xs):
        def body(c, x):
            ref[0] += x
            return c, ref[...].sum()

        return lax.scan(body, 0.0, xs)[1]

    for _ in range(2):
        assert wrap(run)(xs).tolist() == numpy_scan(expected, xs)
    assert ref[...].tolist() == expected.tolist()


def test_scan_over_a_reference_writes_its_slices():
    ref = jax.new_ref(jnp.arange(6.0).reshape(3, 2))

    def body(c, row):
        row[0] = c
        return c + row[1], None

    total, _ = lax.scan(body, 10.0, ref)
    assert float(total) == 19.0
    assert ref[...].tolist() == [[10.0, 1.0], [11.0, 3.0], [14.0, 5.0]]


def test_scan_carries_only_references_that_are_written():
    def f(a, b):
        lax.scan(lambda c, _: (c, a.__setitem__(..., a[...] + b[...])), 0.0, None, length=2)

    closed = jax.make_jaxpr(f)(jax.new_ref(1.0), jax.new_ref(2.0))
    pure = discharge.discharge_jaxpr(closed).closed
    (eqn,) = [eqn for eqn in pure.eqns if eqn.primitive.name == "scan"]
    assert eqn.params["num_carry"] == 1


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_while_condition_and_body_share_a_reference(wrap):
    ref = jax.new_ref(jnp.zeros(()))

    def run():
        def body(i):
            ref[...] += 1.0
            return i + 2

        return lax.while_loop(lambda i: ref[...] < 3.0, body, 0)

    assert int(wrap(run)()) == 6
    assert float(ref[...]) == 3.0


def test_while_condition_may_write():
    tests = jax.new_ref(0)

    def condition(i):
        tests[...] += 1
        return i < 3

    assert int(lax.while_loop(condition, lambda i: i + 1, 0)) == 3
    assert int(tests[...]) == 4


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_cond_writes_in_the_branch_taken(wrap):
    a, b = jax.new_ref(1.0), jax.new_ref(2.0)

    def run(p):
        lax.cond(p, lambda: a.__setitem__(..., b[...]), lambda: b.__setitem__(..., 9.0))

    for p in (True, False):
        wrap(run)(p)
    assert [float(a[...]), float(b[...])] == [2.0, 9.0]


def test_cond_takes_references_as_operands():
    ref = jax.new_ref(jnp.arange(3.0))
    out = lax.cond(True, lambda r: r[0] + 1.0, lambda r: r[1], ref)
    assert float(out) == 1.0


def looping(x):
    ref = jax.new_ref(jnp.zeros(3))

    def body(i, c):
        ref[i] += jnp.sin(x) * c
        return c * x

    last = lax.fori_loop(0, 3, body, 1.0)
    return jax.freeze(ref).sum() + last


def unrolled(x):
    return jnp.sin(x) * (1 + x + x * x) + x**3


_TRANSFORMATIONS = {
    "value": lambda f: f,
    "grad": jax.grad,
    "grad of jit": lambda f: jax.grad(jax.jit(f)),
    "second": lambda f: jax.grad(jax.grad(f)),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(f)),
    "forward over reverse": lambda f: lambda x: jax.jvp(jax.grad(f), (x,), (1.0,))[1],
    "vmap of grad": lambda f: lambda x: jax.vmap(jax.grad(f))(jnp.stack([x, 2 * x])),
    "grad of vmap": lambda f: jax.grad(lambda x: jax.vmap(f)(jnp.stack([x, 2 * x])).sum()),
}


@pytest.mark.feature("ST-01", "ST-03")
@pytest.mark.parametrize("name", _TRANSFORMATIONS)
def test_transformation_of_a_mutating_loop(name):
    transform = _TRANSFORMATIONS[name]
    np.testing.assert_allclose(transform(looping)(0.7), transform(unrolled)(0.7), rtol=1e-5)


def test_checkpoint_of_a_body_that_mutates_an_outer_reference():
    def f(x):
        ref = jax.new_ref(x)

        @jax.checkpoint
        def g(y):
            ref[...] = ref[...] * y
            return jnp.sin(y)

        return g(x) + ref[...]

    np.testing.assert_allclose(jax.grad(f)(0.7), np.cos(0.7) + 1.4, rtol=1e-6)


def test_vmap_of_a_predicate_mutates_where_it_holds():
    def f(p, x):
        ref = jax.new_ref(x)
        lax.cond(p, lambda: ref.__setitem__(..., ref[...] * 3.0), lambda: None)
        return ref[...]

    p, x = jnp.array([True, False]), jnp.array([3.0, 5.0])
    assert jax.vmap(f)(p, x).tolist() == [9.0, 5.0]
    assert jax.grad(lambda x: jax.vmap(f)(p, x).sum())(x).tolist() == [3.0, 1.0]


def test_vmap_of_a_condition_stops_each_example():
    def f(x, n):
        ref = jax.new_ref(0.0)

        def body(i):
            ref[...] += x
            return i + 1

        lax.while_loop(lambda i: i < n, body, 0)
        return ref[...]

    assert jax.vmap(f)(jnp.array([1.0, 2.0]), jnp.array([3, 5])).tolist() == [3.0, 10.0]


def test_forward_mode_through_a_loop_over_a_reference():
    def f(x):
        ref = jax.new_ref(1.0)

        def body(i):
            ref[...] = ref[...] * x
            return i + 1

        lax.while_loop(lambda i: i < 3, body, 0)
        return ref[...]

    out, dot = jax.jvp(f, (2.0,), (1.0,))
    assert [float(out), float(dot)] == [8.0, 12.0]


def test_slices_of_references_have_reference_types():
    closed = jax.make_jaxpr(lambda r: lax.scan(lambda c, row: (c, row[0]), 0.0, r)[1])(
        jax.new_ref(jnp.zeros((3, 2)))
    )
    (eqn,) = closed.eqns
    assert type(eqn.params["jaxpr"].in_avals[-1]) is AbstractRef
