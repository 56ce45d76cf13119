"""What the equations of a jaxpr keep alive: little, since what is equal is kept once."""

import gc
import tracemalloc

import numpy as np
import pytest

import minijax as jax
from minijax import lax

pytestmark = pytest.mark.feature("CW-07")


def repeated(x):
    for _ in range(500):
        x = lax.mul(lax.sin(x), x)
    return x


def test_equations_of_one_line_come_from_one_traceback():
    eqns = jax.make_jaxpr(repeated)(np.ones(3)).eqns
    assert len({id(eqn.source_info) for eqn in eqns}) == 2
    assert len({id(eqn.source_info) for eqn in eqns if str(eqn.primitive) == "sin"}) == 1


def test_equations_on_one_line_of_different_operations_are_told_apart():
    eqns = jax.make_jaxpr(lambda x: lax.neg(x) + lax.exp(x))(1.0).eqns
    assert len({id(eqn.source_info) for eqn in eqns}) == 3


def test_parameters_of_what_has_none_cannot_be_changed():
    eqn = jax.make_jaxpr(lax.neg)(1.0).eqns[0]
    assert eqn.params == {}
    with pytest.raises(TypeError):
        eqn.params["accuracy"] = 1


def test_an_equation_keeps_less_than_400_bytes():
    jax.make_jaxpr(repeated)(np.ones(3))
    gc.collect()
    tracemalloc.start()
    try:
        closed = jax.make_jaxpr(lambda x: repeated(x))(np.ones(3))
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held / len(closed.eqns) < 400
