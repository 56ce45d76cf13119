"""A soak tells what grows; and what a round of new work makes dies with the caches."""

import gc
import os
import shutil
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import minijax as jax
from minijax.core import history
from tools import soak
from tools.soak import Sample

pytestmark = pytest.mark.feature("RB-13")


def samples(*, growth: float = 0.0, descriptors: int = 0, threads: int = 0) -> list[Sample]:
    return [
        Sample(
            s,
            s,
            int(1e8 * (1 + growth * s / 60)),
            9 + descriptors * s // 59,
            5 + threads * s // 59,
            7,
            s % 5 == 0,
        )
        for s in range(60)
    ]


@pytest.mark.parametrize(
    ("grown", "is_flat"),
    [
        ({}, True),
        ({"growth": 0.01}, True),
        ({"growth": 0.1}, False),
        ({"descriptors": 1}, False),
        ({"threads": 1}, False),
    ],
)
def test_growth_is_noticed(grown: dict[str, float], is_flat: bool) -> None:
    assert soak.judge(samples(**grown), 60.0).is_flat == is_flat


def test_growth_while_it_warms_up_is_none() -> None:
    early = [s._replace(memory=s.memory // 2) for s in samples() if s.seconds < 10]
    assert soak.judge([*early, *samples()[10:]], 60.0).growth == 0.0


def test_a_chart_has_a_line_for_each_library() -> None:
    text = soak.chart({"minijax": samples(), "jax": samples(growth=1.0)}, 60.0)
    assert text.count("<polyline") == 2
    assert ">minijax 95<" in text
    assert ">jax 189<" in text


def objects() -> Counter[str]:
    """What Python's collector knows of once programs are forgotten, and why they were traced."""
    jax.clear_caches()
    history._places.clear()
    gc.collect()
    return Counter(type(each).__name__ for each in gc.get_objects())


@pytest.mark.turns(3)
@pytest.mark.usefixtures("young_heap")
@pytest.mark.parametrize("work", [w for w in soak.WORK if w is not soak.callbacks])
def test_new_work_dies_with_the_caches(work: Callable[[Any, int], Any]) -> None:
    with jax.cpu_devices(4):
        for turn in (1, 2, 3):
            work(jax, turn)
        before = objects()
        for turn in (7, 8, 9):
            work(jax, turn)
        grown = objects() - before
    # A set of classes that `isinstance` has seen is made anew as classes are made.
    noise = {"ReferenceType", "builtin_function_or_method", "Counter", "set"}
    assert {name: count for name, count in grown.items() if name not in noise} == {}


@pytest.mark.slow
def test_mlir_forgets_with_the_caches() -> None:
    # A context keeps each type, attribute and location that ever was: 13 KB for a round.
    program = """
    import gc
    from minijax.lowering import stablehlo
    from tools import soak
    jax = soak.load("minijax")
    gc.disable()
    made = 0
    for work in soak.WORK:
        for turn in (0, 1):
            work(jax, turn)
        made += len(stablehlo._contexts)
        jax.clear_caches()
        print(work.__name__, len(stablehlo._contexts))
    print("made", made > 5)
    """
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    assert found.stdout.splitlines() == [*(f"{w.__name__} 0" for w in soak.WORK), "made True"]


@pytest.mark.skipif(shutil.which("ps") is None, reason="ps is missing, which macOS always has")
def test_sample_needs_no_proc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = soak.sample(0.0, 0, is_cleared=False)
    # As on macOS, where `ps` lists the threads of a process.
    monkeypatch.setattr(soak, "_PROC", tmp_path / "proc")
    assert soak._resident_bytes() == pytest.approx(before.memory, rel=0.2)
    (tmp_path / "ps").write_text("#!/bin/sh\nprintf 'USER PID\\na 1\\n  1\\n  1\\n'\n", "utf-8")
    (tmp_path / "ps").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert soak._number_of_threads() == 3
