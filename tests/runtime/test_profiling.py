"""Profiles: what is in them, and how they are taken."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import profiler
from minijax.experimental import pxla
from minijax.runtime import profiling
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P

pytestmark = [
    pytest.mark.feature("LG-08"),
    # A type that jaxlib 0.11 makes at its first use; the warning as an error would end the process.
    pytest.mark.filterwarnings("ignore:builtin type event_stats:DeprecationWarning"),
]
X = np.arange(8, dtype=np.float32)


def events(folder: Path) -> dict[str, dict[str, Any]]:
    """The annotations in the profile of a folder, by name, with what they show."""
    (file,) = folder.glob("plugins/profile/*/*.xplane.pb")
    data = profiler.ProfileData.from_file(str(file))
    lines = [line for plane in data.planes for line in plane.lines]
    return {event.name: dict(event.stats) for line in lines for event in line.events}


def profile(folder: Path, function: Callable[[], Any]) -> dict[str, dict[str, Any]]:
    with profiler.trace(folder):
        function()
    return events(folder)


def test_profile_shows_the_steps_of_a_call(tmp_path: Path) -> None:
    def call() -> None:
        jax.clear_caches()
        devices = jax.devices()
        x = jax.device_put(X, NamedSharding(Mesh(np.array(devices), "x"), P("x")))
        jax.jit(lambda x: jnp.sin(x) + 1)(x).block_until_ready()
        pxla.device_put(X, devices, replicate=True)

    with jax.cpu_devices(8):
        found = profile(tmp_path, call)

    assert {"place arguments", "lower", "compile", "replicate"} <= set(found)
    assert found["lower"]["function"] == found["compile"]["function"] == "<lambda>"


def test_profile_shows_annotations_of_users(tmp_path: Path) -> None:
    @profiler.annotate_function
    def read() -> int:
        return 3

    def call() -> None:
        with profiler.TraceAnnotation("mine", shard=3):
            assert read() == 3
        with profiler.StepTraceAnnotation("train", step_num=5):
            profiler.annotate_function(read, name="other", extra=7)()

    found = profile(tmp_path, call)

    assert found["mine"]["shard"] == 3
    assert any(name.endswith("read") for name in found)
    assert found["train"] == {"_r": 1, "step_num": 5}
    assert found["other"]["extra"] == 7


def test_annotated_function_keeps_its_name() -> None:
    def read(x: int) -> int:
        """Reads."""
        return x

    annotated = profiler.annotate_function(read)

    assert (annotated.__name__, annotated.__doc__, annotated(2)) == ("read", "Reads.", 2)


def test_profile_for_perfetto(tmp_path: Path) -> None:
    with profiler.trace(tmp_path, create_perfetto_trace=True):
        jnp.ones(3).block_until_ready()

    (file,) = tmp_path.glob("plugins/profile/*/perfetto_trace.json.gz")
    content = json.loads(gzip.decompress(file.read_bytes()))
    assert content["displayTimeUnit"] == "ns"
    assert len(content["traceEvents"]) > 0


def test_one_profile_at_a_time(tmp_path: Path) -> None:
    profiler.start_trace(tmp_path)
    try:
        with pytest.raises(RuntimeError, match="a profile is being taken already"):
            profiler.start_trace(tmp_path)
    finally:
        profiler.stop_trace()


def test_stopping_what_has_not_begun_is_refused() -> None:
    with pytest.raises(RuntimeError, match="no profile is being taken"):
        profiler.stop_trace()


def test_link_to_perfetto_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError, match="create_perfetto_trace=True"):
        profiler.start_trace(tmp_path, create_perfetto_link=True)


def test_profile_ends_with_an_exception(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="none"), profiler.trace(tmp_path):
        int("none")

    assert events(tmp_path) != {}


def test_memory_profile_is_written(tmp_path: Path) -> None:
    file = tmp_path / "memory.prof"
    profiler.save_device_memory_profile(file)

    assert len(gzip.decompress(file.read_bytes())) > 0


def test_call_that_is_known_makes_no_annotation(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    class Counted:
        def __init__(self, name: str, **_: Any) -> None:
            made.append(name)

        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: object) -> None:
            pass

    f = jax.jit(lambda x: x * 5 + 1)
    x = jnp.array(X)
    monkeypatch.setattr(profiling, "TraceAnnotation", Counted)
    f(x)
    assert "place arguments" in made

    made.clear()
    f(x)

    assert made == []
