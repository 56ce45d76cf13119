"""What differs between operating systems and builds of Python, asked in one place.

Input: nothing, or a process or an address.  Output: an answer on Linux and on macOS, and what is
safe to assume where the system has none.  Nothing else in the package reads `/proc`, so that tests
can take it away (tests/core/test_system.py).  This module is imported before jaxlib.
"""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
import sys
from pathlib import Path

PROC = Path("/proc")
"""The folder in which Linux describes processes and the processor; macOS has none."""


def check_python() -> None:
    """Raises if this Python is one that minijax does not support.

    Raises:
        ImportError: on free-threaded CPython, or on an operating system without fork.
    """
    if "free-threading" in sys.version:
        # Counters and caches rely on the lock, and core/native.py on the size of object headers.
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
    """Returns whether `processor` tells processors with different instructions apart."""
    return (PROC / "cpuinfo").exists() or sys.platform == "darwin"


def processor() -> str:
    """Returns the model of the processor and, on Linux, its features.

    Machine code is stored under this text (runtime/program_store.py): code for another processor
    can contain instructions that this one lacks.
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
    """Returns whether a process of this machine was stopped by a signal, if that can be known."""
    if not PROC.exists():
        return _output_of("ps", "-o", "stat=", "-p", str(process)).startswith("T")
    with contextlib.suppress(OSError):
        facts = (PROC / str(process) / "stat").read_text(encoding="utf-8", errors="replace")
        # The name of the program comes before, in parentheses, and may contain anything.
        return facts.rpartition(")")[2].split()[0] == "T"
    return False


def may_access(address: int, right: str) -> bool:
    """Returns whether memory may be read ("r") or executed ("x"); True if that is unknown."""
    listed = PROC / "self" / "maps"
    if not listed.exists():
        # macOS maps nothing below 4 GiB, and gives the addresses from 2**47 on to the kernel.
        return sys.platform != "darwin" or 1 << 32 <= address < 1 << 47
    for line in listed.read_text(encoding="utf-8", errors="replace").splitlines():
        bounds, rights = line.split(maxsplit=2)[:2]
        first, end = (int(bound, 16) for bound in bounds.split("-"))
        if first <= address < end:
            return right in rights
    return False


def open_descriptors() -> list[int]:
    """Returns the numbers of the files and sockets that this process has open."""
    # Linux and macOS both have this folder. One descriptor is that of the listing itself.
    return [int(name) for name in os.listdir("/dev/fd")]


def _output_of(*command: str) -> str:
    """Returns what a program of the system prints, or nothing if it fails."""
    with contextlib.suppress(OSError):
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        return done.stdout.strip()
    return ""
