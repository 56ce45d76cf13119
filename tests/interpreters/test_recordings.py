"""A library function that was staged before adds the same equations without running again."""

from __future__ import annotations

import numpy as np
import pytest

import minijax
from minijax import numpy as jnp
from minijax.core import source
from minijax.interpreters import recordings
from minijax.numpy.promotion import one_program

X = np.float32([3.0, 1.0, 2.0])
runs = []


@one_program(static=("power",))
def counted(x, y, power=2):
    """A library function that says when it runs."""
    runs.append(power)
    return x * power + y, y


@pytest.fixture(autouse=True)
def nothing_recorded():
    minijax.clear_caches()
    runs.clear()


def test_second_call_of_a_kind_does_not_run_the_function() -> None:
    jaxpr = minijax.make_jaxpr(lambda x, y: (counted(x, y), counted(y, x)))(X, X)
    assert runs == [2]
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["mul", "add", "mul", "add"]


def test_recorded_calls_compute_what_running_computes() -> None:
    def function(x, y):
        first, same = counted(x, y)
        return counted(first, same, power=3), jnp.percentile(x, 30), jnp.percentile(y, 30)

    expected = 3 * (2 * X + 1) + 1, 1
    for _ in range(2):
        (a, b), low, one = minijax.jit(lambda x, y: function(x, y))(X, np.ones(3, np.float32))
        np.testing.assert_array_equal(a, expected[0])
        np.testing.assert_array_equal(b, np.ones(3))
        assert (low, one) == (np.float32(np.percentile(X, 30)), 1)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda x: counted(x, x), lambda x: counted(x, x + 1)),
        (lambda x: counted(x, 0.0), lambda x: counted(x, -0.0)),
        (lambda x: counted(x, 1), lambda x: counted(x, True)),
        (lambda x: counted(x, 1), lambda x: counted(x, 1.0)),
        (lambda x: counted(x, x), lambda x: counted(x, x, power=2)),
        (lambda x: counted(x, x), lambda x: counted(x[:2], x[:2])),
        (lambda x: counted(x, X), lambda x: counted(x, X)),
    ],
)
def test_what_a_call_may_know_tells_recordings_apart(first, second) -> None:
    minijax.make_jaxpr(lambda x: (first(x), second(x)))(X)
    assert len(runs) == 2


def test_configuration_tells_recordings_apart() -> None:
    minijax.make_jaxpr(lambda x: jnp.cumsum(x, dtype=float))(X)
    with minijax.enable_x64(True):
        wide = minijax.make_jaxpr(lambda x: jnp.cumsum(x, dtype=float))(X)
    assert wide.out_avals[0].dtype == np.float64


def test_constants_of_a_recording_go_along() -> None:
    table = np.arange(3, dtype=np.float32)

    @one_program()
    def added(x):
        runs.append(0)
        return x + table

    twice = minijax.jit(lambda x: added(added(x)))
    np.testing.assert_array_equal(twice(X), X + 2 * table)
    assert runs == [0]


def test_copied_equations_have_the_line_of_their_own_call() -> None:
    def function(x):
        one = jnp.hypot(x, x)
        other = jnp.hypot(x, x)
        return one, other

    jaxpr = minijax.make_jaxpr(function)(X)
    lines = [source.user_frame(eqn.source_info).line for eqn in jaxpr.eqns]
    start = function.__code__.co_firstlineno
    half = len(lines) // 2
    assert lines == [start + 1] * half + [start + 2] * half


def test_copied_equations_have_the_scope_of_their_own_call() -> None:
    def function(x, y):
        with minijax.named_scope("first"):
            one = counted(x, y)
        with minijax.named_scope("second"):
            return one, counted(x, y)

    jaxpr = minijax.make_jaxpr(function)(X, X)
    assert [eqn.scope for eqn in jaxpr.eqns] == [("first",)] * 2 + [("second",)] * 2


def test_gradients_and_batches_of_recorded_calls() -> None:
    loss = minijax.jit(lambda x, y: (counted(x, y)[0] * counted(y, x)[0]).sum())
    np.testing.assert_allclose(
        minijax.grad(loss)(X, X + 1), 2 * (2 * (X + 1) + X) + (2 * X + X + 1), rtol=1e-6
    )
    assert minijax.vmap(loss)(X[:, None], X[:, None]).shape == (3,)


def test_recordings_are_forgotten_when_there_are_many(monkeypatch) -> None:
    monkeypatch.setattr(recordings, "MOST", 2)
    for n in range(1, 6):
        minijax.make_jaxpr(lambda x: jnp.cumsum(x))(np.zeros(n))
    assert 0 < len(recordings._recordings) <= 2
