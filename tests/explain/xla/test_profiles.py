"""`explain.profile` sums up where the time went, and a trace has the names of users' functions."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import explain, profiler
from minijax.explain.xla import recording
from minijax.explain.xla.recording import Event
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P

pytestmark = [
    pytest.mark.feature("EX-08"),
    # A type that jaxlib 0.11 makes at its first use; the warning as an error would end the process.
    pytest.mark.filterwarnings("ignore:builtin type event_stats:DeprecationWarning"),
]


@jax.jit
def multiplied(x: Any) -> Any:
    return jnp.tanh(x @ x)


def test_phases_add_up_and_kernels_have_names_and_lines() -> None:
    def run(x: Any) -> Any:
        for _ in range(3):
            x = multiplied(x)
        return x

    found = explain.profile(run)(np.ones((256, 256), np.float32))
    (product,) = [x for x in found.kernels if "dot_general" in x.operations]

    assert tuple(found.phases) == (
        "Python",
        "kernels",
        "waiting",
        "transfers",
        "compiling",
        "starting",
    )
    assert sum(found.phases.values()) == pytest.approx(found.seconds)
    assert all(taken >= 0 for taken in found.phases.values())
    assert [(x.name, x.times) for x in found.calls] == [("multiplied", 3)]
    assert product.program == "jit_multiplied"
    assert product.times == 3
    assert product.seconds > 0
    assert [x.function_name for x in product.lines] == ["multiplied"]


def test_time_in_python_is_that_of_python() -> None:
    def slow(x: Any) -> Any:
        time.sleep(0.05)
        return multiplied(x)

    found = explain.profile(slow)(np.ones((8, 8), np.float32))
    assert 0.05 <= found.phases["Python"] <= found.seconds


def test_waiting_is_that_for_devices() -> None:
    def wait(x: Any) -> Any:
        for _ in range(20):
            x = multiplied(x)
        return float(x[0, 0])

    found = explain.profile(wait)(np.ones((400, 400), np.float32))
    assert found.phases["waiting"] + found.phases["kernels"] + found.phases["starting"] > (
        0.5 * found.seconds
    )


def test_compilation_is_seen_without_a_warm_up() -> None:
    def function(x: Any) -> Any:
        return jax.jit(lambda x: jnp.cos(x) * 3)(x)

    found = explain.profile(function, warm_up=0)(np.ones(8, np.float32))
    assert found.phases["compiling"] > 0


def test_transfers_are_seen() -> None:
    x = np.ones((1000, 1000), np.float32)
    found = explain.profile(lambda: jax.device_put(x))()
    assert found.phases["transfers"] + found.transfers > 0


@pytest.mark.parametrize("over", ["jit", "shard_map", "pmap"])
def test_kernels_of_many_devices_are_counted_together(over: str) -> None:
    def total(x: Any) -> Any:
        return jax.lax.psum(jnp.sin(x), "i")

    with jax.cpu_devices(8):
        mesh = Mesh(np.array(jax.devices()), "i")
        x: Any = np.ones((8, 1000), np.float32)
        if over == "jit":
            function: Any = jax.jit(lambda x: jnp.sin(x).sum(0))
            x = jax.device_put(x, NamedSharding(mesh, P("i")))
        elif over == "pmap":
            function = jax.pmap(total, "i")
        else:
            function = jax.shard_map(total, mesh=mesh, in_specs=P("i"), out_specs=P())
        found = explain.profile(function)(x)

    (sine,) = [x for x in found.kernels if "sin" in x.operations]
    assert sine.times == 8
    assert sine.lines


def test_report_fits_a_screen() -> None:
    def many(x: Any) -> Any:
        for f in (jnp.sin, jnp.cos, jnp.tanh, jnp.exp, jnp.sinh, jnp.sqrt, jnp.sum, jnp.prod) * 2:
            x = f(jnp.flip(x)) * jnp.ones(3)
        return x

    found = explain.profile(many)(np.ones(3, np.float32))
    lines = str(found).splitlines()

    assert lines[0].startswith("many: ")
    assert lines[2].split() == ["calling", "thread", "time", "part"]
    assert len(lines) < 48
    assert ("and " in lines[-1]) == (len(found.kernels) > 15)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match=r"explain\.profile"):
        explain.profile(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="warm_up must not be negative"):
        explain.profile(multiplied, warm_up=-1)


def test_only_one_profile_is_taken_at_a_time(tmp_path: Path) -> None:
    with (
        profiler.trace(tmp_path),
        pytest.raises(RuntimeError, match="a profile is being taken already"),
    ):
        explain.profile(multiplied)(np.ones((2, 2), np.float32))


def test_a_loop_counts_without_what_it_runs() -> None:
    def ran(name: str, start: float, end: float) -> Event:
        return Event(name, start, end, name, "p")

    threads = [
        [ran("while", 0, 10), ran("a", 1, 3), ran("inner", 4, 9), ran("b", 5, 8), ran("c", 11, 12)],
        [Event("other", 0, 5)],
    ]
    found = {x.operation: x.seconds for x in recording.kernel_runs(threads)}
    assert found == {"while": 3, "a": 2, "inner": 2, "b": 3, "c": 1}


def test_time_that_is_covered_twice_counts_once() -> None:
    assert recording.covered([(5, 6), (0, 2), (1, 3)]) == 4


@pytest.mark.feature("EX-09")
def test_perfetto_opens_a_trace_with_the_names_of_users(tmp_path: Path) -> None:
    def training() -> None:
        multiplied(np.ones((8, 8), np.float32)).block_until_ready()

    training()
    with profiler.trace(tmp_path, create_perfetto_trace=True):
        training()
    (file,) = tmp_path.glob("plugins/profile/*/perfetto_trace.json.gz")
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    names = {event["name"] for event in events if "name" in event}
    line = training.__code__.co_firstlineno

    # Perfetto reads the Trace Event Format: complete events have a beginning and a duration.
    assert {"ph", "pid", "tid", "ts", "dur"} <= {k for e in events if e.get("ph") == "X" for k in e}
    assert f"$test_profiles.py:{line} training" in names
    assert "PjitFunction(multiplied)" in names
    assert "jit_multiplied" in {e["args"].get("hlo_module") for e in events if "args" in e}
