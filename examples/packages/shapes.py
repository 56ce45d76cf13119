"""Follows a satellite by a Kalman filter whose shapes are annotations; `jax` means minijax here.

Nothing below the first import knows of minijax: it is a program for JAX, with jaxtyping, whose
annotations say how sizes belong together, and beartype, which asks them. They are asked while a
function is traced, so a compiled one pays nothing. Mistakes are told at the call.
"""

from __future__ import annotations

import minijax.as_jax  # `jax` means minijax from here on
import jax
import jax.numpy as jnp
import numpy as np
from beartype import beartype
from jaxtyping import Array, Float, TypeCheckError, jaxtyped

State = tuple[Float[Array, " n"], Float[Array, "n n"]]

# Position and velocity, of which the position is seen.
MOTION = jnp.array([[1.0, 0.1], [0.0, 1.0]])
SEEN = jnp.array([[1.0, 0.0]])
DRIFT, NOISE = 0.01 * jnp.eye(2), 0.5 * jnp.eye(1)


@jaxtyped(typechecker=beartype)
def predict(
    mean: Float[Array, " n"],
    spread: Float[Array, "n n"],
    motion: Float[Array, "n n"],
    drift: Float[Array, "n n"],
) -> State:
    """Where the state will be, and how sure that is."""
    return motion @ mean, motion @ spread @ motion.T + drift


@jaxtyped(typechecker=beartype)
def update(
    mean: Float[Array, " n"],
    spread: Float[Array, "n n"],
    seen: Float[Array, "m n"],
    noise: Float[Array, "m m"],
    value: Float[Array, " m"],
) -> State:
    """What an observation tells of the state."""
    gain = spread @ seen.T @ jnp.linalg.inv(seen @ spread @ seen.T + noise)
    return mean + gain @ (value - seen @ mean), spread - gain @ seen @ spread


@jax.jit
def track(values: Float[Array, "t 1"]) -> Float[Array, " t"]:
    """The filtered positions, after each observation."""

    def step(state: State, value: Float[Array, " 1"]) -> tuple[State, Float[Array, ""]]:
        state = update(*predict(*state, MOTION, DRIFT), SEEN, NOISE, value)
        return state, state[0][0]

    return jax.lax.scan(step, (jnp.zeros(2), jnp.eye(2)), values)[1]


def refused(function: object, *args: object) -> str:
    """What the error that a call raises says of the parameter, and of what it got."""
    try:
        function(*args)
    except TypeCheckError as error:
        return "; ".join(str(error).splitlines()[1:4])
    return ""


def main() -> tuple[float, float, list[str]]:
    """The errors of what is seen and of what is filtered; what is said of two mistakes."""
    times = np.arange(200) * 0.1
    position = np.sin(times).astype(np.float32)
    noisy = position + 0.5 * np.random.default_rng(0).standard_normal(200).astype(np.float32)
    filtered = track(jnp.asarray(noisy)[:, None])
    before, after = (float(np.sqrt(np.mean((x - position) ** 2))) for x in (noisy, filtered))
    print(f"jax is minijax {minijax.__version__}, with the interface of JAX {jax.__version__}")
    print(f"the error of what is seen is {before:.2f}, of what is filtered {after:.2f}")
    mean, spread = jnp.zeros(2), jnp.eye(2)
    mistakes = [
        refused(predict, mean, spread, jnp.eye(3), DRIFT),
        refused(jax.jit(update), mean, spread, SEEN.T, NOISE, jnp.ones(1)),
    ]
    print(*mistakes, sep="\n")
    return before, after, mistakes


if __name__ == "__main__":
    main()
