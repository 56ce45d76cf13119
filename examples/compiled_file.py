"""A compiled program in a file: compiled here, it starts elsewhere at once, as the compiler wished.

The program multiplies a chain of matrices. The compiler may choose how each of them lies in memory;
the file holds its machine code and its choices, and another process compiles nothing. Files are
good for one processor, one jaxlib and one set of devices: elsewhere loading is refused, with words.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental import serialize_executable
from minijax.experimental.layout import Format, Layout
from terminal import heading, paragraph, say

SIZE = 64
LENGTH = 6


class Result(NamedTuple):
    """Seconds to compile here, and to load in another process; what both have computed."""

    compiling: float
    loading: float
    here: float
    elsewhere: float
    layouts: list[tuple[int, ...]]


def main() -> Result:
    """Compiles a program, writes it, and has another process run it."""
    heading("A compiled program in a file", f"A chain of {LENGTH} matrices, {SIZE} by {SIZE}.")
    matrices = chain()
    as_it_likes = jax.jit(product, in_shardings=Format(Layout.AUTO))
    kinds = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in matrices]
    begin = time.perf_counter()
    compiled = as_it_likes.lower(kinds).compile()
    compiling = time.perf_counter() - begin
    say(f"  compiled here             {compiling * 1e3:.0f} ms")

    (formats,), _ = compiled.input_formats
    layouts = [chosen.layout.major_to_minor for chosen in formats]
    say(f"  lies in memory as         {layouts[0]}, {layouts[1]}, …")
    here = float(compiled(jax.device_put(matrices, formats)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "product.compiled")
        path.write_bytes(pickle.dumps(serialize_executable.serialize(compiled)))
        loading, elsewhere = run_elsewhere(path)
        size = path.stat().st_size
    say(f"  loaded elsewhere          {loading * 1e3:.0f} ms\n")
    paragraph(
        f"Both say {here:.6f}. The file has {size:,} bytes: machine code, which only this machine "
        "runs. `export`, in model_file.py, writes programs that run anywhere."
    )
    return Result(compiling, loading, here, elsewhere, layouts)


def chain() -> list[np.ndarray]:
    """Random matrices whose product neither vanishes nor grows."""
    random = np.random.default_rng(0)
    every = random.standard_normal((LENGTH, SIZE, SIZE)) / np.sqrt(SIZE)
    return list(every.astype(np.float32))


def product(matrices: list[jax.Array]) -> jax.Array:
    """The mean of squares of the product of a chain."""
    result = matrices[0]
    for matrix in matrices[1:]:
        result = jnp.tanh(result @ matrix)
    return jnp.mean(result**2)


ELSEWHERE = """
import pickle, sys, time
import minijax as jax
from minijax.experimental import serialize_executable
from compiled_file import chain
stored = pickle.loads(open(sys.argv[1], "rb").read())
jax.devices()
begin = time.perf_counter()
compiled = serialize_executable.deserialize_and_load(*stored)
loading = time.perf_counter() - begin
print(loading, float(compiled(chain())))
"""


def run_elsewhere(path: Path) -> tuple[float, float]:
    """The seconds that another process needs to load the program, and what it computes with it."""
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, str(path)],
        cwd=Path(__file__).parent,
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    loading, answer = map(float, done.stdout.split())
    return loading, answer


if __name__ == "__main__":
    main()
