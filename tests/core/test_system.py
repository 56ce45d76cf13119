"""Questions about the operating system have answers on Linux, on macOS, and without `/proc`."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from minijax.core import config, system

ROOT = Path(__file__).resolve().parents[2]

LINUX = pytest.mark.skipif(not system.PROC.exists(), reason="only Linux has /proc")

CPUINFO = """processor\t: 0
model name\t: A processor
cpu MHz\t\t: 2445.406
flags\t\t: fpu sse2

processor\t: 1
model name\t: Another one
"""


@pytest.fixture
def without_proc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Makes this look like macOS, where programs of the system answer instead."""
    monkeypatch.setattr(system, "PROC", tmp_path / "proc")
    monkeypatch.setattr(sys, "platform", "darwin")


def test_cores_do_not_need_an_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1 <= system.cores() <= (os.cpu_count() or 1)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert system.cores() == os.cpu_count()


def test_processor_is_described_by_its_model_and_features(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(system, "PROC", tmp_path)
    (tmp_path / "cpuinfo").write_text(CPUINFO, encoding="utf-8")
    assert system.processor() == "model name\t: A processor\nflags\t\t: fpu sse2"
    assert system.identifies_processor()


@LINUX
@pytest.mark.feature("CW-05")
def test_features_of_this_processor_are_found() -> None:
    assert re.search("^(flags|Features).*:.{9}", system.processor(), re.MULTILINE)


@pytest.mark.usefixtures("without_proc")
def test_processor_of_macos_is_told_by_sysctl(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "sysctl"
    program.write_text('#!/bin/sh\necho "$2: Apple M4"\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert system.processor().endswith("machdep.cpu.brand_string: Apple M4")
    assert system.identifies_processor()
    assert config._folder_of_programs() is not None


@pytest.mark.usefixtures("without_proc")
def test_processor_of_an_unknown_system_is_not_identified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "other")
    assert system.processor()
    assert not system.identifies_processor()
    assert config._folder_of_programs() is None


@pytest.fixture
def stopped() -> Iterator[int]:
    """The number of a process that a signal has stopped."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    child.send_signal(signal.SIGSTOP)
    os.waitpid(child.pid, os.WUNTRACED)
    yield child.pid
    child.kill()
    child.communicate()


@LINUX
def test_stopped_process_is_found_in_proc(stopped: int) -> None:
    assert system.is_stopped(stopped)
    assert not system.is_stopped(os.getpid())
    assert not system.is_stopped(None)


@pytest.mark.usefixtures("without_proc")
@pytest.mark.skipif(shutil.which("ps") is None, reason="ps is missing, which macOS always has")
def test_stopped_process_is_found_by_ps(stopped: int) -> None:
    assert system.is_stopped(stopped)
    assert not system.is_stopped(os.getpid())
    assert not system.is_stopped(None)


@pytest.mark.usefixtures("without_proc")
def test_process_counts_as_running_where_nothing_tells(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not system.is_stopped(os.getpid())


FUNCTION = ctypes.cast(ctypes.pythonapi.Py_IsInitialized, ctypes.c_void_p).value or 0


@LINUX
def test_rights_to_memory_are_those_of_its_map() -> None:
    assert system.may_access(FUNCTION, "x")
    assert system.may_access(id(FUNCTION), "r")
    assert not system.may_access(id(FUNCTION), "x")
    assert not system.may_access(8, "r")


@pytest.mark.usefixtures("without_proc")
def test_addresses_that_macos_never_maps_are_refused() -> None:
    assert system.may_access(0x1_0000_4000, "x")
    assert [system.may_access(x, "r") for x in (0, 8, 2**62, 2**64 - 1)] == [False] * 4


def test_open_sockets_are_among_the_descriptors() -> None:
    with socket.socket() as opened:
        assert opened.fileno() in system.open_descriptors()
    assert opened.fileno() not in system.open_descriptors()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("sys.version = '3.14.2 free-threading build (main)'", "free-threaded CPython"),
        ("del os.register_at_fork", "minijax supports Linux and macOS"),
    ],
)
def test_python_that_is_not_supported_is_refused_before_jaxlib(change: str, problem: str) -> None:
    program = (
        f"import os, sys; {change}\ntry: import minijax\n"
        "except ImportError as error: print('jaxlib' in sys.modules, error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout.startswith("False minijax")
    assert problem in done.stdout
    assert " fix: " in done.stdout


def test_nothing_else_of_the_package_reads_proc() -> None:
    files = [path for path in (ROOT / "minijax").rglob("*.py") if path.name != "system.py"]
    assert len(files) > 100
    reading = re.compile(r"[\"'f]/(?:proc|dev/fd|dev/shm)\b|sched_getaffinity|malloc_trim|memfd")
    assert [path for path in files if reading.search(path.read_text(encoding="utf-8"))] == []


def test_package_names_the_encoding_of_text_files() -> None:
    # The default is the locale's, which need not be UTF-8.
    calls = r"\.read_text\(|\.write_text\(|(?<!def )(?<![.\w])open\("
    unnamed = re.compile(rf"(?:{calls})(?!.*(?:encoding=|\"[rwx]b\"))")
    lines = [
        f"{path.name}:{number}: {line.strip()}"
        for path in (ROOT / "minijax").rglob("*.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if unnamed.search(line)
    ]
    assert lines == []
