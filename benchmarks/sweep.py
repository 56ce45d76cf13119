"""A sweep over the hundred most used functions: an eager call, staging, and the compiled work.

    python benchmarks/sweep.py --jax-python .venv-jax/bin/python [--only NAME]

For each function and each of the three, the best of many samples as a ratio to JAX's; the ten
worst of each are listed.  Functions that XLA compiles to the same operations as JAX's do the same
work, so their ratios are the machine's noise, and only the others are listed for it.  `make bench`
runs it after the table.
"""

from __future__ import annotations

import argparse
import functools
import math
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from functions import FUNCTIONS, LARGE, SMALL, arguments
from measured import unseen
from remote import RemoteWorker, WorkerError

BUDGETS = {"eager": 1.0, "stage": 0.25, "run": 1.0}
"""The most that each may cost, as a multiple of JAX."""

NOISE = 0.05
WORST = 10
ROUNDS = 3
SECONDS = 0.01

IDLE = frozenset({"bitcast", "constant", "get-tuple-element", "parameter", "tuple"})
"""Operations that take no time."""

Ratios = dict[str, dict[str, float]]


def samples(jax: Any, name: str, seconds: float) -> dict[str, list[float]]:
    """Seconds of one eager call on small arrays, of staging it, and of its work on large ones."""
    eager, compiled, small, large = _prepared(jax, name)

    def stage() -> Any:
        return jax.make_jaxpr(unseen(eager))(*small)

    def work() -> Any:
        return jax.block_until_ready(compiled(*large))

    def call() -> Any:
        return eager(*small)

    return {
        "eager": _sampled(call, seconds, jax.block_until_ready),
        "stage": _sampled(stage, seconds),
        "run": _sampled(work, seconds),
    }


def operations(jax: Any, name: str) -> list[str]:
    """What the compiled program does on large arrays: each operation, its shape and how often."""
    _, compiled, _, large = _prepared(jax, name)
    text = compiled.lower(*large).compile().as_text()
    found = re.findall(r"^ *(?:ROOT )?%?[\w.-]+ = (\(.*?\)|\S+) ([\w-]+)\(", text, re.MULTILINE)
    counted = Counter(f"{operation} {shape}" for shape, operation in found if operation not in IDLE)
    return sorted(f"{each} x{count}" for each, count in counted.items())


@functools.cache
def _prepared(jax: Any, name: str) -> tuple[Callable[..., Any], Any, list[Any], list[Any]]:
    find, kinds = FUNCTIONS[name]
    function = find(jax)
    small, large = (arguments(jax, kinds, rows) for rows in (SMALL, LARGE))
    compiled = jax.jit(unseen(function))
    jax.block_until_ready([function(*small), compiled(*large)])
    return function, compiled, small, large


def _sampled(
    action: Callable[[], Any], seconds: float, wait: Callable[[Any], Any] = lambda x: x
) -> list[float]:
    start = time.perf_counter()
    wait(action())
    once = time.perf_counter() - start
    count = max(1, min(1000, int(0.002 / once)))
    found = []
    end = time.perf_counter() + seconds
    while not found or time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(count):
            result = action()
        wait(result)
        found.append((time.perf_counter() - start) / count)
    return found


def measure(
    ours: RemoteWorker, theirs: RemoteWorker, names: list[str]
) -> tuple[Ratios, frozenset[str]]:
    """For each function its three ratios, and which compile to equal operations.

    The two libraries take turns.
    """
    ratios: Ratios = {}
    equal = set()
    for name in names:
        best: list[dict[str, float]] = [{}, {}]
        try:
            for turn in range(ROUNDS):
                sides = list(zip((ours, theirs), best, strict=True))
                for worker, so_far in sides if turn % 2 else reversed(sides):
                    for kind, taken in worker.ask("sweep", name=name, seconds=SECONDS).items():
                        so_far[kind] = min(so_far.get(kind, math.inf), *taken)
            if ours.ask("operations", name=name) == theirs.ask("operations", name=name):
                equal.add(name)
        except WorkerError as error:
            print(f"{name}: {str(error).strip().splitlines()[-1]}", file=sys.stderr)
            continue
        ratios[name] = {kind: best[0][kind] / best[1][kind] for kind in BUDGETS}
    return ratios, frozenset(equal)


def report(ratios: Ratios, equal: frozenset[str], asked: int) -> str:
    """How many functions keep each budget, and the worst ones."""
    lines = [f"Functions: {len(ratios)} of {asked} measured, as ratios to JAX"]
    for kind, budget in BUDGETS.items():
        figures = sorted(((each[kind], name) for name, each in ratios.items()), reverse=True)
        kept = sum(ratio <= budget * (1 + NOISE) for ratio, _ in figures)
        mean = math.exp(sum(math.log(ratio) for ratio, _ in figures) / max(len(figures), 1))
        if kind == "run":
            figures = [(ratio, name) for ratio, name in figures if name not in equal]
        worst = ", ".join(f"{name} {ratio:.2f}" for ratio, name in figures[:WORST])
        lines.append(f"  {kind:5}  mean {mean:.2f}, {kept} within {budget:.2f}; worst: {worst}")
    lines.append(f"  {len(equal)} compile to the operations of JAX's program; not listed under run")
    return "\n".join(lines)


def sweep(python: str, jax_python: str, subject: str = "minijax", only: str = "") -> str:
    """Measures all functions, or those whose name contains `only`; the report."""
    names = [name for name in FUNCTIONS if only in name]
    ours, theirs = RemoteWorker(python, subject, 1), RemoteWorker(jax_python, "jax", 1)
    try:
        return report(*measure(ours, theirs, names), len(names))
    finally:
        ours.close()
        theirs.close()


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jax-python", required=True, help="the interpreter that has JAX")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has minijax")
    parser.add_argument("--only", default="", help="measure functions whose name contains this")
    options = parser.parse_args()
    print(sweep(options.python, options.jax_python, only=options.only))


if __name__ == "__main__":
    _main()
