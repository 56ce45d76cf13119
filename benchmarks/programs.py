"""The programs that the benchmarks measure in a living process, each written once.

Each builder takes the library, `jax` or `minijax`, and returns a `Program`. `build` finds the one
of a row of `budgets.py`.
"""

from __future__ import annotations

import collections
import concurrent.futures
import functools
import itertools
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

import control_flow
import meshes
import models
import per_device
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


def build(name: str, jax: Any) -> Program:
    """The program of a row."""
    rooms = (control_flow, meshes, per_device)
    return collections.ChainMap(_BUILDERS, *(room.BUILDERS for room in rooms))[name](jax)


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


def _compile_layers(jax: Any) -> Program:
    params = models.transformer_parameters(2, length=LENGTH)
    args = params, models.tokens(EXAMPLES, LENGTH)
    gradient = jax.value_and_grad(functools.partial(models.transformer_loss, jax))

    def fresh() -> Callable[[], Any]:
        return lambda: jax.jit(unseen(gradient)).lower(*args).compile()

    return Program(result=lambda: jax.eval_shape(gradient, *args), fresh=fresh)


def _compile_threads(jax: Any) -> Program:
    """The gradients of four networks of different widths."""
    gradient = jax.value_and_grad(functools.partial(models.mlp_loss, jax))
    x, y = np.ones((8, 16), np.float32), np.ones((8, 4), np.float32)
    networks = [models.mlp_parameters((16, width, width, 4)) for width in (16, 32, 48, 64)]

    def fresh() -> Callable[[], Any]:
        lowered = [jax.jit(unseen(gradient)).lower(each, x, y) for each in networks]

        def compile_all() -> Any:
            with concurrent.futures.ThreadPoolExecutor(len(lowered)) as pool:
                return list(pool.map(lambda each: each.compile(), lowered))

        return compile_all

    return Program(result=lambda: jax.eval_shape(gradient, networks[0], x, y), fresh=fresh)


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


def _call_donated(jax: Any) -> Program:
    jitted = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = jax.device_put(_MATRIX)

    def action() -> Any:
        nonlocal x
        x = jitted(x)
        return x

    return Program(result=lambda: jitted(jax.device_put(_MATRIX)), action=action)


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


def _sin(jax: Any) -> Program:
    x, sin = jax.device_put(_VECTOR), jax.numpy.sin
    return repeated(lambda: sin(x), lambda: jax.jit(sin).lower(x).as_text())


def _where(jax: Any) -> Program:
    x, where = jax.device_put(_VECTOR), jax.numpy.where
    condition = x > 0.5
    return repeated(
        lambda: where(condition, x, x), lambda: jax.jit(where).lower(condition, x, x).as_text()
    )


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


def _aligned(size: int, offset: int = 0) -> Any:
    """So many floats after an address that XLA takes memory from, which is a multiple of 64 bytes.

    What starts `offset` floats later must be copied.
    """
    memory = np.empty(size + 128, np.float32)
    start = (-memory.ctypes.data % 64) // 4 + offset
    values = memory[start : start + size]
    values[:] = np.arange(size)
    return values


_SIZES = {"1_KB": 256, "1_MB": 250_000, "100_MB": 25_000_000}


def _putting(jax: Any, values: Any, **options: Any) -> Program:
    return Program(
        result=lambda: jax.device_put(values, **options)[-3:],
        action=lambda: jax.block_until_ready(jax.device_put(values, **options)),
    )


def _put(jax: Any, size: str) -> Program:
    return _putting(jax, _aligned(_SIZES[size], 1))


def _asarray(jax: Any, size: str) -> Program:
    values, asarray = _aligned(_SIZES[size], 1), jax.numpy.asarray
    return Program(
        result=lambda: asarray(values)[-3:], action=lambda: jax.block_until_ready(asarray(values))
    )


def _get(jax: Any, size: str) -> Program:
    x = jax.device_put(_aligned(_SIZES[size], 1))
    return Program(result=lambda: jax.device_get(x)[-3:], action=lambda: jax.device_get(x))


def _view(jax: Any) -> Program:
    values = _aligned(_SIZES["100_MB"], 1)

    def fresh() -> Callable[[], Any]:
        # Arrays remember their NumPy value, so each is read once only.
        return functools.partial(np.asarray, jax.block_until_ready(jax.device_put(values)))

    return Program(result=lambda: fresh()()[-3:], fresh=fresh)


def _put_read_only(jax: Any) -> Program:
    values = _aligned(_SIZES["100_MB"])
    values.base.flags.writeable = values.flags.writeable = False
    return _putting(jax, values)


def _put_aligned(jax: Any) -> Program:
    return _putting(jax, _aligned(_SIZES["100_MB"]))


def _put_columns(jax: Any) -> Program:
    values = _aligned(_SIZES["100_MB"]).reshape(5_000, 5_000).T
    return _putting(jax, values)


def _put_converted(jax: Any) -> Program:
    return _putting(jax, np.arange(_SIZES["100_MB"] // 2, dtype=np.float64))


def _put_may_alias(jax: Any) -> Program:
    return _putting(jax, _aligned(_SIZES["100_MB"]), may_alias=True)


def _put_mapped(jax: Any) -> Program:
    with tempfile.NamedTemporaryFile() as file:
        np.arange(_SIZES["100_MB"], dtype=np.float32).tofile(file.name)
        return _putting(jax, np.memmap(file.name, np.float32, mode="r"))


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
        _compile_layers,
        _compile_threads,
        _call_1,
        _call_20,
        _call_200,
        _call_static,
        _call_keywords,
        _call_numpy,
        _call_donated,
        _call_compiled,
        _add_arrays,
        _add_scalar,
        _lax_add,
        _sin,
        _where,
        _slice,
        _index,
        _update,
        _zeros,
        _grad_eager,
        _grad_of_jit,
        _vmap_of_jit,
        _put_read_only,
        _put_aligned,
        _put_may_alias,
        _put_columns,
        _put_converted,
        _put_mapped,
        _view,
        _train_cnn,
        _train_transformer,
    )
} | {
    f"{make.__name__.removeprefix('_')}_{size}": functools.partial(make, size=size)
    for make in (_put, _asarray, _get)
    for size in _SIZES
}
