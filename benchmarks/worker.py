"""A process that runs programs on one library and measures them: `worker.py LIBRARY DEVICES`.

It reads requests, one JSON object a line, and answers each with one line. LIBRARY is the module to
import: `jax`, `minijax`, or `raw` for jaxlib alone; it sees the host as DEVICES devices.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

SAMPLE_SECONDS = 0.004
"""How long one sample of a repeated action should last."""


class Worker:
    """The programs under measurement, and the answers to requests."""

    def __init__(self, library: str, devices: int) -> None:
        self.library = library
        self.devices = devices
        self.jax: Any = None if library == "raw" else importlib.import_module(library)
        if self.jax is not None:
            for name in ("numpy", "lax", "random", "nn"):
                importlib.import_module(f"{library}.{name}")
            self.jax.config.update("jax_num_cpu_devices", devices)
        self.programs: dict[str, Any] = {}
        self.actions: dict[str, Callable[[], Any]] = {}
        self.loops: dict[str, int] = {}

    def prepare(self, row: str, stablehlo: str | None = None) -> dict[str, Any]:
        """Builds and runs a program once: what it computes, and how large it is."""
        if self.jax is None:
            action = importlib.import_module("floor").executor(stablehlo, self.devices)
            self.actions[row] = self._sampled(row, action, lambda x: x and x[0].block_until_ready())
            return {}
        program = importlib.import_module("programs").build(row, self.jax)
        self.programs[row] = program
        answer = {"checksum": list(checksum(self.jax.tree.leaves(program.result())))}
        if program.equations:
            answer["equations"] = program.equations()
        if program.figure:
            self.actions[row] = program.figure
        elif program.fresh:
            self.actions[row] = lambda: _timed(program.fresh())
        else:
            self.actions[row] = self._sampled(row, program.action, self.jax.block_until_ready)
        gc.collect()
        return answer

    def stablehlo(self, row: str) -> dict[str, Any]:
        """The text of the program that one action executes, where it executes one."""
        program = self.programs[row]
        return {"stablehlo": program.stablehlo and program.stablehlo()}

    def measure(self, row: str, seconds: float) -> dict[str, Any]:
        """Samples of the cost of one action, taken for about `seconds`, one at least."""
        sample = self.actions[row]
        samples: list[float] = []
        end = time.perf_counter() + seconds
        while not samples or time.perf_counter() < end:
            samples.append(sample())
        return {"samples": samples}

    def forget(self, row: str) -> dict[str, Any]:
        """Frees what a program holds."""
        for kept in (self.programs, self.actions, self.loops):
            kept.pop(row, None)
        gc.collect()
        return {}

    def sweep(self, name: str, seconds: float) -> dict[str, list[float]]:
        """Samples of an eager call, of staging and of a compiled call of one function."""
        return importlib.import_module("sweep").samples(self.jax, name, seconds)

    def operations(self, name: str) -> list[str]:
        """What the compiled program of one function of the sweep does; see `sweep.operations`."""
        return importlib.import_module("sweep").operations(self.jax, name)

    def compare(self, names: list[str]) -> dict[str, Any]:
        """What the programs of the comparison give."""
        return importlib.import_module("observe").observe(self.jax, names)

    def compare_sharded(self, names: list[str]) -> dict[str, Any]:
        """What the programs over several devices give."""
        return importlib.import_module("observe_sharded").observe_sharded(self.jax, names)

    def compare_per_device(self, names: list[str]) -> dict[str, Any]:
        """What the programs written per device give."""
        return importlib.import_module("observe_per_device").observe_per_device(self.jax, names)

    def run_random(
        self, statements: list[str], settings: dict[str, bool], **how: Any
    ) -> dict[str, Any]:
        """What the statements of one random program give; see `make fuzz`."""
        observe = importlib.import_module("observe_random").observe
        return {"seen": observe(self.jax, statements, settings, **how)}

    def clear(self) -> dict[str, Any]:
        """Forgets what was traced and compiled."""
        self.jax.clear_caches()
        gc.collect()
        return {}

    def api(self) -> dict[str, Any]:
        """Public names of modules, and their parameters."""
        # JAX tells the values of its settings alone, of which this one was set above.
        self.jax.config.update("jax_num_cpu_devices", -1)
        return importlib.import_module("api").public_names(self.library)

    def _sampled(
        self, row: str, action: Callable[[], Any], wait: Callable[[Any], Any]
    ) -> Callable[[], float]:
        """The cost of one action, the mean of as many as fill a sample."""

        def run(count: int) -> float:
            start = time.perf_counter()
            for _ in range(count):
                result = action()
            wait(result)
            return (time.perf_counter() - start) / count

        run(3)
        self.loops[row] = max(1, min(10_000, int(SAMPLE_SECONDS / min(run(3), run(3)))))
        return lambda: run(self.loops[row])


def _timed(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    result = action()
    seconds = time.perf_counter() - start
    del result
    return seconds


def checksum(leaves: list[Any]) -> Iterator[list[Any]]:
    """For each leaf its shape, its dtype and, of an array, a weighted sum of its elements."""
    for leaf in leaves:
        value = None
        # A description may have `__array__`, to say that it holds no values.
        if hasattr(leaf, "tolist"):
            array = np.asarray(leaf).astype(np.float64)
            weights = np.cos(np.arange(array.size)).reshape(array.shape)
            value = float((array * weights).sum())
        yield [list(leaf.shape), str(leaf.dtype), value]


def _serve(library: str, devices: int) -> None:
    # Requests and answers keep the pipe to themselves: what a program prints goes to stderr.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    worker = Worker(library, devices)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(worker, request.pop("do"))(**request)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
