"""Logistic regression by Newton's method: exact to float precision in a handful of steps.

Newton's step solves H s = -g, with g the gradient and H the Hessian of the loss. Conjugate
gradients solve it without ever forming H: they only ask for products H v, and such a product is the
derivative of the gradient in the direction v, `jvp(grad(loss))`, at the price of about two
gradients.

The data are scikit-learn's bundled measurements of 569 breast tumours, benign or malignant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer

import minijax as jax
import minijax.numpy as jnp
from terminal import heading, paragraph, say

PENALTY = 1.0
NEWTON_STEPS = 12
GRADIENT_STEPS = 1000


class Data(NamedTuple):
    """Standardised measurements float32[n, features + 1], the last constant; labels +1 or -1."""

    inputs: np.ndarray
    labels: np.ndarray


class Fit(NamedTuple):
    """Weights, and the size of the gradient before every step and after the last."""

    weights: jax.Array
    gradient_norms: list[float]


class Result(NamedTuple):
    """Newton's fit and that of plain gradient descent, and the held-out accuracy of the first."""

    newton: Fit
    descent: Fit
    accuracy: float


def main() -> Result:
    """Fits the same model twice and prints how the gradient shrinks."""
    train, held_out = load()
    heading(
        "Logistic regression by Newton's method",
        f"""{train.inputs.shape[0]} tumours, {train.inputs.shape[1]} weights. At the minimum the
        gradient is zero; each line shows what is left of it.""",
    )
    newton = fit_newton(train)
    descent = fit_descent(train)
    for number, norm in enumerate(newton.gradient_norms):
        say(f"  Newton, step {number:<6} |gradient| = {norm:.1e}")
    say(f"  descent, step {GRADIENT_STEPS:<5} |gradient| = {descent.gradient_norms[-1]:.1e}\n")
    accuracy = float(jnp.mean(jnp.sign(held_out.inputs @ newton.weights) == held_out.labels))
    paragraph(f"Held-out accuracy {accuracy:.1%} on {len(held_out.labels)} tumours.")
    return Result(newton, descent, accuracy)


def load(held_out: int = 114) -> tuple[Data, Data]:
    """The tumours in a fixed random order: those to learn from, and those held out."""
    source = load_breast_cancer()
    order = np.random.default_rng(0).permutation(len(source.target))
    train, test = order[held_out:], order[:held_out]
    mean, spread = source.data[train].mean(axis=0), source.data[train].std(axis=0)
    inputs = np.column_stack([(source.data - mean) / spread, np.ones(len(order))]).astype(
        np.float32
    )
    labels = np.where(source.target == 1, 1, -1).astype(np.float32)
    return Data(inputs[train], labels[train]), Data(inputs[test], labels[test])


def loss(weights: jax.Array, data: Data) -> jax.Array:
    """-log likelihood of the labels, and a penalty on every weight but the constant one."""
    margins = data.labels * (data.inputs @ weights)
    return jnp.sum(jax.nn.softplus(-margins)) + PENALTY / 2 * jnp.sum(weights[:-1] ** 2)


def hessian_times(weights: jax.Array, direction: jax.Array, data: Data) -> jax.Array:
    """H v, as the derivative of the gradient along v: forward mode over reverse mode."""
    gradient = jax.grad(lambda w: loss(w, data))
    return jax.jvp(gradient, (weights,), (direction,))[1]


def solve(apply: Callable[[jax.Array], jax.Array], b: jax.Array, steps: int) -> jax.Array:
    """Solves A x = b for a symmetric positive definite A by conjugate gradients, given x -> A x."""
    x = jnp.zeros_like(b)
    residual = direction = b
    size = residual @ residual
    for _ in range(steps):
        image = apply(direction)
        # Near the solution both quotients become 0 / 0; the tiny term then leaves x where it is.
        length = size / (direction @ image + 1e-30)
        x = x + length * direction
        residual = residual - length * image
        old_size, size = size, residual @ residual
        direction = residual + size / (old_size + 1e-30) * direction
    return x


@jax.jit
def newton_step(weights: jax.Array, data: Data) -> tuple[jax.Array, jax.Array]:
    """The next weights, and the size of the gradient at the present ones."""
    gradient = jax.grad(loss)(weights, data)
    # In exact arithmetic conjugate gradients end after as many steps as there are weights.
    step = solve(lambda v: hessian_times(weights, v, data), -gradient, steps=len(weights))
    return weights + step, jnp.sqrt(gradient @ gradient)


@jax.jit
def descent_step(weights: jax.Array, data: Data) -> jax.Array:
    """One small step against the gradient."""
    return weights - 0.002 * jax.grad(loss)(weights, data)


def fit_newton(data: Data) -> Fit:
    """Newton's method from zero."""
    weights, norms = jnp.zeros(data.inputs.shape[1]), []
    for _ in range(NEWTON_STEPS):
        following, norm = newton_step(weights, data)
        norms.append(float(norm))
        # What is left is rounding: further steps would only wander in it.
        if norms[-1] < 1e-4:
            break
        weights = following
    return Fit(weights, norms)


def fit_descent(data: Data) -> Fit:
    """Plain gradient descent from zero."""
    weights = jnp.zeros(data.inputs.shape[1])
    for _ in range(GRADIENT_STEPS):
        weights = descent_step(weights, data)
    return Fit(weights, [gradient_norm(weights, data)])


def gradient_norm(weights: jax.Array, data: Data) -> float:
    """How far `weights` are from the minimum."""
    return float(jnp.sqrt(jnp.sum(jax.grad(loss)(weights, data) ** 2)))


if __name__ == "__main__":
    main()
