"""A soak test: work that is new in every round, and what it leaves behind.

`python -m tools.soak --minutes 30`, or `make soak`.  Every round makes shapes, functions,
gradients, sharded calls, callbacks and stages that no earlier round had; now and then programs are
forgotten.  Once a second the memory of the process, its file descriptors and its threads are
counted.  After a time to warm up, memory may grow by 2 % and the other two not at all; the exit
status says whether they did.  `--chart FILE` draws memory, and `--library jax` does the same work
with JAX.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_DEVICES = 4
_WARM_UP = 1 / 6
"""The part of the time in which memory may grow: five minutes of thirty."""
_GROWTH = 0.02
_BETWEEN_CLEARINGS = 10
"""How many rounds are done before caches are cleared."""
_TOGETHER = 3
"""How many counts after clearings make a level: the median of these."""

_MEGABYTE = 2**20


class Sample(NamedTuple):
    """What the process holds at a time.

    Attributes:
        seconds: since the start.
        rounds: how many were done.
        memory: its resident memory, in bytes.
        descriptors: its open files.
        threads: its threads.
        objects: the Python objects that the collector knows of.
        is_cleared: whether caches were just cleared, so that it compares with others like it.
    """

    seconds: float
    rounds: int
    memory: int
    descriptors: int
    threads: int
    objects: int
    is_cleared: bool


def shapes(jax: Any, turn: int) -> Any:
    """Operations on shapes that are new."""
    jnp = jax.numpy
    x = jnp.arange(1 + turn, dtype="float32")
    rows = jnp.ones((2 + turn % 31, 3 + turn // 31))
    return jnp.sort(jnp.sin(x) * 2)[-1] + rows.sum(axis=0)[0] + jnp.concatenate([x, x]).mean()


def functions(jax: Any, turn: int) -> Any:
    """A compiled function of a program that is new, with a constant of its own."""
    jnp = jax.numpy
    table = np.arange(16.0, dtype=np.float32) + turn
    f = jax.jit(lambda x: jnp.where(x > turn, x * table, x + turn).cumsum())
    return f(jnp.ones(16))[-1] + f(jnp.zeros(16))[0]


def gradients(jax: Any, turn: int) -> Any:
    """Derivatives of loops, of a function that is new."""
    jnp, lax = jax.numpy, jax.lax

    def loss(w: Any) -> Any:
        def step(c: Any, x: Any) -> tuple[Any, Any]:
            return jnp.tanh(c @ w + x * turn), c

        final, seen = lax.scan(step, jnp.zeros(3), jnp.ones((4, 3)))
        return jnp.sum(final) + jnp.mean(seen)

    w = jnp.full((2, 3, 3), 0.1)
    value, slope = jax.jit(jax.vmap(jax.value_and_grad(loss)))(w)
    return jnp.sum(value) + jnp.sum(slope)


def sharded(jax: Any, turn: int) -> Any:
    """Programs over several devices, whole and for each of them."""
    jnp, lax = jax.numpy, jax.lax
    spec = jax.sharding.PartitionSpec
    devices = np.array(jax.devices()[:_DEVICES]).reshape(2, 2)
    mesh = jax.sharding.Mesh(np.roll(devices, turn % 2, axis=0), ("rows", "columns"))
    placed = jax.device_put(
        np.ones((8, 2 + 2 * (turn % 7)), np.float32),
        jax.sharding.NamedSharding(mesh, spec("rows", "columns")),
    )
    total = jax.jit(lambda x: (x * turn).sum())(placed)
    mapped = jax.shard_map(
        lambda x: lax.psum(x * turn, "rows"), mesh=mesh, in_specs=spec("rows"), out_specs=spec()
    )
    return total + jax.jit(mapped)(jnp.ones(8)).sum()


def callbacks(jax: Any, turn: int) -> Any:
    """Programs that call Python, half of them in vain."""
    jnp = jax.numpy

    def called(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if turn % 2 == 0:
            raise ValueError(f"turn {turn}")
        return np.asarray(x * 2 + turn, np.float32)

    struct = jax.ShapeDtypeStruct((4,), "float32")
    f = jax.jit(lambda x: jax.pure_callback(called, struct, x).sum())
    found = jnp.float32(turn)
    for _ in range(3):
        with contextlib.suppress(Exception):
            found = jax.block_until_ready(f(jnp.ones(4)))
    return found


def stages(jax: Any, turn: int) -> Any:
    """A function that is traced, lowered, shown and compiled step by step."""
    jnp = jax.numpy
    traced = jax.jit(lambda x, y: jnp.dot(x, y) * turn).trace(jnp.ones(4), jnp.ones(4))
    lowered = traced.lower()
    text = f"{traced.jaxpr}{lowered.as_text()}"
    compiled = lowered.compile()
    return compiled(jnp.ones(4), jnp.ones(4)) + len(text) + len(compiled.as_text())


def failures(jax: Any, turn: int) -> Any:
    """Calls that are refused, in traces too."""
    jnp = jax.numpy
    refused: tuple[Callable[[], Any], ...] = (
        lambda: jnp.ones(3) + jnp.ones(4),
        lambda: jax.jit(lambda x: 1 if x > turn else 2)(1),
        lambda: jax.grad(lambda x: x * turn)(jnp.ones(3)),
    )
    try:
        return refused[turn % 3]()
    except Exception as error:
        return jnp.float32(len(type(error).__name__))


WORK = (shapes, functions, gradients, sharded, callbacks, stages, failures)


def do_round(jax: Any, turn: int) -> float:
    """All work of one round; a number that depends on all of it."""
    return sum(float(work(jax, turn)) for work in WORK)


def load(library: str) -> Any:
    """A library, on a host of several devices."""
    jax = importlib.import_module(library)
    importlib.import_module(f"{library}.numpy")
    jax.config.update("jax_num_cpu_devices", _DEVICES)
    return jax


def sample(seconds: float, rounds: int, *, is_cleared: bool) -> Sample:
    """Returns what this process holds now."""
    return Sample(
        round(seconds, 2),
        rounds,
        _resident_bytes(),
        len(os.listdir("/dev/fd")),
        _number_of_threads(),
        len(gc.get_objects()),
        is_cleared,
    )


def _resident_bytes() -> int:
    if _PROC.exists():
        pages = int((_PROC / "statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGESIZE")
    # macOS: in KiB.
    return int(_listed("-o", "rss=")[0]) * 1024


def _number_of_threads() -> int:
    if _PROC.exists():
        return len(os.listdir(_PROC / "task"))
    # macOS: one line for each thread, below a heading.
    return len(_listed("-M")) - 1


def _listed(*options: str) -> list[str]:
    """Returns the lines that `ps` prints about this process."""
    command = ["ps", *options, "-p", str(os.getpid())]
    return subprocess.check_output(command, encoding="utf-8").splitlines()


_PROC = Path("/proc/self")
"""What Linux tells about this process."""


def return_free_memory() -> None:
    """Gives the system what is free but kept by the allocator of C, where that can be asked to."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def soak(jax: Any, seconds: float, between: float = 1.0) -> Iterator[Sample]:
    """Works for some time, and samples what the process holds."""
    start = time.monotonic()
    turn, due = 0, 0.0
    while (passed := time.monotonic() - start) < seconds:
        do_round(jax, turn)
        turn += 1
        is_due = turn % _BETWEEN_CLEARINGS == 0
        if is_due:
            jax.clear_caches()
            gc.collect()
            return_free_memory()
        if is_due or passed >= due:
            due = passed + between
            yield sample(time.monotonic() - start, turn, is_cleared=is_due)


