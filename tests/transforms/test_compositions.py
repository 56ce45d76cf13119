"""Transformations of transformations: faults that only appear where several meet.

Each of these was found by running generated programs here and in JAX 0.10.2.
"""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.core.trace import current
from minijax.custom_batching import custom_vmap
from minijax.lowering import eager

VECTOR = np.array([1.0, 2.0, 3.0], np.float32)
STEPS = np.array([1, 2, 3])


def power(n: Any, y: Any) -> Any:
    """`y ** n`, by a loop whose condition does not read `y`."""
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * y), (0, 1.0))[1]


@pytest.mark.feature("BT-01", "NP-02")
def test_vmap_of_while_with_batched_condition_selects_along_the_inner_batch() -> None:
    def of_value(y: Any) -> Any:
        return jax.vmap(lambda n: power(n, y))(STEPS)

    expected = VECTOR[:, None] ** STEPS
    np.testing.assert_allclose(jax.vmap(of_value)(VECTOR), expected)
    np.testing.assert_allclose(jax.jit(jax.vmap(of_value))(VECTOR[:2]), expected[:2])


@pytest.mark.feature("BT-01", "NP-02")
def test_jacfwd_of_vmapped_while_is_diagonal() -> None:
    jacobian = jax.jacfwd(lambda y: jax.vmap(power)(STEPS, y))(VECTOR)
    np.testing.assert_allclose(jacobian, np.diag(STEPS * VECTOR ** (STEPS - 1)), rtol=1e-6)


def test_while_over_three_batches_agrees_with_numpy() -> None:
    scales = np.array([1.0, 0.5, 2.0], np.float32)

    def cube(z: Any) -> Any:
        return jax.vmap(lambda y: jax.vmap(lambda n: power(n, y * z))(STEPS))(VECTOR)

    expected = (VECTOR[None, :, None] * scales[:, None, None]) ** STEPS
    np.testing.assert_allclose(jax.vmap(cube)(scales), expected, rtol=1e-6)


@pytest.mark.feature("BT-01", "NP-02")
def test_batched_cond_leaves_constants_of_branches_unbatched() -> None:
    weights = jnp.ones((4, 3))

    def choose(pred: Any, x: Any) -> Any:
        return lax.cond(pred, lambda v: weights @ v, lambda v: -(weights @ v), x)

    jaxpr = jax.make_jaxpr(jax.vmap(choose))(np.ones(2, bool), np.ones((2, 3), np.float32))
    products = [e for e in jaxpr.jaxpr.eqns if str(e.primitive) == "dot_general"]
    assert {e.invars[0].aval.shape for e in products} == {(4, 3)}


def test_custom_vmap_in_a_batched_branch_may_hold_constants() -> None:
    scale = jnp.array([1.0, 2.0, 4.0])

    @custom_vmap
    def scaled(x: Any) -> Any:
        return (x * scale).sum()

    scaled.def_vmap(lambda size, batched, x: ((x[:, None] * scale).sum(1) + 100.0, True))
    found = jax.vmap(lambda x: lax.cond(x > 1.5, scaled, lambda v: v, x))(VECTOR)
    np.testing.assert_allclose(found, [1.0, 114.0, 121.0])


def test_while_returns_arrays_for_numbers_that_it_leaves_alone() -> None:
    _, kept = lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1]), (0, 5.0))
    assert isinstance(kept, jax.Array)
    assert kept.weak_type


@pytest.mark.parametrize(
    "derivative",
    [
        lambda x: jax.grad(lambda v: v)(x),
        lambda x: jax.jvp(lambda v: 3.0, (x,), (x,))[1],
        lambda x: jax.linearize(lambda v: 3.0, x)[1](x),
        lambda x: jax.vjp(lambda v: 3.0, x)[1](np.float32(1))[0],
        lambda x: jax.linear_transpose(lambda v: 3.0 * v, x)(x)[0],
    ],
    ids=["grad", "jvp", "linearize", "vjp", "linear_transpose"],
)
def test_derivatives_are_arrays_even_where_they_are_constants(
    derivative: Callable[[Any], Any],
) -> None:
    assert isinstance(derivative(jnp.float32(2)), jax.Array)


@pytest.mark.feature("ST-01")
def test_hessian_passes_through_references() -> None:
    def cubed(x: Any) -> Any:
        ref = jax.new_ref(x)
        ref[...] = ref[...] * x
        return (ref[...] * x).sum()

    np.testing.assert_allclose(jax.hessian(cubed)(VECTOR), np.diag(6 * VECTOR), rtol=1e-6)


def test_item_and_tolist_of_a_differentiated_python_number() -> None:
    assert jax.grad(lambda x: x * x.item())(3.0) == 3.0
    assert jax.grad(lambda x: x * x.tolist())(3.0) == 3.0


