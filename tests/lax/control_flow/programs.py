"""Random bodies of loops and branches: small programs that NumPy and minijax both run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import minijax.numpy as jnp
from minijax import lax

SIZE = 3
"""The length of each vector of a carry, of a slice, and of a constant."""

# Smooth where they are differentiated, and bounded, so that many steps stay within range.
OPERATIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sin": lambda xp, a, _: xp.sin(a),
    "mean": lambda _, a, b: (a + b) * 0.5,
    "product": lambda xp, a, b: xp.sin(a) * b,
    "damp": lambda xp, a, b: a / (2.0 + xp.cos(b)),
    "choose": lambda xp, a, b: xp.where(a > 0.3, xp.sin(a), b),
    "cumulative": lambda xp, a, _: xp.tanh(xp.cumsum(a)),
    "spread": lambda xp, a, b: xp.tanh(a.sum()) * b,
    "constant": lambda xp, a, _: xp.full_like(a, 0.25),
}


@dataclass(frozen=True)
class Body:
    """One step: from a carry, a slice and a constant to the next carry and a result.

    Attributes:
        carry: how many vectors the carry has.
        steps: operations, each with the numbers of two earlier values.
        outputs: the numbers of the values that are the next carry, then of the result.
    """

    carry: int
    steps: tuple[tuple[str, int, int], ...]
    outputs: tuple[int, ...]

    def __call__(
        self, xp: Any, carry: Sequence[Any], x: Any, constant: Any
    ) -> tuple[tuple[Any, ...], Any]:
        values = [*carry, x, constant]
        for name, i, j in self.steps:
            values.append(OPERATIONS[name](xp, values[i % len(values)], values[j % len(values)]))
        *outs, y = (values[i % len(values)] for i in self.outputs)
        return tuple(outs), y


_NUMBERS = st.integers(0, 11)


@st.composite
def bodies(draw: st.DrawFn) -> Body:
    """Bodies of one to three vectors, some of which pass through, change places or stay."""
    carry = draw(st.integers(1, 3))
    step = st.tuples(st.sampled_from(sorted(OPERATIONS)), _NUMBERS, _NUMBERS)
    steps = draw(st.lists(step, max_size=5))
    outputs = draw(st.lists(_NUMBERS, min_size=carry + 1, max_size=carry + 1))
    return Body(carry, tuple(steps), tuple(outputs))


def inputs(body: Body, length: int, seed: int = 0, dtype: Any = np.float32) -> Any:
    """A carry, slices and a constant, the same for the same seed."""
    rng = np.random.default_rng(seed)
    sizes = [(SIZE,)] * body.carry + [(length, SIZE), (SIZE,)]
    *carry, xs, constant = (rng.uniform(-1, 1, size).astype(dtype) for size in sizes)
    return tuple(carry), xs, constant


def python_loop(body: Body, carry: Any, xs: Any, constant: Any) -> Any:
    """The steps one by one in NumPy."""
    ys = []
    for x in xs:
        carry, y = body(np, carry, x, constant)
        ys.append(y)
    return carry, np.stack(ys) if ys else np.zeros_like(xs)


def scanned(body: Body, carry: Any, xs: Any, constant: Any, **options: Any) -> Any:
    """The steps as a scan."""
    return lax.scan(lambda carry, x: body(jnp, carry, x, constant), carry, xs, **options)


def for_loop(body: Body, carry: Any, xs: Any, constant: Any) -> Any:
    """The steps as a `fori_loop` that takes slices and writes results itself."""

    def step(i: Any, state: Any) -> Any:
        carry, ys = state
        carry, y = body(jnp, carry, jnp.asarray(xs)[i], constant)
        return carry, ys.at[i].set(y)

    return lax.fori_loop(0, len(xs), step, (carry, jnp.zeros_like(xs)))


def while_loop(body: Body, carry: Any, xs: Any, constant: Any) -> Any:
    """The steps as a `while_loop` that counts them itself."""

    def step(state: Any) -> Any:
        i, carry, ys = state
        carry, y = body(jnp, carry, jnp.asarray(xs)[i], constant)
        return i + 1, carry, ys.at[i].set(y)

    state = (0, carry, jnp.zeros_like(xs))
    return lax.while_loop(lambda state: state[0] < len(xs), step, state)[1:]