def levels(samples: Sequence[Sample]) -> list[float]:
    """What memory is once caches are cleared: medians of a few clearings that follow each other."""
    cleared = [s.memory for s in samples if s.is_cleared]
    parts = range(max(1, len(cleared) - _TOGETHER + 1))
    return [statistics.median(cleared[i : i + _TOGETHER]) for i in parts]


class Verdict(NamedTuple):
    """Whether a process stayed as it was after its warm-up, and in which words.

    Attributes:
        growth: of memory after clearings, from the first level after the warm-up to the highest.
        is_flat: whether memory, descriptors and threads are constant.
        text: the figures.
    """

    growth: float
    is_flat: bool
    text: str


def judge(samples: Sequence[Sample], seconds: float) -> Verdict:
    """What became of a process."""
    warm = [s for s in samples if s.seconds >= seconds * _WARM_UP]
    first, *later = levels(warm)
    highest = max([first, *later])
    growth = highest / first - 1
    descriptors = max(s.descriptors for s in warm) - warm[0].descriptors
    threads = max(s.threads for s in warm) - warm[0].threads
    objects = [s.objects for s in warm if s.is_cleared]
    text = (
        f"{samples[-1].rounds} rounds in {seconds:.0f} s: {first / _MEGABYTE:.0f} MB after the "
        f"warm-up, {highest / _MEGABYTE:.0f} MB at most ({growth:+.1%}); "
        f"{warm[0].descriptors} file descriptors ({descriptors:+d}), "
        f"{warm[0].threads} threads ({threads:+d}), "
        f"{objects[0]} objects ({objects[-1] - objects[0]:+d})"
    )
    return Verdict(growth, growth <= _GROWTH and descriptors <= 0 and threads <= 0, text)


