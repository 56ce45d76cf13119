"""XLA clients and their devices.

A client is made when devices are first asked for, never at import.  Host clients come in any number
of devices: changing `num_cpu_devices` makes another client, also in a running process.
`print_environment_info` prints what a report of a fault should say about where it happened.
"""

from __future__ import annotations

import contextlib
import copyreg
import functools
import os
import platform
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from jaxlib import _jax, version, xla_client

from minijax.core import cache, capabilities, config, deferral, system
from minijax.core.errors import error, warn
from minijax.core.native import Device
from minijax.runtime import in_flight, watch

ctypes = deferral.module("ctypes")


ONE_OPERATION: Mapping[str, Any] = {"minijax_one_operation": True}
"""A compiler option of ours: the program is a single operation, which gains nothing from fusion.

`expand_options` replaces it by an option of XLA's that compiles such programs in half the time."""

UNOPTIMIZED: Mapping[str, Any] = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    # One module for LLVM instead of many that are linked again.
    "xla_cpu_parallel_codegen_split_count": 1,
    **ONE_OPERATION,
}
"""Options that compile any program in half the time or less, to slower code."""


def expand_options(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns compiler options with those of ours replaced by XLA's, where XLA has any."""
    if not ONE_OPERATION.keys() <= options.keys():
        return options
    known = {name: value for name, value in options.items() if name not in ONE_OPERATION}
    return known | _without_fusion()


@functools.cache
def _without_fusion() -> dict[str, Any]:
    name = "xla_cpu_use_fusion_emitters"
    return {name: False} if capabilities.has_compile_option(cpu_client(), name) else {}


_lock = threading.Lock()


class Peers(NamedTuple):
    """The other processes, as makers of clients need to know of them.

    Attributes:
        connection: jaxlib's client of the service that knows all processes.
        process: the number of this process.
        processes: how many there are.
    """

    connection: Any
    process: int
    processes: int


# With whom this process shares its devices, if it does.
_peers: list[Peers] = []
_cpu_clients: dict[int, Any] = {}
# Platforms other than cpu: how to make their client.  Plug-ins register here.
_factories: dict[str, Callable[[], Any]] = {}
_clients: dict[str, Any] = {}
# Back ends that compile for devices of a client that is not their own: client and back end.
_compiling_for: list[tuple[Any, Any]] = []

# Flags that every jaxlib this package supports knows; others are tried in a child process.
_HARMLESS_FLAG = re.compile(
    r"--xla_force_host_platform_device_count=-?\d{1,9}"
    r"|--xla_cpu_collective_(?:call_(?:warn_stuck|terminate)_)?timeout_seconds=\d{1,9}"
    r"|--xla_dump_(?:to|hlo_pass_re)=[^\s'\"]+"
    r"|--xla_(?:dump_hlo_as_text|cpu_multi_thread_eigen)(?:=true|=false)?"
)
_TRY_FLAGS = """
import sys
sys.path[:] = {path!r}
from jaxlib import _jax, xla_client
client = xla_client.make_cpu_client(num_devices=1)
code = "!t = tensor<f32> func.func @main(%x: !t) -> !t {{%y = stablehlo.sine %x: !t return %y: !t}}"
there = _jax.DeviceList(tuple(client.devices()))
client.compile_and_load(code, there, xla_client.CompileOptions())
"""


def register_backend_factory(platform: str, factory: Callable[[], Any]) -> None:
    """Tells how to make the client of a platform; it is called on first use.

    Args:
        platform: the name that `devices`, `default_device` and their like take.
        factory: returns a client of jaxlib, or an object with its methods.

    Source:     mirrors jax.extend.backend.register_backend_factory (0.10).

    Example:
        >>> host = jax.extend.backend.get_backend("cpu")
        >>> jax.extend.backend.register_backend_factory("alias", lambda: host)
        >>> jax.devices("alias")[:1]
        [CpuDevice(id=0)]
    """
    _factories[platform] = factory


def _check_xla_flags() -> None:
    """Refuses XLA_FLAGS that would abort the process.

    Raises:
        ValueError: XLA does not know a flag, or cannot parse it.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if all(map(_HARMLESS_FLAG.fullmatch, flags.split())):
        return
    child = subprocess.run(
        [sys.executable, "-c", _TRY_FLAGS.format(path=sys.path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if child.returncode:
        lines = child.stderr.splitlines()
        reason = next((line for line in lines if "flag" in line.lower()), "")
        problem = "XLA refuses the environment variable XLA_FLAGS."
        expected = "flags that this jaxlib knows"
        fix = f"unset XLA_FLAGS or correct it ({reason.strip()})"
        error(ValueError, "devices", problem, got=flags, expected=expected, fix=fix)


# XLA numbers host devices so that one process can have no more.
_MOST_CPU_DEVICES = 2048
_COUNT_FLAG = re.compile(r"--?xla_force_host_platform_device_count=(-?\d+)")


def _number_of_cpu_devices(count: int) -> int:
    """How many host devices a client will have, of which `count` are asked for.

    Raises:
        RuntimeError: XLA cannot make as many.
    """
    origin = "minijax.config.update('num_cpu_devices', n)"
    if count < 0:
        found = _COUNT_FLAG.findall(os.environ.get("XLA_FLAGS", ""))
        count = int(found[-1]) if found else 1
        origin = "XLA_FLAGS=--xla_force_host_platform_device_count=n"
    if not 0 < count <= _MOST_CPU_DEVICES:
        problem = "there cannot be as many host devices."
        expected = f"1 to {_MOST_CPU_DEVICES}"
        fix = f"set it with {origin}"
        error(RuntimeError, "devices", problem, got=str(count), expected=expected, fix=fix)
    return count


@contextlib.contextmanager
def _thread_beside(number: int) -> Iterator[None]:
    """While a client is made: it gets more threads than it has devices.

    A program that calls Python keeps one for each device, and what Python starts needs one more.
    """
    before = os.environ.get("NPROC", "")
    if number >= (int(before) if before.isdecimal() else system.cores()):
        os.environ["NPROC"] = str(number + 1)
    try:
        yield
    finally:
        os.environ["NPROC"] = before
        if not before:
            del os.environ["NPROC"]


def _make_cpu_client(count: int) -> Any:
    _check_xla_flags()
    number = _number_of_cpu_devices(count)
    given = number if count > 0 else None
    if _peers and _cpu_clients:
        problem = "among several processes, the number of host devices cannot change."
        got = f"num_cpu_devices={count}, and there are {next(iter(_cpu_clients))}"
        fix = "before devices are first asked for: minijax.config.update('num_cpu_devices', n)"
        error(RuntimeError, "devices", problem, got=got, fix=fix)
    facts: dict[str, Any] = {}
    if _peers:
        facts = dict(zip(("distributed_client", "node_id", "num_nodes"), _peers[0], strict=True))
        # Afterwards C++ waits for the other processes without an end.
        with watch.exchanging_data():
            if config.cpu_collectives_implementation.value == "gloo":
                gloo = _jax.make_gloo_tcp_collectives(distributed_client=_peers[0][0])
                facts["collectives"] = gloo
    with _thread_beside(number):
        return xla_client.make_cpu_client(num_devices=given, **facts)


def join_processes(connection: object, process: int, processes: int) -> None:
    """Lets clients that are made from now on share their devices with other processes.

    Args:
        connection: jaxlib's client of the service that knows all processes.
        process: the number of this process.
        processes: how many there are.
    """
    _peers[:] = [Peers(connection, process, processes)]


def peers() -> Peers | None:
    """The other processes, if this one has joined some."""
    return _peers[0] if _peers else None


def leave_processes() -> None:
    """Ends what `join_processes` has begun, for clients that are not made yet."""
    _peers.clear()


def abandon(*objects: Any) -> None:
    """Keeps objects, and all clients, from being destroyed when the process ends.

    Destroying a client may wait for ever.
    """
    for each in (*objects, *_cpu_clients.values(), *_clients.values()):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))


def is_any_made() -> bool:
    """Whether there is a client, so that it is too late to share its devices."""
    return bool(_cpu_clients or _clients)


def _warn_of_fork() -> None:
    if _cpu_clients or _clients:
        warn(
            RuntimeWarning,
            "os.fork",
            "the threads that compute do not live on in the child, where programs would hang.",
            fix=in_flight.UNFORKED,
            at="",
        )


def _forked() -> None:
    if _cpu_clients or _clients:
        in_flight.forked()
        # C++ answers what it has in its caches, and would compute.
        cache.clear()


os.register_at_fork(before=_warn_of_fork, after_in_child=_forked)


def cpu_client() -> Any:
    """The host client with the number of devices in force."""
    count = config.num_cpu_devices.value
    return _cpu_clients.get(count) or _first_cpu_client(count)


@deferral.whole
def _first_cpu_client(count: int) -> Any:
    with _lock:
        if count not in _cpu_clients:
            _cpu_clients[count] = _make_cpu_client(count)
        return _cpu_clients[count]


def get_backend(platform: str | None = None) -> Any:
    """The client of a platform, or the default one: an accelerator if there is one, else cpu.

    Raises:
        RuntimeError: there is no such platform.

    Example:
        >>> jax.extend.backend.get_backend("cpu").platform
        'cpu'
    """
    if platform is not None and not isinstance(platform, str):
        return platform
    if platform is None:
        platform = _default_platform()
    if platform == "cpu":
        return cpu_client()
    if platform == "gpu":
        platform = "cuda" if "cuda" in _factories else "rocm"
    if platform not in _factories:
        expected = "one of " + ", ".join(["cpu", *_factories])
        error(RuntimeError, "devices", f"unknown platform {platform!r}.", expected=expected)
    with _lock:
        if platform not in _clients:
            made = _clients[platform] = _factories[platform]()
            owners = {id(d.client): d.client for d in made.devices()}
            _compiling_for.extend((own, made) for own in owners.values() if own is not made)
    return _clients[platform]


def _default_platform() -> str:
    """The platform of `config.platform_name`, or the first of `config.platforms`, or any."""
    chosen = config.platform_name.value or config.platforms.value.partition(",")[0]
    return chosen.strip() or next(iter(_factories), "cpu")


def get_device_backend(device: _jax.Device) -> Any:
    """What compiles for a device: its client, or the back end of a plug-in that uses the client."""
    own = device.client
    return next((backend for client, backend in _compiling_for if client is own), own)


def default_device() -> Any:
    """The device of computations that no committed argument and no user places.

    Example:
        >>> with jax.default_device(jax.devices()[3]):
        ...     jax.extend.backend.get_default_device()
        CpuDevice(id=3)
    """
    chosen = config.default_device.value
    if chosen is None:
        return get_backend().local_devices()[0]
    if isinstance(chosen, str):
        return get_backend(chosen).local_devices()[0]
    return chosen


def devices(backend: str | Any | None = None) -> list[Device]:
    """All devices of a platform (a name or a client), in order.

    Example:
        >>> jax.devices()[:2]
        [CpuDevice(id=0), CpuDevice(id=1)]
    """
    return list(get_backend(backend).devices())


def local_devices(
    process_index: int | None = None, backend: str | Any | None = None, host_id: int | None = None
) -> list[Device]:
    """The devices of one process; `host_id` is an old name of its number.

    Example:
        >>> jax.local_devices() == jax.devices()
        True
    """
    client = get_backend(backend)
    process_index = host_id if process_index is None else process_index
    if process_index is None:
        process_index = client.process_index()
    return [d for d in client.devices() if d.process_index == process_index]


def device_count(backend: str | Any | None = None) -> int:
    """How many devices there are.

    Example:
        >>> jax.device_count()
        8
    """
    return int(get_backend(backend).device_count())


def local_device_count(backend: str | Any | None = None) -> int:
    """How many devices this process has.

    Example:
        >>> jax.local_device_count() * jax.process_count() == jax.device_count()
        True
    """
    return int(get_backend(backend).local_device_count())


def process_index(backend: str | Any | None = None) -> int:
    """The number of this process.

    Example:
        >>> jax.process_index()
        0
    """
    return int(get_backend(backend).process_index())


def process_count(backend: str | Any | None = None) -> int:
    """How many processes there are.

    Example:
        >>> jax.process_count()
        1
    """
    return 1 + max(int(d.process_index) for d in get_backend(backend).devices())


def process_indices(backend: str | Any | None = None) -> list[int]:
    """The numbers of all processes.

    Example:
        >>> jax.process_indices()
        [0]
    """
    return list(range(process_count(backend)))


def default_backend() -> str:
    """The name of the default platform.

    Example:
        >>> jax.default_backend()
        'cpu'
    """
    return str(get_backend().platform)


def _device_numbered(platform: str, number: int) -> Any:
    """The device of this number, for what other processes have pickled."""
    found = next((d for d in devices(platform) if d.id == number), None)
    if found is None:
        problem = f"there is no {platform.upper()} device of number {number}."
        fix = "load it where there are as many devices as where it was saved"
        error(RuntimeError, "devices", problem, got=f"{device_count(platform)} devices", fix=fix)
    return found


copyreg.pickle(Device, lambda device: (_device_numbered, (device.platform, device.id)))


def cpu_devices(count: int) -> AbstractContextManager[None]:
    """Context manager: inside it, this thread sees `count` host devices.

    Source:     minijax's own.

    Example:
        >>> with jax.cpu_devices(4):
        ...     print(jax.device_count())
        4
    """
    if count < 1:
        error(ValueError, "cpu_devices", "needs at least one device.", got=str(count))
    return config.num_cpu_devices(count)


@overload
def print_environment_info(return_string: Literal[True]) -> str: ...


@overload
def print_environment_info(return_string: Literal[False] = ...) -> None: ...


def print_environment_info(return_string: bool = False) -> str | None:
    """Prints versions, devices, the machine, and environment variables that matter.

    Args:
        return_string: whether to return the text instead of printing it.

    Example:
        >>> jax.print_environment_info(return_string=True).splitlines()[0].partition(" ")[0]
        'minijax:'
    """
    kinds = sorted({device.device_kind for device in devices()})
    variables = [
        f"{name}={value}"
        for name, value in sorted(os.environ.items())
        if name == "XLA_FLAGS" or name.startswith(("MINIJAX_", "TF_CPP_"))
    ]
    lines = [
        f"minijax: {sys.modules['minijax'].__version__}",
        f"jaxlib: {version.__version__}",
        f"numpy: {np.__version__}",
        f"python: {sys.version}",
        f"devices: {device_count()} ({', '.join(kinds)}), {local_device_count()} of them here",
        f"processes: {process_count()}",
        f"platform: {platform.platform()}",
        *variables,
    ]
    text = "\n".join(lines)
    if return_string:
        return text
    print(text)  # noqa: T201  what it is for
    return None
