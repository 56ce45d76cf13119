"""What a new process does before its first result; run once, as `python cold.py LIBRARY NAME`.

Prints one line of JSON: the figure of the row and a checksum. For the rows that count from the
start of the process, the reader of that line holds the watch.
"""

from __future__ import annotations

import gc
import importlib
import sys
import time
from collections.abc import Callable
from typing import Any

START = time.perf_counter()

UNUSED_ROOMS = (
    "lax.linalg",
    "numpy.fft",
    "numpy.linalg",
    "scipy.linalg",
    "scipy.special",
    "scipy.stats",
    "scipy.signal",
    "scipy.optimize",
    "image",
    "ops",
    "ffi",
    "random",
    "nn",
)
"""What programs load that use it."""


def _main(library: str, name: str) -> None:
    raw = library == "raw"
    jax = importlib.import_module("jaxlib.xla_client" if raw else library)
    if not raw:
        importlib.import_module(f"{library}.numpy")
    seconds = time.perf_counter() - START
    if name == "import":
        _report(seconds)
    elif name == "memory":
        _report(_memory(jax, raw))
    elif name in _FROM_THE_START:
        _report(None, [_FROM_THE_START[name](jax)])
    else:
        _report(*_MEASURED[name](jax))


def _report(figure: object, checksum: object = None) -> None:
    json = importlib.import_module("json")
    print(json.dumps({"figure": figure, "checksum": checksum}), flush=True)


def _private_memory() -> int:
    """Returns the bytes of this process alone, without the pages of the libraries' files.

    macOS does not tell them apart: there it is the most memory that the process has had.
    """
    if sys.platform == "darwin":
        usage = importlib.import_module("resource").getrusage(0)
        return int(usage.ru_maxrss)
    with open("/proc/self/status", encoding="ascii") as lines:
        sizes = dict(line.split(":", 1) for line in lines)
    return int(sizes["RssAnon"].split()[0]) * 1024


def _unused_rooms(jax: Any) -> tuple[int, None]:
    return sum(f"{jax.__name__}.{room}" in sys.modules for room in UNUSED_ROOMS), None


def _all_rooms(jax: Any) -> tuple[float, None]:
    for room in UNUSED_ROOMS:
        importlib.import_module(f"{jax.__name__}.{room}")
    return time.perf_counter() - START, None


def _first_result(jax: Any) -> float:
    jnp = jax.numpy
    return float(jax.jit(lambda x: jnp.sum(jnp.tanh(x) * 2))(jnp.arange(8.0)))


def _first_lowering(jax: Any) -> tuple[float, None]:
    """Seconds of the first lowering, of a function that is traced, where there are devices."""
    jnp, np = jax.numpy, importlib.import_module("numpy")
    jax.devices()
    traced = jax.jit(lambda x: jnp.tanh(x @ x) * 2).trace(np.ones((8, 8), np.float32))
    start = time.perf_counter()
    traced.lower()
    return time.perf_counter() - start, None


def _memory(jax: Any, raw: bool) -> list[int]:
    imported = _private_memory()
    if raw:
        return [imported]
    traced = _traced(jax)
    staged = _private_memory()
    if len(traced.jaxpr.eqns) != EQUATIONS:
        raise RuntimeError(f"{len(traced.jaxpr.eqns)} equations were staged, not {EQUATIONS}")
    return [imported, staged]


EQUATIONS = 5000


def _traced(jax: Any) -> Any:
    np, lax = importlib.import_module("numpy"), jax.lax

    def function(x: Any) -> Any:
        for _ in range(EQUATIONS // 2):
            x = lax.mul(lax.sin(x), x)
        return x

    return jax.jit(function).trace(np.ones(4, np.float32))


def _memory_of_python(jax: Any) -> tuple[float, None]:
    """Bytes that Python has allocated for each equation, and that are still held."""
    jax.jit(lambda x: jax.lax.mul(jax.lax.sin(x), x)).trace(1.0)
    tracemalloc = importlib.import_module("tracemalloc")
    tracemalloc.start()
    traced = _traced(jax)
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    return held / len(traced.jaxpr.eqns), None


def _first_step_of_transformer(jax: Any) -> float:
    """A step of gradient descent on a transformer of 12 layers, written as a loop over them."""
    models, measured = map(importlib.import_module, ("models", "measured"))
    params = models.transformer_parameters(measured.LAYERS, length=measured.LENGTH)
    text = models.tokens(measured.EXAMPLES, measured.LENGTH)

    @jax.jit
    def step(params: Any, text: Any) -> Any:
        loss = jax.value_and_grad(lambda params: models.transformer_loss(jax, params, text))
        value, grads = loss(params)
        return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    value, _ = step(params, text)
    return float(value)


def _first_step(jax: Any) -> float:
    models = importlib.import_module("models")
    params = [
        (
            jax.random.normal(jax.random.key(i), (m, n)) / m**0.5,
            jax.numpy.zeros(n),
        )
        for i, (m, n) in enumerate([(16, 32), (32, 32), (32, 4)])
    ]
    x, y = jax.numpy.ones((8, 16)), jax.numpy.ones((8, 4))

    @jax.jit
    def step(params: Any) -> Any:
        value, grads = jax.value_and_grad(lambda p: models.mlp_loss(jax, p, x, y))(params)
        return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    step_loss, params = step(params)
    return float(step_loss)


def _first_parameters(jax: Any) -> tuple[float, list[float]]:
    """Six shapes, as in a small network of several kinds of layers."""
    start = time.perf_counter()
    shapes = [(3, 3, 1 << i, 2 << i) for i in range(2)] + [(16 + i, 64 - i) for i in range(4)]
    keys = jax.random.split(jax.random.key(0), len(shapes))
    params = [
        {
            "weight": jax.random.normal(key, shape) * (2 / shape[-2]) ** 0.5,
            "bias": jax.numpy.zeros(shape[-1:]),
        }
        for key, shape in zip(keys, shapes, strict=True)
    ]
    jax.block_until_ready(params)
    seconds = time.perf_counter() - start
    np = importlib.import_module("numpy")
    return seconds, [float(np.asarray(p["weight"]).sum()) for p in params]


_FROM_THE_START: dict[str, Callable[[Any], float]] = {
    "first_result": _first_result,
    "first_step": _first_step,
    "first_transformer": _first_step_of_transformer,
}
_MEASURED: dict[str, Callable[[Any], tuple[object, object]]] = {
    "unused_rooms": _unused_rooms,
    "all_rooms": _all_rooms,
    "memory_python": _memory_of_python,
    "first_lowering": _first_lowering,
    "first_parameters": _first_parameters,
}

if __name__ == "__main__":
    _main(*sys.argv[1:])
