"""The programs that the benchmarks measure in a living process, each written once.

Each builder takes the library, `jax` or `minijax`, and returns a `Program`. `build` finds the one
of a row of `budgets.py`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import control_flow
import meshes
import models
import per_device
from measured import EXAMPLES, LAYERS, LENGTH, Program, lowering, repeated, staging, training


def build(name: str, jax: Any) -> Program:
    """The program of a row."""
    return {**_BUILDERS, **control_flow.BUILDERS, **meshes.BUILDERS, **per_device.BUILDERS}[name](
        jax
    )


def _lax_code(jax: Any) -> Callable[[Any, Any], Any]:
    """500 times six equations."""
    lax = jax.lax

    def function(x: Any, y: Any) -> Any:
        for _ in range(500):
            x = lax.mul(lax.sin(x), y)
            y = lax.add(lax.tanh(y), x)
            x = lax.select(lax.gt(x, y), x, y)
        return x, y

    return function


def _numpy_code(jax: Any) -> Callable[[Any, Any], Any]:
    """100 times what models are made of: promotion, broadcasting, reductions, reshaping."""
    jnp = jax.numpy

    def function(x: Any, y: Any) -> Any:
        for _ in range(100):
            x = jnp.sin(x) * 2.0 + y
            y = y - jnp.mean(x, axis=0)
            x = jnp.where(x > y, x, 0.5 * y)
            y = jnp.maximum(y, jnp.sum(x.reshape(4, 2, 8), axis=(0, 1)))
            x = jnp.concatenate([x[:4], x[4:] / 3], axis=0)
        return x, y

    return function


_MATRIX = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
_VECTOR = np.linspace(0, 1, 8, dtype=np.float32)


def _stage_lax(jax: Any) -> Program:
    return staging(jax, _lax_code(jax), _VECTOR, _VECTOR)


def _stage_numpy(jax: Any) -> Program:
    return staging(jax, _numpy_code(jax), _MATRIX, _VECTOR)


def _lower_lax(jax: Any) -> Program:
    return lowering(jax, _lax_code(jax), _VECTOR, _VECTOR)


def _transformer(jax: Any) -> tuple[Callable[..., Any], Any, np.ndarray]:
    loss = functools.partial(models.transformer_loss, jax)
    params = models.transformer_parameters(LAYERS, length=LENGTH)
    return loss, params, models.tokens(EXAMPLES, LENGTH)


def _stage_transformer(jax: Any) -> Program:
    return staging(jax, *_transformer(jax))


def _stage_grad(jax: Any) -> Program:
    loss, params, text = _transformer(jax)
    return staging(jax, jax.grad(loss), params, text)


def _stage_vmap(jax: Any) -> Program:
    loss, params, text = _transformer(jax)
    return staging(jax, jax.vmap(loss, in_axes=(None, 0)), params, text)


def _stage_per_example(jax: Any) -> Program:
    loss, params, text = _transformer(jax)
    return staging(jax, jax.vmap(jax.grad(loss), in_axes=(None, 0)), params, text)


def _stage_hvp(jax: Any) -> Program:
    loss, params, text = _transformer(jax)

    def product(params: Any, tangent: Any, text: Any) -> Any:
        return jax.jvp(lambda p: jax.grad(loss)(p, text), (params,), (tangent,))[1]

    return staging(jax, product, params, params, text)


def _lower_transformer(jax: Any) -> Program:
    return lowering(jax, *_transformer(jax))


def _lower_grad(jax: Any) -> Program:
    loss, params, text = _transformer(jax)
    return lowering(jax, jax.grad(loss), params, text)


def _compile_eager(jax: Any) -> Program:
    sizes = itertools.count(1001)

    def fresh() -> Callable[[], Any]:
        x = jax.device_put(np.ones(next(sizes), np.float32))
        return lambda: jax.block_until_ready(jax.lax.add(x, x))

    return Program(result=lambda: jax.lax.add(np.ones(7), np.ones(7)), fresh=fresh)


def _calling(jax: Any, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Program:
    """Calls of a jitted function with arguments on the device."""
    jitted = jax.jit(function)
    args, kwargs = jax.device_put((args, kwargs))
    return Program(
        result=lambda: jitted(*args, **kwargs),
        action=lambda: jitted(*args, **kwargs),
        stablehlo=lambda: jitted.lower(*args, **kwargs).as_text(),
    )


def _leaves(jax: Any, tree: Any) -> Any:
    """The tree with something done to each leaf, so that none is dropped or forwarded."""
    return jax.tree.map(lambda x: x + 1, tree)


def _call_1(jax: Any) -> Program:
    return _calling(jax, lambda x: x + 1, _VECTOR)


def _call_20(jax: Any) -> Program:
    return _calling(jax, functools.partial(_leaves, jax), {f"leaf{i}": _VECTOR for i in range(20)})


def _call_200(jax: Any) -> Program:
    nested = {f"layer{i}": {f"leaf{j}": _VECTOR for j in range(10)} for i in range(20)}
    return _calling(jax, functools.partial(_leaves, jax), nested)


def _call_static(jax: Any) -> Program:
    def function(x: Any, axis: int, mode: str) -> Any:
        return jax.numpy.sum(x, axis) if mode == "sum" else x

    jitted = jax.jit(function, static_argnums=1, static_argnames="mode")
    x = jax.device_put(_MATRIX)
    return Program(result=lambda: jitted(x, 1, mode="sum"), action=lambda: jitted(x, 1, mode="sum"))


def _call_compiled(jax: Any) -> Program:
    x = jax.device_put(_MATRIX)
    compiled = jax.jit(lambda x: x + 1).lower(x).compile()
    return Program(result=lambda: compiled(x), action=lambda: compiled(x))


def _call_keywords(jax: Any) -> Program:
    def function(x: Any, *, options: Any) -> Any:
        return x * options["scale"] + options["shift"]["row"] - options["shift"]["column"]

    shift = {"row": _VECTOR, "column": _VECTOR[:, None]}
    return _calling(jax, function, _MATRIX, options={"scale": np.float32(3), "shift": shift})


def _call_numpy(jax: Any) -> Program:
    jitted = jax.jit(lambda x: x + 1)
    return Program(result=lambda: jitted(_VECTOR), action=lambda: jitted(_VECTOR))


def _add_arrays(jax: Any) -> Program:
    x = jax.device_put(_VECTOR)
    return repeated(lambda: x + x, lambda: jax.jit(lambda x: x + x).lower(x).as_text())


def _add_scalar(jax: Any) -> Program:
    x = jax.device_put(_VECTOR)
    return repeated(lambda: x + 1, lambda: jax.jit(lambda x: x + 1).lower(x).as_text())


def _lax_add(jax: Any) -> Program:
    x, add = jax.device_put(_VECTOR), jax.lax.add
    return repeated(lambda: add(x, x), lambda: jax.jit(add).lower(x, x).as_text())


def _slice(jax: Any) -> Program:
    x = jax.device_put(_VECTOR)
    return repeated(lambda: x[3:5], lambda: jax.jit(lambda x: x[3:5]).lower(x).as_text())


def _index(jax: Any) -> Program:
    x, positions = jax.device_put(_MATRIX), itertools.cycle(range(8))
    return Program(
        result=lambda: [x[i] for i in range(8)],
        action=lambda: x[next(positions)],
        stablehlo=lambda: jax.jit(lambda x: x[3]).lower(x).as_text(),
    )


def _update(jax: Any) -> Program:
    x, positions = jax.device_put(_VECTOR), itertools.cycle(range(8))
    return Program(
        result=lambda: [x.at[i].set(2.0 * i) for i in range(8)],
        action=lambda: x.at[next(positions)].set(3.0),
        stablehlo=lambda: jax.jit(lambda x: x.at[3].set(3.0)).lower(x).as_text(),
    )


def _zeros(jax: Any) -> Program:
    zeros = functools.partial(jax.numpy.zeros, (4, 4))
    return repeated(zeros, lambda: jax.jit(zeros).lower().as_text())


def _mlp(jax: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    params = models.mlp_parameters()
    x, y = np.ones((8, 16), np.float32), np.ones((8, 4), np.float32)
    return functools.partial(models.mlp_loss, jax), jax.device_put((params, x, y))


def _grad_eager(jax: Any) -> Program:
    loss, args = _mlp(jax)
    gradient = jax.grad(loss)
    return repeated(lambda: gradient(*args), lambda: jax.jit(gradient).lower(*args).as_text())


def _grad_of_jit(jax: Any) -> Program:
    loss, args = _mlp(jax)
    gradient = jax.grad(jax.jit(loss))
    return repeated(lambda: gradient(*args), lambda: jax.jit(gradient).lower(*args).as_text())


def _vmap_of_jit(jax: Any) -> Program:
    loss, (params, x, y) = _mlp(jax)
    mapped = jax.vmap(jax.jit(loss), in_axes=(None, 0, 0))
    return repeated(
        lambda: mapped(params, x, y), lambda: jax.jit(mapped).lower(params, x, y).as_text()
    )


def _put_small(jax: Any) -> Program:
    return repeated(lambda: jax.device_put(_VECTOR))


def _large(offset: int) -> Any:
    """100 MB so many floats after an address that XLA takes memory from: a multiple of 64 bytes."""
    values = np.arange(25_000_128, dtype=np.float32)
    start = (-values.ctypes.data % 64) // 4 + offset
    return values[start : start + 25_000_000]


def _putting(jax: Any, values: Any) -> Program:
    return Program(
        result=lambda: jax.device_put(values)[-3:],
        action=lambda: jax.block_until_ready(jax.device_put(values)),
    )


def _put_large(jax: Any) -> Program:
    return _putting(jax, _large(1))


def _put_read_only(jax: Any) -> Program:
    values = _large(0)
    values.base.flags.writeable = values.flags.writeable = False
    return _putting(jax, values)


def _get_large(jax: Any) -> Program:
    x = jax.device_put(_large(0))
    return Program(result=lambda: jax.device_get(x)[-3:], action=lambda: jax.device_get(x))


def _train_cnn(jax: Any) -> Program:
    return training(jax, models.cnn_loss, models.cnn_parameters(), *models.digits(64))


def _train_transformer(jax: Any) -> Program:
    params = models.transformer_parameters(2, length=LENGTH)
    return training(jax, models.transformer_loss, params, models.tokens(16, LENGTH))


_BUILDERS: dict[str, Callable[[Any], Program]] = {
    builder.__name__.removeprefix("_"): builder
    for builder in (
        _stage_lax,
        _stage_numpy,
        _stage_transformer,
        _stage_grad,
        _stage_vmap,
        _stage_per_example,
        _stage_hvp,
        _lower_lax,
        _lower_transformer,
        _lower_grad,
        _compile_eager,
        _call_1,
        _call_20,
        _call_200,
        _call_static,
        _call_keywords,
        _call_numpy,
        _call_compiled,
        _add_arrays,
        _add_scalar,
        _lax_add,
        _slice,
        _index,
        _update,
        _zeros,
        _grad_eager,
        _grad_of_jit,
        _vmap_of_jit,
        _put_small,
        _put_large,
        _put_read_only,
        _get_large,
        _train_cnn,
        _train_transformer,
    )
}
