"""Programs with loops, rematerialization and callbacks, for the benchmarks.

Each builder takes the library and returns a `measured.Program`, as those of `programs.py` do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import models
from measured import (
    EXAMPLES,
    LAYERS,
    LENGTH,
    Program,
    lowering,
    repeated,
    staging,
    training,
    unseen,
)

Builder = Callable[[Any], Program]


def _scanned(jax: Any, layers: int = LAYERS, *, remat: bool = False) -> tuple[Any, Any, Any]:
    loss = functools.partial(models.scanned_transformer_loss, jax, remat=remat)
    params = models.stacked(models.transformer_parameters(layers, length=LENGTH))
    return loss, params, models.tokens(EXAMPLES, LENGTH)


def _nested(jax: Any) -> tuple[Any, Any]:
    """A scan of scans of while loops, ten equations at the bottom."""
    jnp, lax = jax.numpy, jax.lax

    def function(x: Any) -> Any:
        # The bodies are new in each call, so that every one is staged.
        def innermost(x: Any) -> Any:
            def step(c: Any) -> Any:
                return c[0] + 1, jnp.sin(c[1]) * jnp.cos(c[1]) + 0.1

            return lax.while_loop(lambda c: c[0] < 3, step, (0, x))[1]

        def inner(x: Any, y: Any) -> Any:
            x = lax.cond(jnp.sum(x) > 0, innermost, lambda x: jnp.tanh(x) + y, x)
            return x, jnp.sum(x)

        def outer(x: Any, ys: Any) -> Any:
            return lax.scan(inner, x, ys)

        return lax.scan(outer, x, jnp.stack([x, x]))

    return function, np.linspace(-1, 1, 8, dtype=np.float32)


def _scanned_gradient(jax: Any, *, remat: bool = False) -> tuple[Any, Any, Any]:
    loss, *args = _scanned(jax, remat=remat)
    return jax.grad(loss), *args


def _compiling(jax: Any, function: Any, *args: Any) -> Program:
    """What XLA takes for the first compilation."""
    return Program(
        result=lambda: jax.eval_shape(function, *args),
        fresh=lambda: jax.jit(unseen(function)).lower(*args).compile,
    )


_SUBJECTS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "scan": _scanned,
    "scan_grad": _scanned_gradient,
    "scan_remat": functools.partial(_scanned_gradient, remat=True),
    "nested": _nested,
}
_STEPS = {"stage": staging, "lower": lowering, "compile": _compiling}


def _step_of_compiler(step: str, subject: str, jax: Any) -> Program:
    """One step of the compiler, for one program."""
    return _STEPS[step](jax, *_SUBJECTS[subject](jax))


def _train_rnn(jax: Any) -> Program:
    return training(jax, models.rnn_loss, models.rnn_parameters(), *models.sequences(16, 64))


def _train_remat(jax: Any) -> Program:
    loss = functools.partial(models.scanned_transformer_loss, remat=True)
    params = models.stacked(models.transformer_parameters(2, length=LENGTH))
    return training(jax, loss, params, models.tokens(16, LENGTH))


def _solve_while(jax: Any) -> Program:
    """Conjugate gradients in a while loop."""
    matrix, right = models.linear_system(64)
    solve = jax.jit(functools.partial(models.conjugate_gradients, jax))
    matrix, right = jax.device_put((matrix, right))
    return Program(
        result=lambda: solve(matrix, right),
        action=lambda: solve(matrix, right),
        stablehlo=lambda: solve.lower(matrix, right).as_text(),
    )


def _silent_print(jax: Any) -> Program:
    """A jitted function that would print if its argument were negative."""

    def function(x: Any) -> Any:
        jax.lax.cond(x[0] < 0, lambda x: jax.debug.print("negative: {}", x), lambda _: None, x)
        return x * 2

    jitted = jax.jit(function)
    x = jax.device_put(np.ones(8, np.float32))
    return Program(result=lambda: jitted(x), action=lambda: jitted(x))


def _add_up(total: Any, x: Any) -> Any:
    return total + x, total


def _eager_scan(jax: Any) -> Program:
    x, xs = jax.device_put((np.ones(8, np.float32), np.ones((10, 8), np.float32)))
    return repeated(lambda: jax.lax.scan(_add_up, x, xs))


def _eager_scan_grad(jax: Any) -> Program:
    x, xs = jax.device_put((np.ones(8, np.float32), np.ones((10, 8), np.float32)))
    gradient = jax.grad(lambda x: jax.lax.scan(_add_up, x, xs)[0].sum())
    return repeated(lambda: gradient(x))


def _eager_cond(jax: Any) -> Program:
    """Branches that are new functions in each call, as lambdas in a loop are."""
    pred, x = jax.device_put((np.array(True), np.ones(8, np.float32)))
    return repeated(lambda: jax.lax.cond(pred, lambda x: 2 * x, lambda x: x + 1, x))


def _gradient_memory(jax: Any, layers: int, *, remat: bool) -> Program:
    """The bytes that XLA sets aside for the values of a gradient."""
    loss, *args = _scanned(jax, layers, remat=remat)
    gradient = jax.grad(loss)

    def figure() -> float:
        compiled = jax.jit(unseen(gradient)).lower(*args).compile()
        return float(compiled.memory_analysis().temp_size_in_bytes)

    return Program(result=lambda: jax.eval_shape(gradient, *args), figure=figure)


BUILDERS: dict[str, Builder] = {
    **{
        builder.__name__.removeprefix("_"): builder
        for builder in (
            _train_rnn,
            _train_remat,
            _solve_while,
            _silent_print,
            _eager_scan,
            _eager_scan_grad,
            _eager_cond,
        )
    },
    **{
        f"{step}_{subject}": functools.partial(_step_of_compiler, step, subject)
        for step in _STEPS
        for subject in _SUBJECTS
    },
    "memory_plain_16": functools.partial(_gradient_memory, layers=16, remat=False),
    "memory_remat_4": functools.partial(_gradient_memory, layers=4, remat=True),
    "memory_remat_16": functools.partial(_gradient_memory, layers=16, remat=True),
}
