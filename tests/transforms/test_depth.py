"""Functions inside functions, just past what Python allows: an exception, and no abort."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

import minijax as jax

PRELUDE = """
import minijax as jax
from minijax import lax

NESTS = {
    "fori_loop": lambda f: lambda x: lax.fori_loop(0, 1, lambda i, y: f(y), x),
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0],
    "cond": lambda f: lambda x: lax.cond(x > 0, f, lambda y: y, x),
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (1.0,))[1],
    "grad": lambda f: jax.grad(f),
    "vmap": lambda f: lambda x: jax.vmap(f)(x[None])[0],
    "checkpoint": jax.checkpoint,
    "jit": jax.jit,
}


def nested(name, count):
    f = lambda x: x * x
    for _ in range(count):
        f = NESTS[name](f)
    return f


def outcome(name, count):
    try:
        jax.make_jaxpr(nested(name, count))(1.0)
    except RecursionError:
        return "refused"
    return "staged"

"""


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("fori_loop", (20, *range(40, 72, 3), 300)),
        ("scan", (20, *range(46, 84, 3), 300)),
        ("cond", (20, *range(50, 90, 5), 300)),
        ("jvp", (20, *range(60, 120, 7), 400)),
        ("vmap", (20, *range(50, 110, 7), 400)),
        ("checkpoint", (20, *range(50, 110, 9), 400, 1500)),
        ("jit", (20, *range(50, 130, 9), 400, 1500)),
    ],
)
def test_functions_that_are_nested_too_deep_raise(name: str, counts: tuple[int, ...]) -> None:
    program = f"{PRELUDE}print(*[outcome({name!r}, n) for n in {counts}])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    found = done.stdout.split()
    assert found[0] == "staged"
    assert found[-1] == "refused"
    assert found == sorted(found, reverse=True)


def test_the_text_says_how_deep() -> None:
    program = f"{PRELUDE}jax.make_jaxpr(nested('scan', 300))(1.0)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert "is called too deep inside other functions to be traced" in done.stderr
    assert "sys.getrecursionlimit() is 1000" in done.stderr


def test_jitted_functions_inside_each_other_cost_no_more_than_their_number() -> None:
    f = jax.jit(lambda x: x + 1.0)
    for _ in range(30):
        f = jax.jit(f)
    start = time.perf_counter()
    f.trace(1.0)
    assert time.perf_counter() - start < 20  # Their signatures alone took 2**30 steps.


DEEP = """
import minijax as jax
tree = 1.0
for _ in range(100_000):
    tree = [tree]
compiled = jax.jit(lambda x: x).lower(1.0).compile()
for call in (
    jax.tree.flatten,
    jax.jit(lambda x: x),
    jax.jit(lambda x, y=1: x, static_argnames="y"),
    jax.grad(lambda x: 1.0),
    jax.device_put,
    lambda x: jax.jit(lambda: x)(),
    lambda x: jax.lax.cond(True, lambda: x, lambda: [x]),
    compiled,
    jax.vmap(lambda x: x),
) * 3:
    try:
        call(tree)
    except RecursionError:
        print("told")
"""


@pytest.mark.feature("RB-08")
def test_trees_that_are_too_deep_are_refused_everywhere() -> None:
    # C++ that flattens arguments leaves the exception behind and goes on: SystemError, somewhere.
    done = subprocess.run([sys.executable, "-c", DEEP], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["told"] * 27
