"""run_state: functions of references as functions of arrays."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.ref import run_state


def accumulate(refs):
    refs["a"][...] += refs["b"][0]
    refs["b"][1] = refs["a"][...]


_STATE = {"a": 2.0, "b": np.array([1.0, 2.0], np.float32)}


def floats(tree):
    return jax.tree.map(lambda x: np.asarray(x).tolist(), tree)


@pytest.mark.feature("ST-02")
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_run_state_returns_the_last_values(wrap):
    assert floats(wrap(run_state(accumulate))(_STATE)) == {"a": 3.0, "b": [1.0, 3.0]}


@pytest.mark.feature("ST-02")
def test_run_state_is_differentiated():
    f = run_state(accumulate)
    _, dots = jax.jvp(f, (_STATE,), (_STATE,))
    assert floats(dots) == {"a": 3.0, "b": [1.0, 3.0]}
    grads = jax.grad(lambda state: f(state)["b"].sum())(_STATE)
    assert floats(grads) == {"a": 1.0, "b": [2.0, 0.0]}


def test_run_state_is_batched():
    state = {"a": jnp.array([1.0, 2.0]), "b": jnp.ones((2, 2))}
    out = jax.vmap(run_state(accumulate))(state)
    assert floats(out) == {"a": [2.0, 3.0], "b": [[1.0, 2.0], [1.0, 3.0]]}


def test_run_state_nests_and_sees_outer_references():
    def outer(ref):
        def inner(scratch):
            scratch[...] = scratch[...] * 3.0
            ref[...] = scratch[...]

        run_state(inner)(ref[...] + 1.0)

    assert float(jax.jit(run_state(outer))(1.0)) == 6.0


def test_run_state_passes_references_on():
    ref = jax.new_ref(1.0)
    assert float(run_state(lambda r: r.__setitem__(..., 5.0))(ref)) == 5.0
    assert float(ref[...]) == 5.0


def test_run_state_over_a_loop_is_differentiated():
    def horner(refs):
        x, out = refs

        def body(i, _):
            out[...] = out[...] * x[...] + 1.0

        lax.fori_loop(0, 3, body, None)

    f = lambda x: run_state(horner)((x, 0.0))[1]
    assert float(f(2.0)) == 7.0
    assert float(jax.grad(f)(2.0)) == 5.0
    assert float(jax.grad(jax.grad(f))(2.0)) == 2.0


@pytest.mark.feature("ST-10")
def test_run_state_refuses_results():
    with pytest.raises(ValueError, match=r"must return None(.|\n)*one of the references"):
        run_state(lambda ref: ref[...])(1.0)


@pytest.mark.feature("ST-10")
def test_reference_of_run_state_is_dead_afterwards():
    kept = []
    run_state(kept.append)(1.0)
    with pytest.raises(ValueError, match="was frozen"):
        kept[0][...]


def test_run_state_needs_a_function():
    with pytest.raises(TypeError, match="expected a function"):
        run_state(1.0)
