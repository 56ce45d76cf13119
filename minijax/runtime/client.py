"""XLA clients and their devices.

A client is made when devices are first asked for, never at import.  Host clients come in any
number of devices: changing `num_cpu_devices` makes another client, also in a running process.
"""

from __future__ import annotations

import copyreg
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

from jaxlib import _jax, xla_client

from minijax.core import config
from minijax.core.errors import message

_lock = threading.Lock()
_cpu_clients: dict[int, Any] = {}
# Platforms other than cpu: how to make their client.  Plug-ins register here.
_factories: dict[str, Callable[[], Any]] = {}
_clients: dict[str, Any] = {}

# Flags that every jaxlib this package supports knows; others are tried in a child process.
_KNOWN_FLAGS = frozenset(
    {
        "xla_force_host_platform_device_count",
        "xla_cpu_collective_call_warn_stuck_timeout_seconds",
        "xla_cpu_collective_call_terminate_timeout_seconds",
        "xla_cpu_collective_timeout_seconds",
        "xla_dump_to",
        "xla_dump_hlo_as_text",
        "xla_dump_hlo_pass_re",
        "xla_cpu_multi_thread_eigen",
    }
)


def register_backend_factory(platform: str, factory: Callable[[], Any]) -> None:
    """Tells how to make the client of a platform; it is called on first use."""
    _factories[platform] = factory


def _check_xla_flags() -> None:
    """Refuses XLA_FLAGS that would abort the process.

    Raises:
        ValueError: XLA does not know a flag, or cannot parse it.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    names = {word.lstrip("-").split("=")[0] for word in flags.split() if word.startswith("-")}
    if names <= _KNOWN_FLAGS:
        return
    child = subprocess.run(
        [sys.executable, "-c", "from jaxlib import xla_client as x; x.make_cpu_client()"],
        capture_output=True,
        text=True,
        check=False,
    )
    if child.returncode:
        reason = next((s for s in child.stderr.splitlines() if "flag" in s.lower()), "")
        raise ValueError(
            message(
                "devices",
                "XLA refuses the environment variable XLA_FLAGS.",
                got=flags,
                expected="flags that this jaxlib knows",
                fix=f"unset XLA_FLAGS or correct it ({reason.strip()})",
            )
        )


def _make_cpu_client(count: int) -> Any:
    _check_xla_flags()
    return xla_client.make_cpu_client(num_devices=count if count > 0 else None)


def cpu_client() -> Any:
    """The host client with the number of devices in force."""
    count = config.num_cpu_devices.value
    client = _cpu_clients.get(count)
    if client is None:
        with _lock:
            client = _cpu_clients.get(count)
            if client is None:
                client = _cpu_clients[count] = _make_cpu_client(count)
    return client


def get_backend(platform: Any = None) -> Any:
    """The client of a platform, or the default one: an accelerator if there is one, else cpu.

    Raises:
        RuntimeError: there is no such platform.
    """
    if platform is not None and not isinstance(platform, str):
        return platform
    if platform is None:
        platform = next(iter(_factories), "cpu")
    if platform == "cpu":
        return cpu_client()
    if platform == "gpu":
        platform = "cuda" if "cuda" in _factories else "rocm"
    if platform not in _factories:
        raise RuntimeError(
            message(
                "devices",
                f"unknown platform {platform!r}.",
                expected="one of " + ", ".join(["cpu", *_factories]),
            )
        )
    with _lock:
        if platform not in _clients:
            _clients[platform] = _factories[platform]()
    return _clients[platform]


def default_device() -> Any:
    """The device of computations that no committed argument and no user places."""
    chosen = config.default_device.value
    if chosen is None:
        return get_backend().local_devices()[0]
    if isinstance(chosen, str):
        return get_backend(chosen).local_devices()[0]
    return chosen


def devices(backend: Any = None) -> list[Any]:
    """All devices of a platform (a name or a client), in order.  Mirrors jax.devices."""
    return list(get_backend(backend).devices())


def local_devices(process_index: int | None = None, backend: Any = None) -> list[Any]:
    """The devices of one process.  Mirrors jax.local_devices."""
    client = get_backend(backend)
    if process_index is None:
        process_index = client.process_index()
    return [d for d in client.devices() if d.process_index == process_index]


def device_count(backend: Any = None) -> int:
    """How many devices there are.  Mirrors jax.device_count."""
    return int(get_backend(backend).device_count())


def local_device_count(backend: Any = None) -> int:
    """How many devices this process has.  Mirrors jax.local_device_count."""
    return int(get_backend(backend).local_device_count())


def process_index(backend: Any = None) -> int:
    """The number of this process.  Mirrors jax.process_index."""
    return int(get_backend(backend).process_index())


def process_count(backend: Any = None) -> int:
    """How many processes there are.  Mirrors jax.process_count."""
    return 1 + max(int(d.process_index) for d in get_backend(backend).devices())


def default_backend() -> str:
    """The name of the default platform.  Mirrors jax.default_backend."""
    return str(get_backend().platform)


def _device_numbered(platform: str, number: int) -> Any:
    """The device of this number, for what other processes have pickled."""
    found = next((d for d in devices(platform) if d.id == number), None)
    if found is None:
        raise RuntimeError(
            message(
                "devices",
                f"there is no {platform.upper()} device of number {number}.",
                got=f"{device_count(platform)} devices",
                fix="load it where there are as many devices as where it was saved",
            )
        )
    return found


copyreg.pickle(_jax.Device, lambda device: (_device_numbered, (device.platform, device.id)))


def cpu_devices(count: int) -> Any:
    """Context manager: inside it, this thread sees `count` host devices."""
    if count < 1:
        raise ValueError(message("cpu_devices", "needs at least one device.", got=str(count)))
    return config.num_cpu_devices(count)
