"""Laws of loops and branches over random bodies: every way to run one agrees with NumPy."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.core.check import check_jaxpr
from minijax.core.config import enable_x64
from tests.lax.control_flow import programs

LENGTHS = st.sampled_from([0, 1, 2, 5])
STEP = 1e-6
ALL_LOOPS = pytest.mark.parametrize(
    "loop",
    [programs.scanned, programs.for_loop, programs.while_loop],
    ids=["scan", "fori_loop", "while_loop"],
)


def assert_close(actual: Any, expected: Any, tolerance: float = 1e-5) -> None:
    """Compares trees of arrays."""
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for a, e in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, e, rtol=tolerance, atol=tolerance)


@pytest.mark.slow
@pytest.mark.feature("NP-02")
@given(programs.bodies(), LENGTHS)
def test_eager_scan_matches_a_loop_of_numpy(body, length):
    args = programs.inputs(body, length)
    assert_close(programs.scanned(body, *args), programs.python_loop(body, *args))


@pytest.mark.slow
@pytest.mark.feature("NP-02")
@given(programs.bodies(), LENGTHS, st.sampled_from([1, 2, 3, 7, True]))
def test_compiled_and_unrolled_scan_matches_a_loop_of_numpy(body, length, unroll):
    args = programs.inputs(body, length)
    compiled = jax.jit(functools.partial(programs.scanned, body, unroll=unroll))
    assert_close(compiled(*args), programs.python_loop(body, *args))


@pytest.mark.slow
@pytest.mark.feature("NP-02")
@given(programs.bodies(), LENGTHS)
def test_reversed_scan_is_the_scan_of_the_reversed(body, length):
    carry, xs, constant = programs.inputs(body, length)
    last, ys = programs.python_loop(body, carry, xs[::-1], constant)
    assert_close(programs.scanned(body, carry, xs, constant, reverse=True), (last, ys[::-1]))


@pytest.mark.slow
@pytest.mark.feature("NP-02")
@given(programs.bodies(), st.sampled_from([1, 4]))
def test_for_loop_matches_a_loop_of_numpy(body, length):
    args = programs.inputs(body, length)
    compiled = jax.jit(functools.partial(programs.for_loop, body))
    assert_close(compiled(*args), programs.python_loop(body, *args))


@pytest.mark.slow
@pytest.mark.feature("NP-02")
@given(programs.bodies(), st.sampled_from([1, 4]))
def test_while_loop_matches_a_loop_of_numpy(body, length):
    args = programs.inputs(body, length)
    compiled = jax.jit(functools.partial(programs.while_loop, body))
    assert_close(compiled(*args), programs.python_loop(body, *args))


@pytest.mark.slow
@given(programs.bodies())
def test_disabled_jit_matches_a_loop_of_numpy(body):
    args = programs.inputs(body, 2)
    with jax.disable_jit():
        actual = programs.scanned(body, *args)
    assert_close(actual, programs.python_loop(body, *args))


@pytest.mark.slow
@given(programs.bodies(), programs.bodies(), st.booleans())
def test_cond_in_a_scan_matches_a_loop_of_numpy(first, second, flip):
    if first.carry != second.carry:
        second = programs.Body(
            first.carry, second.steps, (*second.outputs, 0, 0)[: first.carry + 1]
        )
    carry, xs, constant = programs.inputs(first, 4)

    def step(xp: Any, carry: Any, x: Any, _: Any) -> Any:
        wanted = (x[0] > 0) ^ flip
        if xp is np:
            return (first if wanted else second)(np, carry, x, constant)
        return lax.cond(
            wanted,
            lambda carry, x: first(jnp, carry, x, constant),
            lambda carry, x: second(jnp, carry, x, constant),
            carry,
            x,
        )

    expected = programs.python_loop(step, carry, xs, constant)
    assert_close(jax.jit(functools.partial(programs.scanned, step))(carry, xs, constant), expected)


@pytest.mark.slow
@pytest.mark.feature("PE-01", "CR-13")
@given(programs.bodies(), LENGTHS)
def test_jaxpr_of_a_gradient_is_well_typed(body, length):
    args = programs.inputs(body, length)

    def loss(*args: Any) -> Any:
        return sum(x.sum() for x in jax.tree.leaves(programs.scanned(body, *args)))

    closed = jax.make_jaxpr(jax.grad(loss, argnums=(0, 1, 2)))(*args)
    check_jaxpr(closed)
    actual = jax.eval_jaxpr(closed.jaxpr, closed.consts, *jax.tree.leaves(args))
    expected = jax.tree.leaves(jax.jit(jax.grad(loss, argnums=(0, 1, 2)))(*args))
    assert_close(actual, expected)


def random_like(tree: Any, seed: int) -> Any:
    """Normally distributed arrays of the shapes in a tree, in 64 bits."""
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda x: rng.standard_normal(np.shape(x)), tree)


def difference(ahead: Any, behind: Any) -> Any:
    """The central difference of two trees."""
    return jax.tree.map(lambda a, b: (a - b) / (2 * STEP), ahead, behind)


def pairing(xs: Any, ys: Any) -> float:
    """The sum of products of two trees."""
    return sum(
        float(np.vdot(x, y)) for x, y in zip(jax.tree.leaves(xs), jax.tree.leaves(ys), strict=True)
    )


def moved(args: Any, tangents: Any, step: float) -> Any:
    """Arguments a step further along their tangents."""
    return jax.tree.map(lambda x, v: x + step * v, args, tangents)


@pytest.mark.slow
@pytest.mark.feature("AD-01")
@ALL_LOOPS
@given(body=programs.bodies())
def test_jvp_matches_finite_differences(loop, body):
    with enable_x64(True):
        args = programs.inputs(body, 3, dtype=np.float64)
        tangents = random_like(args, 1)
        function = functools.partial(loop, body)
        ahead, behind = (moved(args, tangents, step) for step in (STEP, -STEP))
        dots, after, before = jax.jit(
            lambda: (jax.jvp(function, args, tangents)[1], function(*ahead), function(*behind))
        )()
    assert_close(dots, difference(after, before), 1e-6)


@pytest.mark.slow
@pytest.mark.feature("AD-01")
@pytest.mark.parametrize("loop", [programs.scanned, programs.for_loop], ids=["scan", "fori_loop"])
@given(body=programs.bodies())
def test_vjp_is_adjoint_and_its_derivative_matches_finite_differences(loop, body):
    with enable_x64(True):
        args = programs.inputs(body, 3, dtype=np.float64)
        tangents = random_like(args, 1)
        function = functools.partial(loop, body)
        cts = random_like(jax.eval_shape(function, *args), 2)

        def forward(*args: Any) -> Any:
            return jax.jvp(function, args, tangents)[1]

        def gradient(*args: Any) -> Any:
            return jax.vjp(function, *args)[1](cts)

        ahead, behind = (moved(args, tangents, step) for step in (STEP, -STEP))
        dots, grads, forward_over_reverse, reverse_over_forward, after, before = jax.jit(
            lambda: (
                forward(*args),
                gradient(*args),
                jax.jvp(gradient, args, tangents)[1],
                jax.vjp(forward, *args)[1](cts),
                gradient(*ahead),
                gradient(*behind),
            )
        )()
    assert pairing(cts, dots) == pytest.approx(pairing(grads, tangents), rel=1e-9, abs=1e-9)
    assert_close(forward_over_reverse, difference(after, before), 1e-5)
    assert_close(reverse_over_forward, forward_over_reverse, 1e-8)


@pytest.mark.slow
@pytest.mark.feature("BT-01")
@ALL_LOOPS
@given(body=programs.bodies(), mapped=st.lists(st.booleans(), min_size=5, max_size=5))
def test_vmap_matches_stacking(loop, body, mapped):
    batch = [programs.inputs(body, 3, seed) for seed in range(2)]
    flags = iter([*mapped, True])
    axes = jax.tree.map(lambda _: 0 if next(flags) else None, batch[0])
    if not any(axis == 0 for axis in jax.tree.leaves(axes)):
        axes = (axes[0], 0, axes[2])
    function = jax.jit(functools.partial(loop, body))
    is_none = functools.partial(jax.tree.map, is_leaf=lambda x: x is None)
    stacked = is_none(lambda axis, *xs: xs[0] if axis is None else np.stack(xs), axes, *batch)
    examples = [
        is_none(lambda axis, first, own: first if axis is None else own, axes, batch[0], own)
        for own in batch
    ]
    expected = jax.tree.map(lambda *xs: np.stack(xs), *(function(*args) for args in examples))
    assert_close(jax.vmap(function, in_axes=axes)(*stacked), expected)


@pytest.mark.slow
@pytest.mark.feature("PE-02")
@given(programs.bodies(), st.lists(st.booleans(), min_size=5, max_size=5))
def test_linearized_scan_matches_its_jvp(body, moving):
    args = programs.inputs(body, 3)
    leaves, treedef = jax.tree.flatten(args)
    flags = moving[: len(leaves)]

    def function(*free: Any) -> Any:
        given = iter(free)
        full = [next(given) if m else x for x, m in zip(leaves, flags, strict=True)]
        return programs.scanned(body, *jax.tree.unflatten(treedef, full))

    free = [x for x, m in zip(leaves, flags, strict=True) if m]
    outs, linear = jax.linearize(function, *free)
    expected = jax.jvp(function, free, free) if free else (function(), None)
    assert_close(outs, expected[0])
    if free:
        assert_close(linear(*free), expected[1])