def test_differentiated_float_as_index_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        jax.grad(lambda x: [x, x][x])(1.0)


class Doubling:
    """A callable that cannot be referred to weakly."""

    __slots__ = ()

    def __call__(self, x: Any) -> Any:
        return 2 * x


def test_jit_takes_callables_without_weak_references() -> None:
    before = gc.get_threshold()
    gc.set_threshold(10)
    try:
        for _ in range(200):
            jax.jit(Doubling())
    finally:
        gc.set_threshold(*before)
    assert jax.jit(Doubling())(3.0) == 6.0


def test_threads_may_differentiate_one_jitted_batch_of_a_custom_rule() -> None:
    @jax.custom_jvp
    def wave(x: Any) -> Any:
        return jnp.sin(x)

    @wave.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        for _ in range(10):
            x = jnp.cos(x)
        return wave(*primals), t * x

    expected = VECTOR
    for _ in range(10):
        expected = np.cos(expected)
    found: list[Any] = []

    def work(batch: Any, barrier: threading.Barrier) -> None:
        barrier.wait()
        found.append(jax.grad(lambda x: batch(x).sum())(VECTOR))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(10):
            batch = jax.jit(jax.vmap(lambda x: wave(x)))
            batch(VECTOR)
            barrier = threading.Barrier(4)
            threads = [threading.Thread(target=work, args=(batch, barrier)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(before)
    assert len(found) == 40
    np.testing.assert_allclose(found, np.broadcast_to(expected, (40, 3)), rtol=1e-5)


class Owned:
    """What a user's function closes over."""


def released(use: Callable[[Owned], Any]) -> bool:
    """Whether an object dies after the functions that close over it have been used and dropped."""
    owned = Owned()
    reference = weakref.ref(owned)
    use(owned)
    del owned
    gc.collect()
    # jaxlib drops what a program called when the next one is run from Python.
    jax.jit(jnp.sin).lower(VECTOR).compile()(VECTOR)
    return reference() is None


def _in_scan(owned: Owned) -> None:
    def step(c: Any, x: Any) -> Any:
        assert owned is not None
        return jnp.sin(c) * x, c

    jax.jit(jax.vmap(jax.grad(lambda c: lax.scan(step, c, VECTOR)[0])))(VECTOR)


def _in_cond(owned: Owned) -> None:
    jax.jit(jax.grad(lambda x: lax.cond(x > 0, lambda v: (owned, v)[1], jnp.sin, x)))(1.0)


def _in_while(owned: Owned) -> None:
    jax.jit(lambda x: lax.while_loop(lambda s: (owned, s < 3)[1], lambda s: s + 1, x))(0)


def _in_custom_jvp(owned: Owned) -> None:
    function = jax.custom_jvp(lambda x: x)
    function.defjvp(lambda primals, tangents: (owned, primals[0], tangents[0])[1:])
    jax.jit(function)(1.0)
    jax.jit(jax.grad(function))(1.0)


def _in_custom_vjp(owned: Owned) -> None:
    function = jax.custom_vjp(lambda x: x)
    function.defvjp(lambda x: (x, None), lambda _, ct: ((owned, ct)[1],))
    jax.jit(function)(1.0)
    jax.jit(jax.vmap(jax.grad(function)))(VECTOR)


def _in_policy(owned: Owned) -> None:
    def nothing(*_: Any, **__: Any) -> bool:
        return owned is None

    jax.jit(jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)), policy=nothing)))(1.0)


def _in_callback(owned: Owned) -> None:
    def host(x: Any) -> Any:
        assert owned is not None
        return x

    shape = jax.ShapeDtypeStruct((), np.float32)
    jax.jit(lambda x: jax.pure_callback(host, shape, x))(np.float32(1)).block_until_ready()


@pytest.mark.usefixtures("young_heap")
@pytest.mark.parametrize(
    "use",
    [_in_scan, _in_cond, _in_while, _in_custom_jvp, _in_custom_vjp, _in_policy, _in_callback],
)
def test_what_a_function_closes_over_dies_with_it(use: Callable[[Owned], Any]) -> None:
    assert released(use)


@pytest.mark.usefixtures("young_heap")
def test_large_constant_dies_with_its_program() -> None:
    def run() -> Any:
        constant = jnp.ones(100_000) + 1
        jax.jit(lambda x: x + constant)(1.0).block_until_ready()
        return weakref.ref(constant)

    reference = run()
    gc.collect()
    assert reference() is None


def compilations(action: Callable[[], Any]) -> int:
    before = jax.cache_stats()["compile"].misses
    action()
    return jax.cache_stats()["compile"].misses - before


def test_program_with_a_new_custom_rule_shares_its_executable() -> None:
    def run() -> None:
        function = jax.custom_vjp(lambda x: x * 1.375)
        function.defvjp(lambda x: (x * 1.375, None), lambda _, ct: (ct,))
        jax.jit(lambda x: function(x))(VECTOR)

    run()
    assert compilations(run) == 0


