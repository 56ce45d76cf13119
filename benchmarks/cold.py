"""What a new process does before its first result; run once, as `python cold.py LIBRARY NAME`.

Prints one line of JSON: the figure of the row and a checksum. For the rows that count from the
start of the process, the reader of that line holds the watch.
"""

from __future__ import annotations

import importlib
import sys
import time
from typing import Any

START = time.perf_counter()

UNUSED_ROOMS = (
    *("lax.linalg", "numpy.fft", "numpy.linalg", "scipy.linalg", "scipy.special", "scipy.stats"),
    *("scipy.signal", "scipy.optimize", "image", "ops", "ffi", "random", "nn"),
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
    elif name == "unused_rooms":
        _report(sum(f"{library}.{room}" in sys.modules for room in UNUSED_ROOMS))
    elif name == "all_rooms":
        for room in UNUSED_ROOMS:
            importlib.import_module(f"{library}.{room}")
        _report(time.perf_counter() - START)
    elif name == "memory":
        _report(_memory(jax, raw))
    elif name == "first_result":
        jnp = jax.numpy
        _report(None, [float(jax.jit(lambda x: jnp.sum(jnp.tanh(x) * 2))(jnp.arange(8.0)))])
    elif name == "first_step":
        _report(None, [_first_step(jax)])
    elif name in ("first_lowering", "first_parameters"):
        first = _first_lowering if name == "first_lowering" else _first_parameters
        _report(*first(jax))
    else:
        raise ValueError(f"no row of a process of its own is called {name}")


def _report(figure: object, checksum: object = None) -> None:
    json = importlib.import_module("json")
    print(json.dumps({"figure": figure, "checksum": checksum}), flush=True)


def _private_memory() -> int:
    """Bytes of this process alone: the pages of the libraries' files are not counted."""
    with open("/proc/self/status", encoding="ascii") as lines:
        sizes = dict(line.split(":", 1) for line in lines)
    return int(sizes["RssAnon"].split()[0]) * 1024


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
    np = importlib.import_module("numpy")
    lax = jax.lax

    def function(x: Any) -> Any:
        for _ in range(2500):
            x = lax.mul(lax.sin(x), x)
        return x

    traced = jax.jit(function).trace(np.ones(4, np.float32))
    staged = _private_memory()
    if len(traced.jaxpr.eqns) != 5000:
        raise RuntimeError(f"{len(traced.jaxpr.eqns)} equations were staged instead of 5000")
    return [imported, staged]


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


if __name__ == "__main__":
    _main(*sys.argv[1:])
