"""How fast an illness spreads, and when a lockdown began to work, from counts of the ill.

The shares of people who can fall ill, are ill, and have been ill follow a differential equation:
the ill infect others at a rate that falls at an unknown day, and get well at another rate.
`odeint` follows it with steps as long as they may be, and its adjoint gives the gradient by which
Newton's method in its Gauss-Newton form finds the four unknowns. How exactly they are known is read
off the same derivatives.

W. O. Kermack and A. G. McKendrick, "A contribution to the mathematical theory of epidemics", 1927.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental.ode import odeint
from terminal import Progress, heading, say

DAYS = np.arange(0.0, 81.0, 2.0, dtype=np.float32)
PEOPLE = 100_000
ROUNDS = 12


class Illness(NamedTuple):
    """What is unknown, each as a logarithm: all of it is positive."""

    spread: jax.Array
    recovery: jax.Array
    lockdown: jax.Array
    day: jax.Array


TRUE = Illness(*np.log(np.float32([0.35, 0.1, 0.12, 25.0])))
GUESS = Illness(*np.log(np.float32([0.3, 0.15, 0.2, 30.0])))


class Result(NamedTuple):
    """What is found, how exactly, and what it should be."""

    found: Illness
    errors: Illness
    truth: Illness


def main() -> Result:
    """Finds the rates and the day."""
    heading(
        "An epidemic",
        f"""Every other day a count of the ill among {PEOPLE:,} people. How fast did the illness
        spread before and after people stayed at home, and when was that?""",
    )
    counts = observed(seed=0)
    illness, progress = GUESS, Progress(ROUNDS, "fitting")
    for _ in range(ROUNDS):
        illness, misfit = improved(illness, counts)
        progress.advance(f"misfit {float(misfit):.3f}")
    errors = uncertainty(illness)
    result = Result(*(Illness(*map(float, found)) for found in _shown(illness, errors)))
    names = ("spread a day", "recovery a day", "spread in the lockdown", "day of the lockdown")
    for name, found, error, true in zip(names, *result, strict=True):
        say(f"  {name:<24}{found:>8.3f} ± {error:.3f}   in truth {true:.3f}")
    say("")
    return result


def _shown(illness: Illness, errors: Illness) -> tuple[Illness, Illness, Illness]:
    """Values, errors of values, and the truth, no longer as logarithms."""
    values = Illness(*map(jnp.exp, illness))
    scaled = (value * error for value, error in zip(values, errors, strict=True))
    return values, Illness(*scaled), Illness(*map(jnp.exp, TRUE))


def ill(illness: Illness) -> jax.Array:
    """The number of ill people on each of the days."""
    spread, recovery, lockdown, day = map(jnp.exp, illness)

    def slope(shares: tuple, t: jax.Array) -> tuple:
        healthy, sick, _ = shares
        # The lockdown comes over three days, not at once.
        rate = spread + (lockdown - spread) * jax.nn.sigmoid((t - day) / 0.75)
        infected, cured = rate * healthy * sick, recovery * sick
        return -infected, infected - cured, cured

    start = (1 - 1e-3, 1e-3, 0.0)
    return PEOPLE * odeint(slope, start, DAYS, rtol=1e-6, atol=1e-8)[1]


def observed(seed: int) -> np.ndarray:
    """Counts that scatter as counts of events do."""
    return np.random.default_rng(seed).poisson(np.asarray(ill(TRUE))).astype(np.float32)


def residuals(illness: Illness, counts: jax.Array) -> jax.Array:
    """By how much roots of numbers of ill people and of counts differ, in units of their scatter.

    The root of a count scatters by 1/2, whatever the count.
    """
    return 2 * (jnp.sqrt(ill(illness)) - jnp.sqrt(counts))


@jax.jit
def slopes(illness: Illness) -> jax.Array:
    """The derivatives [day, unknown] of residuals; a row for each day, by the adjoint."""
    rows = jax.jacrev(lambda illness: residuals(illness, jnp.zeros(len(DAYS))))(illness)
    return jnp.stack(rows, axis=-1)


@jax.jit
def improved(illness: Illness, counts: jax.Array) -> tuple[Illness, jax.Array]:
    """The unknowns after a step of Gauss and Newton, and the misfit before; 1 is to be expected."""
    missing = residuals(illness, counts)
    step, *_ = jnp.linalg.lstsq(slopes(illness), -missing)
    step = jnp.clip(step, -0.3, 0.3)
    return Illness(*(x + d for x, d in zip(illness, step, strict=True))), jnp.mean(missing**2)


def uncertainty(illness: Illness) -> Illness:
    """The standard deviations of the unknowns, for scatter of size 1 on every day."""
    jacobian = slopes(illness)
    return Illness(*jnp.sqrt(jnp.diag(jnp.linalg.inv(jacobian.T @ jacobian))))


if __name__ == "__main__":
    main()