def test_equal_functions_with_different_rules_keep_their_own_derivatives() -> None:
    def with_slope(slope: float) -> Any:
        function = jax.custom_jvp(lambda x: x * 1.625)
        function.defjvp(lambda p, t: (p[0] * 1.625, t[0] * slope))
        return jax.jit(lambda x: function(x))

    first, second = with_slope(2.0), with_slope(3.0)
    assert first(1.0) == second(1.0)
    assert (jax.grad(first)(1.0), jax.grad(second)(1.0)) == (2.0, 3.0)


def _raising(_: Any, __: Any = None) -> Any:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "use",
    [
        lambda: lax.scan(_raising, 0.0, VECTOR),
        lambda: jax.jit(jax.grad(lambda c: lax.scan(_raising, c, VECTOR)[0]))(1.0),
        lambda: jax.vmap(lambda c: lax.cond(c > 1, _raising, lambda v: v, c))(VECTOR),
        lambda: lax.while_loop(lambda s: s < 3, _raising, 0),
        lambda: jax.linearize(jax.jit(lambda c: lax.map(lambda x: _raising(x), VECTOR) + c), 1.0),
        lambda: jax.grad(jax.checkpoint(_raising))(1.0),
        lambda: jax.hessian(jax.checkpoint(lambda x: lax.fori_loop(0, 3, _raising, x)))(1.0),
    ],
)
def test_interrupt_inside_a_body_leaves_nothing_half_done(use: Callable[[], Any]) -> None:
    with pytest.raises(KeyboardInterrupt):
        use()
    assert current.value is eager.EAGER
    assert jax.grad(lambda c: lax.scan(lambda c, x: (c * x, c), c, VECTOR)[0])(1.0) == 6.0


@pytest.mark.turns(3)
@pytest.mark.slow
def test_derivatives_of_twenty_nested_bodies() -> None:
    def nested(depth: int) -> Callable[[Any], Any]:
        if depth == 0:
            return jnp.sin
        inner = nested(depth - 1)
        return (
            lambda c: lax.scan(lambda d, _: (inner(d), None), c, None, length=2)[0],
            lambda c: lax.cond(c > 0, inner, lambda d: d * 2, c),
            jax.jit(inner),
            jax.checkpoint(inner),
        )[depth % 4]

    def times_applied(x: float, count: int) -> float:
        for _ in range(count):
            x = float(np.sin(x))
        return x

    count = 2 ** sum(depth % 4 == 0 for depth in range(1, 21))
    function = nested(20)
    np.testing.assert_allclose(jax.jit(function)(1.0), times_applied(1.0, count), rtol=1e-5)
    step = 1e-3
    slope = (times_applied(1 + step, count) - times_applied(1 - step, count)) / (2 * step)
    np.testing.assert_allclose(jax.grad(function)(1.0), slope, rtol=1e-3)
    np.testing.assert_allclose(jax.jvp(function, (1.0,), (1.0,))[1], slope, rtol=1e-3)


@pytest.mark.feature("AD-01", "NP-02")
def test_third_derivative_of_scan_agrees_between_modes() -> None:
    def function(c: Any) -> Any:
        return lax.scan(lambda c, x: (jnp.sin(c) * x, None), c, VECTOR)[0]

    reverse = jax.grad(jax.grad(jax.grad(function)))(0.5)
    forward = jax.jacfwd(jax.jacfwd(jax.jacfwd(function)))(0.5)
    np.testing.assert_allclose(reverse, forward, rtol=1e-4)


def test_switch_in_scan_under_vmap_and_grad_agrees_with_python() -> None:
    functions = (jnp.sin, jnp.cos, lambda v: v * v)

    def function(x: Any, order: Any) -> Any:
        return lax.scan(lambda c, i: (lax.switch(i, functions, c), None), x, order)[0]

    orders = np.array([[0, 2], [1, 2], [2, 0]])
    found = jax.vmap(jax.grad(function))(VECTOR, orders)
    expected = [
        jax.grad(lambda x, pair=pair: functions[pair[1]](functions[pair[0]](x)))(value)
        for value, pair in zip(VECTOR, orders, strict=True)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_one_body_serves_two_outer_traces() -> None:
    def outer(y: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            return c * y, x

        eagerly = lax.scan(step, 1.0, VECTOR)[0]
        staged = jax.jit(lambda z: lax.scan(step, z, VECTOR)[0])(1.0)
        slope = jax.grad(lambda z: lax.scan(step, z, VECTOR)[0])(1.0)
        return eagerly + staged + slope

    np.testing.assert_allclose(jax.grad(jax.jit(outer))(2.0), 9 * 2.0**2, rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(outer)(VECTOR), 3 * VECTOR**3, rtol=1e-6)
