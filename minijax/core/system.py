"""Queries whose implementation depends on the operating system or on the build of Python.

Input: nothing, or the id of a process, or an address.  Output: a description of the machine, the
process or the memory, on Linux and on macOS; if the system does not provide it, a safe default.
No other module of the package reads `/proc`, so that tests can hide it (tests/core/test_system.py).
This module is imported before jaxlib.
"""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
import sys
from pathlib import Path

PROC = Path("/proc")
"""The folder in which Linux describes processes and the processor; macOS does not have it."""


def check_python() -> None:
    """Checks that minijax supports this build of Python and this operating system.

    Raises:
        ImportError: this is free-threaded CPython, or the system does not support `os.fork`.
    """
    if "free-threading" in sys.version:
        # Counters and caches rely on the global interpreter lock, and core/native.py relies on the
        # size of object headers, which is different in free-threaded builds.
        raise ImportError(
            "minijax does not support free-threaded CPython, because it relies on the global "
            f"interpreter lock; got Python {sys.version}. fix: use the default build of Python, "
            f"such as python3.{sys.version_info.minor} instead of python3.{sys.version_info.minor}t"
        )
    if not hasattr(os, "register_at_fork"):
        raise ImportError(
            f"minijax supports Linux and macOS, got {sys.platform}. fix: on Windows, use the "
            "Windows Subsystem for Linux"
        )


def cores() -> int:
    """Returns how many processors this process may use; on macOS, how many there are."""
    has_affinity = hasattr(os, "sched_getaffinity")
    return len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1


def identifies_processor() -> bool:
    """Returns whether `processor()` differs for processors with different instruction sets."""
    return (PROC / "cpuinfo").exists() or sys.platform == "darwin"


def processor() -> str:
    """Returns the model of the processor and, on Linux, its features.

    The text is part of the key of compiled programs on disk (runtime/program_store.py), because
    machine code for another processor can contain instructions that this one does not support.
    """
    listed = PROC / "cpuinfo"
    if listed.exists():
        first = listed.read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
        described = ("model name", "flags", "Features", "CPU part")
        return "\n".join(line for line in first.splitlines() if line.startswith(described))
    text = f"{platform.machine()} {platform.processor()}"
    if sys.platform == "darwin":
        # platform.processor() is "arm" for every generation of Apple's processors.
        text += " " + _output_of("sysctl", "-n", "machdep.cpu.brand_string")
    return text


def is_stopped(process: int | None) -> bool:
    """Returns whether a signal has stopped a process of this machine; False if unknown."""
    if not PROC.exists():
        return _output_of("ps", "-o", "stat=", "-p", str(process)).startswith("T")
    with contextlib.suppress(OSError):
        facts = (PROC / str(process) / "stat").read_text(encoding="utf-8", errors="replace")
        # The state follows the program's name, which is in parentheses and may itself contain
        # spaces and parentheses.
        return facts.rpartition(")")[2].split()[0] == "T"
    return False


def may_access(address: int, right: str) -> bool:
    """Returns whether the memory at an address may be read ("r") or executed ("x").

    Returns True if that is unknown.
    """
    listed = PROC / "self" / "maps"
    if not listed.exists():
        # In 64-bit processes macOS maps nothing below 4 GiB, and addresses from 2**47 on belong to
        # the kernel.
        return sys.platform != "darwin" or 1 << 32 <= address < 1 << 47
    for line in listed.read_text(encoding="utf-8", errors="replace").splitlines():
        bounds, rights = line.split(maxsplit=2)[:2]
        first, end = (int(bound, 16) for bound in bounds.split("-"))
        if first <= address < end:
            return right in rights
    return False


def open_descriptors() -> list[int]:
    """Returns the descriptors of the files and sockets that this process has open.

    One of them is already closed again: it was opened to list the others.
    """
    # Linux and macOS both have this folder.
    return [int(name) for name in os.listdir("/dev/fd")]


def _output_of(*command: str) -> str:
    """Returns the output of a command, or an empty string if the command cannot be run."""
    with contextlib.suppress(OSError):
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        return done.stdout.strip()
    return ""
