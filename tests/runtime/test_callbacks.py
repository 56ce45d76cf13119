"""What the functions may do that programs call: everything works or is refused, nothing hangs.

A process of its own tries all deeds of `calling_back.py` in one situation.  What functions raise
and return is tried here.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental import io_callback
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P
from tests import children

CHILD = Path(__file__).with_name("calling_back.py")
CANNOT_RUN = "RuntimeError jit: a callback of a program over several devices cannot run another"
CANNOT_WAIT = "RuntimeError callback: a callback would wait for ever for what comes after"


def outcomes(situation: str, devices: int) -> dict[str, str]:
    """What became of each deed."""
    found = children.run(CHILD, situation, devices=devices, timeout=240)
    assert found.returncode == 0, found.stdout[-500:] + found.stderr[-3000:]
    return dict(line.split("\t") for line in found.stdout.splitlines())


ON_ONE = ["eager", "jit", "jit elsewhere", "scan", "vmap", "grad"]
OVER_ALL = [
    "sharded",
    "sharded debug",
    "sharded grad",
    "shard_map",
    "eager shard_map",
    "scan in shard_map",
    "pmap",
]
WAITS = {"barrier", "barrier of a thread"}
PROGRAMS = {
    "all",
    "eager",
    "pmap",
    "thread",
    "thread of a thread",
    "new executor",
    "old executor",
    "after a nested",
}
HARMLESS = {"copy async", "shape", "delete"}


@pytest.mark.turns(3)
@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.feature("RB-11")
@pytest.mark.parametrize("devices", [1, 8])
@pytest.mark.parametrize("situation", ON_ONE)
def test_callbacks_on_the_thread_of_the_caller_may_do_anything(
    situation: str, devices: int
) -> None:
    found = outcomes(situation, devices)
    assert len(found) == 31
    assert set(found.values()) == {"['done']"}


@pytest.mark.turns(3)
@pytest.mark.slow
@pytest.mark.feature("RB-11")
@pytest.mark.parametrize("devices", [1, 8])
def test_late_callbacks_may_not_wait_for_effects(devices: int) -> None:
    found = outcomes("late", devices)
    refused = {name for name, outcome in found.items() if outcome != "['done']"}
    assert refused == WAITS
    assert all(CANNOT_WAIT in found[name] for name in WAITS)


@pytest.mark.turns(3)
@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.feature("RB-11")
@pytest.mark.parametrize("situation", OVER_ALL)
def test_callbacks_of_programs_over_devices_compute_on_one(situation: str) -> None:
    # Without a thread more than devices: copies, and what other threads compute, hang.
    found = outcomes(situation, 8)
    refused = {name for name, outcome in found.items() if outcome != "['done']"}
    assert refused == WAITS | PROGRAMS
    for name in refused:
        assert (CANNOT_WAIT if name in WAITS else CANNOT_RUN) in found[name], name


@pytest.mark.turns(3)
@pytest.mark.slow
@pytest.mark.feature("RB-11")
@pytest.mark.parametrize(
    ("situation", "devices"), [("late, its result", 1), ("late, its result", 8), ("overtaken", 8)]
)
def test_callbacks_may_not_wait_for_what_comes_after_the_program(
    situation: str, devices: int
) -> None:
    found = outcomes(situation, devices)
    done = {name for name, outcome in found.items() if outcome == "['done']"}
    assert done == HARMLESS
    for name in found.keys() - done:
        assert CANNOT_WAIT in found[name], (name, found[name])


class Untold(BaseException):
    """An exception that is no `Exception`."""


class WithoutTextError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


EXCEPTIONS = [
    KeyboardInterrupt(),
    SystemExit(3),
    GeneratorExit(),
    StopIteration(1),
    StopAsyncIteration(),
    asyncio.CancelledError(),
    MemoryError(),
    RecursionError(),
    UserWarning("raised"),
    ExceptionGroup("some", [ValueError(1), KeyError(2)]),
    BaseExceptionGroup("some", [KeyboardInterrupt()]),
    Untold("base"),
    WithoutTextError(),
    ValueError("a\0b \ud800"),
    ValueError("x" * 1_000_000),
    RuntimeError("minijax-callback-failure-0"),
]
X = np.arange(8, dtype=np.float32)
LIKE_X = jax.ShapeDtypeStruct(X.shape, X.dtype)


@pytest.fixture
def split() -> Iterator[Any]:
    with jax.cpu_devices(8):
        mesh = Mesh(np.array(jax.devices()), "x")
        yield jax.device_put(X, NamedSharding(mesh, P("x")))


WAYS: dict[str, Callable[[Callable[..., Any], Any], Any]] = {
    "pure": lambda f, x: jax.pure_callback(f, LIKE_X, x),
    "io": lambda f, x: io_callback(f, LIKE_X, x),
    "debug": lambda f, x: (jax.debug.callback(f, x), x)[1],
    "scan": lambda f, x: jax.lax.scan(
        lambda c, _: (jax.pure_callback(f, LIKE_X, c) + c.sum(), None), x, None, length=3
    )[0],
}


@pytest.mark.feature("RB-11")
@pytest.mark.parametrize("is_split", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_every_exception_is_raised_itself(split: Any, way: str, is_split: bool) -> None:
    raised: list[BaseException] = []

    def call(v: Any) -> Any:
        if raised:
            raise raised[0]
        return np.asarray(v)

    x = split if is_split else jnp.asarray(X)
    function = jax.jit(lambda x: WAYS[way](call, x) + x.sum())
    for expected in EXCEPTIONS:
        raised[:] = [expected]
        with pytest.raises(type(expected)) as caught:
            jax.block_until_ready(function(x))
        assert caught.value is expected
        raised.clear()
        jax.block_until_ready(function(x))
        jax.effects_barrier()


@pytest.mark.feature("RB-11")
@pytest.mark.parametrize("is_split", [False, True])
def test_first_of_many_failures_is_raised(split: Any, is_split: bool) -> None:
    def fail(i: Any) -> None:
        raise KeyError(int(i))

    def step(carry: Any, i: Any) -> Any:
        jax.debug.callback(fail, i)
        return carry + carry.sum(), None

    x = split if is_split else jnp.asarray(X)
    with pytest.raises(KeyError) as caught:
        jax.block_until_ready(jax.jit(lambda x: jax.lax.scan(step, x, np.arange(200))[0])(x))
    assert caught.value.args == (0,)
    with contextlib.suppress(KeyError):
        jax.effects_barrier()


WRONG_RESULTS: dict[str, Callable[[Any], Any]] = {
    "none": lambda v: None,
    "text": lambda v: "abc",
    "object": lambda v: object(),
    "objects": lambda v: np.array([None] * 8),
    "list of numbers": lambda v: [float(x) for x in np.asarray(v)],
    "ragged": lambda v: [[1, 2], [3]],
    "twice": lambda v: (v, v),
    "empty": lambda v: np.zeros(0, np.float32),
    "scalar": lambda v: np.float32(1),
    "column": lambda v: np.asarray(v)[:, None],
    "integers": lambda v: np.arange(8),
    "complex": lambda v: np.asarray(v) + 1j,
    "other bytes": lambda v: np.asarray(v).astype(">f4"),
    "dates": lambda v: np.zeros(8, "M8[s]"),
    "records": lambda v: np.zeros(8, [("a", "f4")]),
    "huge": lambda v: np.zeros(1 << 31, np.int8),
}
RIGHT_RESULTS: dict[str, Callable[[Any], Any]] = {
    "array": lambda v: v + 1,
    "tree of one": lambda v: {"a": v + 1},
    "wider": lambda v: np.asarray(v, np.float64) + 1,
    "strided": lambda v: np.arange(2, 18, dtype=np.float32)[::2] / 2,
    "reversed": lambda v: np.arange(8, 0, -1, dtype=np.float32)[::-1],
    "masked": lambda v: np.ma.masked_array(np.asarray(v) + 1),
    "memory": lambda v: memoryview(np.asarray(v) + 1),
}


@pytest.mark.feature("RB-11")
@pytest.mark.parametrize("is_split", [False, True])
@pytest.mark.parametrize("way", ["pure", "io"])
def test_results_are_right_or_refused(split: Any, way: str, is_split: bool) -> None:
    x = split if is_split else jnp.asarray(X)
    made: list[Callable[[Any], Any]] = [lambda v: v]
    function = jax.jit(lambda x: WAYS[way](lambda v: made[0](v), x) + x.sum())
    for made[0] in WRONG_RESULTS.values():
        with pytest.raises(RuntimeError, match=f"{way}_callback: .*returned"):
            jax.block_until_ready(function(x))
    for made[0] in RIGHT_RESULTS.values():
        np.testing.assert_array_equal(function(x), X + 1 + X.sum())


@pytest.mark.feature("RB-11")
def test_large_results_pass() -> None:
    count = 1 << 26
    like = jax.ShapeDtypeStruct((count,), np.uint8)
    out = jax.jit(lambda: jax.pure_callback(lambda: np.ones(count, np.uint8), like)[-1] + 1)()
    assert int(out) == 2


AT_THE_END = {
    "late": ("holding(slow(x, wide)); may_go.set()", 0, "called"),
    "thread": ("threading.Thread(target=lambda: over(y)).start()", 0, "called"),
    "atexit": ("atexit.register(lambda: over(y).block_until_ready())", 0, "called"),
    "main": ("over(y)", 0, "called"),
    "exit": ("deed = sys.exit; over(y).block_until_ready()", 5, ""),
    "exit late": ("deed = sys.exit; holding(slow(x, wide)).block_until_ready()", 5, ""),
}
END = """
import atexit, sys, threading
import numpy as np
import minijax as jax, minijax.numpy as jnp
from minijax.sharding import Mesh, NamedSharding, PartitionSpec as P

may_go = threading.Event()
deed = lambda code: print("called")

def call(v):
    may_go.wait(0.5)
    deed(5)

def show(x):
    jax.debug.callback(call, x)
    return 2 * x

x = jnp.arange(8.0)
y = jax.device_put(x, NamedSharding(Mesh(np.array(jax.devices()), "x"), P("x")))
wide = jnp.full((1000, 1000), 1e-3)
slow = jax.jit(lambda x, m: x + (m @ m @ m)[0, 0] * 0)
holding = jax.jit(show).lower(x).compile()
over = jax.jit(show)
"""


@pytest.mark.turns(3)
@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.feature("RB-11")
@pytest.mark.parametrize("case", AT_THE_END)
def test_interpreter_ends_after_its_callbacks(case: str) -> None:
    program, status, text = AT_THE_END[case]
    found = children.run("-c", END + program, devices=4, timeout=120)
    assert (found.returncode, found.stdout.strip()) == (status, text), found.stderr[-2000:]
