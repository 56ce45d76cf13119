"""Five hundred random correct programs: `checked` says nothing about any of them.

Programs are chains of operations on a vector of numbers between -3 and 3, under transformations.
Each is correct for all such numbers, if often only because it guards what it does.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minijax as jax
from minijax import lax
from minijax import numpy as jnp

pytestmark = pytest.mark.feature("LG-10")

SIZE = 4
Step = Callable[[Any], Any]


@jax.custom_jvp
def guarded_root(v: Any) -> Any:
    return jnp.sqrt(jnp.abs(v))


@guarded_root.defjvp
def _tangent(primals: Any, tangents: Any) -> Any:
    root = guarded_root(primals[0])
    return root, tangents[0] / (2 * root + 1)


def positions(v: Any) -> Any:
    return jnp.clip(jnp.int32(v), 0, SIZE - 1)


STEPS: list[Step] = [
    jnp.sin,
    jnp.tanh,
    jnp.abs,
    jnp.sort,
    guarded_root,
    lambda v: jnp.exp(-v * v),
    lambda v: jnp.log1p(v * v),
    lambda v: v / (1 + jnp.abs(v)),
    lambda v: v - jnp.mean(v),
    lambda v: jnp.where(v > 0, jnp.log(jnp.where(v > 0, v, 1.0)), v),
    lambda v: jnp.where(v != 0, jnp.sin(v) / jnp.where(v != 0, v, 1.0), 1.0),
    lambda v: lax.stop_gradient(jnp.where(v > 0, jnp.sqrt(v), -1.0)),
    lambda v: lax.stop_gradient(jnp.nan_to_num(1.0 / v, nan=0.0, posinf=1.0, neginf=-1.0)),
    lambda v: jax.nn.softmax(jnp.where(v >= jnp.max(v), v, -jnp.inf)),
    lambda v: jax.nn.logsumexp(v) - v,
    lambda v: jnp.max(v, initial=-jnp.inf, where=v > -9.0) - v,
    lambda v: v[positions(v)],
    lambda v: v[::-1].at[positions(v)].set(0.5, mode="drop"),
    lambda v: v.at[jnp.int32(v) + 2].get(mode="clip"),
    lambda v: v.at[jnp.int32(v) + 2].add(1.0, mode="drop"),
    lambda v: jnp.take(v, jnp.argsort(v)),
    lambda v: jnp.roll(v, 1) - v[-1],
    lambda v: lax.dynamic_slice(jnp.tile(v, 2), (positions(v[0]),), (SIZE,)),
    lambda v: v * (jnp.int32(v) % 3 + 7 // (jnp.int32(v) ** 2 + 1)),
    lambda v: jnp.float32(jnp.where(jnp.int32(v) == 0, 0, 5 // jnp.int32(v))),
    lambda v: jax.vmap(lambda a: lax.cond(a > 0, lambda a: jnp.sqrt(a + 1), jnp.sin, a))(v),
    lambda v: lax.cond(v[0] > 0, lambda v: jnp.log(v[0] + 1) * v, lambda v: v, v),
    lambda v: lax.scan(lambda c, a: (jnp.tanh(c + a), c * a), v[0], v)[1],
    lambda v: lax.fori_loop(0, SIZE, lambda i, c: c.at[i].set(jnp.sin(c[i])), v),
    lambda v: jax.jit(lambda v: jnp.outer(v, v) @ v / (1 + v @ v))(v),
    lambda v: jax.vmap(jax.grad(lambda a: jnp.log(2 + jnp.cos(a))))(v),
    lambda v: jax.checkpoint(lambda v: jnp.cos(jnp.exp(jnp.tanh(v))))(v),
]


def settle(v: Any) -> Any:
    """Divides each number by 2 until it is small: another number of times for each."""
    return jax.vmap(
        lambda a: lax.while_loop(lambda c: jnp.abs(c) > 1, lambda c: c / 2 + 1 / (4 * c), a)
    )(v)


WRAPPERS: dict[str, Callable[[Step], Step]] = {
    "none": lambda f: f,
    "jit": lambda f: jax.jit(f),
    "vmap": lambda f: lambda v: jax.vmap(f)(jnp.stack([v, -v])),
    "grad": lambda f: jax.grad(lambda v: jnp.sum(jnp.tanh(f(v)))),
    "scan": lambda f: lambda v: lax.scan(lambda c, _: (3 * jnp.tanh(f(c)), c), v, None, 2)[0],
    "cond": lambda f: lambda v: lax.cond(v[0] > 0, f, lambda v: v, v),
    "checkpoint": lambda f: jax.checkpoint(f),
    "settle": lambda f: lambda v: settle(f(v)),
}


def composed(chosen: list[int], wrapper: str) -> Step:
    def chain(v: Any) -> Any:
        for i in chosen:
            # Back between -3 and 3, so that any step may follow.
            v = 3 * jnp.tanh(STEPS[i](v) / 3)
        return v

    return WRAPPERS[wrapper](chain)


def by_operations(function: Step, v: Any) -> Any:
    """The result of a checked function, one operation at a time: few of them are new to XLA."""

    def evaluate(jaxpr: Any, consts: Any, *args: Any) -> list[Any]:
        values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))

        def read(atom: Any) -> Any:
            return atom.val if hasattr(atom, "val") else values[atom]

        for eqn in jaxpr.eqns:
            operands = map(read, eqn.invars)
            if eqn.primitive.name == "jit":
                inner = eqn.params["jaxpr"]
                outs = evaluate(inner.jaxpr, inner.consts, *operands)
            else:
                outs = eqn.primitive.bind_all(*operands, **eqn.params)
            values.update(zip(eqn.outvars, outs, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    closed = jax.make_jaxpr(jax.checked(function))(v)
    return evaluate(closed.jaxpr, closed.consts, v)[0]


@pytest.mark.turns(3)
@pytest.mark.feature("LG-10")
@pytest.mark.slow
@settings(max_examples=4 * settings().max_examples)
@given(
    chosen=st.lists(st.integers(0, len(STEPS) - 1), min_size=1, max_size=3),
    wrapper=st.sampled_from(sorted(WRAPPERS)),
    seed=st.integers(0, 2**16),
)
def test_checked_is_silent_about_random_correct_programs(
    chosen: list[int], wrapper: str, seed: int
) -> None:
    v = np.random.default_rng(seed).uniform(-3, 3, SIZE).astype(np.float32)
    result = by_operations(composed(chosen, wrapper), v)
    assert np.isfinite(result).all()


@pytest.mark.parametrize("step", range(len(STEPS)))
def test_checked_does_not_change_a_result(step: int) -> None:
    v = jnp.array([1.5, -0.5, 2.0, 0.25])
    np.testing.assert_allclose(jax.checked(STEPS[step])(v), STEPS[step](v), rtol=1e-5, atol=1e-6)


def test_running_by_operations_reports_faults() -> None:
    with pytest.raises(jax.errors.NonFiniteError):
        by_operations(lambda v: jnp.log(-v * v), jnp.ones(SIZE))
