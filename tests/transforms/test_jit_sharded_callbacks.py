"""Python called from programs on several devices: how often, with what, and what cannot work."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental import checkify, io_callback
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P

X = np.arange(8, dtype=np.float32)
LIKE_X = jax.ShapeDtypeStruct((8,), np.float32)


@pytest.fixture
def split() -> Iterator[Any]:
    with jax.cpu_devices(8):
        mesh = Mesh(np.array(jax.devices()[:2]), "x")
        yield jax.device_put(X, NamedSharding(mesh, P("x")))


class Recorder:
    """A callback that remembers what it was called with, and gives three times as much."""

    def __init__(self) -> None:
        self.seen: list[list[float]] = []

    def __call__(self, value: Any) -> Any:
        self.seen.append(np.asarray(value).tolist())
        return np.asarray(value) * 3


CALLS: dict[str, Callable[[Recorder, Any], Any]] = {
    "pure_callback": lambda record, a: jax.pure_callback(record, LIKE_X, a),
    "io_callback": lambda record, a: io_callback(record, LIKE_X, a),
}


@pytest.mark.feature("EF-04")
@pytest.mark.parametrize("name", CALLS)
def test_callback_is_called_once_with_the_whole_value(split: Any, name: str) -> None:
    record = Recorder()

    out = jax.jit(lambda a: CALLS[name](record, a) + 1)(split)

    for shard in out.addressable_shards:
        np.testing.assert_array_equal(shard.data, (3 * X + 1)[shard.index])
    assert record.seen == [X.tolist()]


@pytest.mark.feature("EF-04")
def test_debug_callback_is_called_once_with_the_whole_value(split: Any) -> None:
    record = Recorder()

    def f(a: Any) -> Any:
        jax.debug.callback(record, a)
        return a.sum()

    assert jax.jit(f)(split) == 28
    jax.effects_barrier()
    assert record.seen == [X.tolist()]


def test_partitioned_callback_is_called_by_each_device_with_its_piece(split: Any) -> None:
    record = Recorder()

    def f(a: Any) -> Any:
        jax.debug.callback(record, a, partitioned=True)
        return a * 2

    jax.jit(f)(split).block_until_ready()
    jax.effects_barrier()
    assert sorted(record.seen) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_partitioned_print_shows_the_pieces(split: Any, capsys: pytest.CaptureFixture[str]) -> None:
    jax.jit(lambda a: jax.debug.print("piece {}", a, partitioned=True))(split)
    jax.effects_barrier()

    assert sorted(capsys.readouterr().out.splitlines()) == [
        "piece [0. 1. 2. 3.]",
        "piece [4. 5. 6. 7.]",
    ]


def test_print_in_a_loop_shows_each_step_once(
    split: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def body(carry: Any, i: Any) -> Any:
        jax.debug.print("step {}", i)
        return carry + 1, None

    jax.jit(lambda a: jax.lax.scan(body, a, np.arange(3))[0])(split)
    jax.effects_barrier()

    assert capsys.readouterr().out == "step 0\nstep 1\nstep 2\n"


@pytest.mark.parametrize("name", CALLS)
def test_exception_before_a_collective_surfaces(split: Any, name: str) -> None:
    def fail(value: Any) -> Any:
        raise KeyError("lost")

    f = jax.jit(lambda a: CALLS[name](fail, a).sum() + a.sum())

    with pytest.raises(KeyError, match="lost"):
        f(split).block_until_ready()


def ordered_print(a: Any) -> Any:
    jax.debug.print("{}", a, ordered=True)
    return a


ORDERED: dict[str, Callable[[Any], Any]] = {
    "print": ordered_print,
    "io_callback": lambda a: io_callback(lambda v: v, LIKE_X, a, ordered=True),
    "cond": lambda a: jax.lax.cond(a.sum() > 0, ordered_print, lambda a: a, a),
}


@pytest.mark.feature("EF-02", "EF-03")
@pytest.mark.parametrize("name", ["print", "cond"])
def test_ordered_effects_are_refused_when_lowered(split: Any, name: str) -> None:
    with pytest.raises(ValueError, match=r"ordered effects(.|\n)*on 2 devices"):
        jax.jit(ORDERED[name]).lower(split)


@pytest.mark.feature("EF-03")
def test_the_first_device_makes_ordered_calls(split: Any) -> None:
    out = jax.jit(ORDERED["io_callback"])(split)

    np.testing.assert_array_equal(out, X)


@pytest.mark.feature("EF-03")
@pytest.mark.parametrize("name", ORDERED)
def test_ordered_effects_run_on_a_mesh_of_one_device(split: Any, name: str) -> None:
    mesh = Mesh(np.array(jax.devices()[5:6]), "x")
    x = jax.device_put(X, NamedSharding(mesh, P("x")))

    out = jax.jit(ORDERED[name])(x)

    jax.effects_barrier()
    np.testing.assert_array_equal(out, X)
    assert out.devices() == {jax.devices()[5]}


@pytest.mark.feature("LG-06")
def test_debug_nans_names_the_operation_at_fault(split: Any) -> None:
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match=r"log: .*NaN"):
        jax.jit(lambda a: jnp.log(a - 1) + 1)(split)


def test_checkify_tells_what_failed(split: Any) -> None:
    def f(a: Any) -> Any:
        checkify.check(a.sum() < 0, "sum is {s}", s=a.sum())
        return a * 2

    error, out = jax.jit(checkify.checkify(f))(split)

    assert "sum is 28.0" in error.get()
    assert out.sharding == split.sharding


@pytest.mark.feature("LG-01", "LG-02")
def test_log_compiles_tells_shapes_and_placements(
    split: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with jax.log_compiles(True), caplog.at_level(logging.WARNING, logger="minijax"):
        jax.jit(lambda counted: counted - 23)(split)

    text = caplog.text
    assert "Compiling <lambda> for jit on 2 device(s) with global shapes and types." in text
    assert "Argument mapping: (counted: ShapedArray(float32[8]) as NamedSharding(" in text
    for step in ("tracing", "jaxpr to StableHLO lowering", "XLA compilation"):
        assert f"Finished {step} of <lambda> for jit in" in text


def fail_if_negative(x: Any) -> Any:
    if np.asarray(x).sum() < 0:
        raise KeyError(float(np.asarray(x).sum()))
    return np.asarray(x)


THREADED: dict[str, Callable[[Any], Any]] = {
    "one": lambda a: jax.pure_callback(fail_if_negative, LIKE_X, a).sum(),
    "two": lambda a: (
        jax.pure_callback(fail_if_negative, LIKE_X, a)
        + jax.pure_callback(lambda x: 2 * fail_if_negative(x), LIKE_X, a)
    ).sum(),
    "other": lambda a: io_callback(fail_if_negative, LIKE_X, a).sum(),
}


@pytest.mark.feature("RB-03")
@pytest.mark.sampled(4)
@pytest.mark.parametrize("is_split", [True, False])
@pytest.mark.parametrize("name", THREADED)
def test_failures_belong_to_the_run_that_failed(split: Any, name: str, is_split: bool) -> None:
    f = jax.jit(THREADED[name])
    good = split if is_split else jnp.asarray(X)
    bad = -good
    expected = float(f(good))
    wrong: list[object] = []

    def call(fails: bool) -> None:
        for _ in range(60):
            try:
                got = float(f(bad if fails else good))
            except KeyError as error:
                got = error.args[0]
            # A result of a good run, or what the failing one was given.
            if got != expected if not fails else got >= 0:
                wrong.append((fails, got))

    threads = [threading.Thread(target=call, args=(i % 2 == 0,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert float(f(good)) == expected


@pytest.mark.feature("RB-03")
def test_one_failure_of_several_leaves_nothing_behind(split: Any) -> None:
    f = jax.jit(THREADED["two"])
    for _ in range(3):
        with pytest.raises(KeyError):
            f(-split)
        assert float(f(split)) == 3 * X.sum()


@pytest.mark.feature("EF-03")
@pytest.mark.parametrize("free", ["x", "y", "both"])
@pytest.mark.parametrize("how", ["eager", "jit", "in a loop"])
def test_each_region_prints_once_along_axes_left_to_the_compiler(how: str, free: str) -> None:
    with jax.cpu_devices(8):
        mesh = Mesh(np.array(jax.devices()).reshape(2, 2, 2), ("x", "y", "z"))
        manual = {"x": ("y", "z"), "y": ("x", "z"), "both": ("z",)}[free]
        x = jax.device_put(X, NamedSharding(mesh, P(("x", "y", "z"))))
        seen: list[Any] = []

        def show(block: Any) -> Any:
            jax.debug.callback(lambda value: seen.append(np.asarray(value).tolist()), block)
            return 2 * block

        def body(block: Any) -> Any:
            if how == "in a loop":
                return jax.lax.fori_loop(0, 1, lambda i, own: show(own), block)
            return show(block)

        spec = P(manual)
        run = jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec, axis_names=set(manual))
        out = (run if how == "eager" else jax.jit(run))(x)
        np.testing.assert_array_equal(out, 2 * X)
        jax.effects_barrier()
        assert sorted(seen) == X.reshape(2 ** len(manual), -1).tolist()


@pytest.mark.feature("PM-14")
def test_each_device_makes_ordered_calls_in_its_order() -> None:
    calls: dict[int, list[int]] = {}

    def note(device: Any, step: int) -> None:
        calls.setdefault(int(device), []).append(int(step))

    def f(x: Any) -> Any:
        for step in range(3):
            io_callback(note, None, jax.lax.axis_index("i"), step, ordered=True)
        return x

    with jax.cpu_devices(4):
        mapped, x = jax.pmap(f, axis_name="i"), np.arange(4.0, dtype=np.float32)
        mapped(x), mapped(x)
        jax.effects_barrier()
    assert calls == dict.fromkeys(range(4), [0, 1, 2] * 2)


@pytest.mark.feature("RB-02")
@pytest.mark.parametrize("shape", [(), (8,)])
@pytest.mark.parametrize(
    "dtype", [jnp.float8_e5m2, jnp.bfloat16, jnp.float16, np.float32, np.complex64, np.int16]
)
def test_devices_get_what_python_returned_to_the_bit(split: Any, dtype: Any, shape: Any) -> None:
    given = np.array([-0.0, 0.0, 1.0, -2.0, -0.0, 0.5, 0.0, -1.0]).astype(dtype)
    given = given if shape else given[0]
    if dtype is np.complex64:
        given = np.conj(given)

    def called(_: Any) -> Any:
        return given

    result = jax.ShapeDtypeStruct(shape, dtype)
    out = jax.jit(lambda a: jax.pure_callback(called, result, a))(split)

    assert out.dtype == dtype
    for shard in out.addressable_shards:
        assert np.asarray(shard.data).tobytes() == given.tobytes()