_WIDTH, _HEIGHT, _LEFT, _TOP = 640, 180, 60, 30


def chart(runs: dict[str, Sequence[Sample]], seconds: float) -> str:
    """Memory over time as a picture, in SVG: a line for each library."""
    highest = max(s.memory for samples in runs.values() for s in samples) * 1.1
    colours = ("#1f77b4", "#d62728", "#2ca02c")
    bottom = _TOP + _HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH + 140}" height="{bottom + 40}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect x="{_LEFT}" y="{_TOP}" width="{_WIDTH}" height="{_HEIGHT}" fill="none" '
        'stroke="#999"/>',
        f'<text x="{_LEFT}" y="{_TOP - 10}">resident memory in MB, over minutes</text>',
    ]
    for part in range(5):
        value, y = highest * part / 4, bottom - _HEIGHT * part / 4
        x, minutes = _LEFT + _WIDTH * part / 4, seconds * part / 4 / 60
        parts += [
            f'<text x="{_LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">{value / 2**20:.0f}</text>',
            f'<text x="{x:.0f}" y="{bottom + 18}" text-anchor="middle">{minutes:.1f}</text>',
        ]
    for (name, samples), colour in zip(runs.items(), colours, strict=False):
        places = [
            (_LEFT + _WIDTH * s.seconds / seconds, bottom - _HEIGHT * s.memory / highest)
            for s in samples
        ]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts += [
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>',
            f'<text x="{_LEFT + _WIDTH + 8}" y="{places[-1][1] + 4:.0f}" fill="{colour}">{name} '
            f"{samples[-1].memory / _MEGABYTE:.0f}</text>",
        ]
    return "\n".join([*parts, "</svg>", ""])


def main() -> int:
    """Runs the command; its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30.0, help="how long")
    parser.add_argument("--library", default="minijax", help="the library that works")
    parser.add_argument("--samples", type=Path, help="where the samples are written, as JSON")
    parser.add_argument("--beside", type=Path, action="append", default=[], help="other samples")
    parser.add_argument("--chart", type=Path, help="where the picture is written")
    options = parser.parse_args()
    seconds = 60 * options.minutes
    samples = []
    for each in soak(load(options.library), seconds):
        samples.append(each)
        if each.is_cleared:
            print(f"{each.seconds:7.0f} s  {each.memory / _MEGABYTE:6.0f} MB  {each}", flush=True)
    verdict = judge(samples, seconds)
    print(f"{options.library}: {verdict.text}")
    if options.samples:
        options.samples.write_text(json.dumps(samples) + "\n", encoding="utf-8")
    if options.chart:
        runs: dict[str, Sequence[Sample]] = {options.library: samples}
        for path in options.beside:
            listed = json.loads(path.read_text(encoding="utf-8"))
            runs[path.stem] = [Sample(*each) for each in listed]
        options.chart.write_text(chart(runs, seconds), encoding="utf-8")
    return 0 if verdict.is_flat else 1


if __name__ == "__main__":
    sys.exit(main())
