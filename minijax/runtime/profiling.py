"""Profiles: what ran when, by the names of users, of this package and of XLA.

Input: `start_trace` and `stop_trace` around what is looked at.  Output: files for TensorBoard,
XProf and Perfetto.  An annotation costs a tenth of a microsecond where no profile is taken.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from jaxlib import _profile_data, _profiler  # type: ignore[attr-defined]  # no stubs in 0.10.2

from minijax.core import deferral, source
from minijax.core.errors import error
from minijax.runtime import client

gzip = deferral.module("gzip")
json = deferral.module("json")

ProfileOptions = _profiler.ProfileOptions
ProfileData = _profile_data.ProfileData
ProfileEvent = _profile_data.ProfileEvent
ProfilePlane = _profile_data.ProfilePlane


class TraceAnnotation(_profiler.TraceMe):  # type: ignore[misc]
    """Context manager: names what this thread does inside, in profiles.

    `with TraceAnnotation("read", shard=3):` shows `shard` with the name.

    Example:
        >>> with jax.profiler.TraceAnnotation("read batch", shard=3):
        ...     batch = np.ones(3)
    """


class StepTraceAnnotation(TraceAnnotation):
    """Context manager: one step of a training loop, which profiles then show by its number.

    `with StepTraceAnnotation("train", step_num=i):` around each step.

    Example:
        >>> for i in range(3):
        ...     with jax.profiler.StepTraceAnnotation("train", step_num=i):
        ...         pass
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        # By this mark the tools tell steps from other annotations.
        super().__init__(name, _r=1, **kwargs)


def annotate_function(
    func: Callable[..., Any], name: str | None = None, **decorator_kwargs: Any
) -> Callable[..., Any]:
    """A function whose calls have a name in profiles.

    Args:
        func: the function.
        name: what profiles show; the function's own name if absent.
        **decorator_kwargs: what profiles show with the name.

    Example:
        >>> @jax.profiler.annotate_function
        ... def read():
        ...     return 5
        >>> read()
        5
    """
    shown = getattr(func, "__qualname__", type(func).__name__) if name is None else name

    @source.result_of(func)
    def annotated(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(shown, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated


class _Profile:
    """The profile that is being taken, and the server: the process has one of each at most."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.session: Any = None
        self.server: Any = None
        self.folder = ""
        self.for_perfetto = False


_current = _Profile()


def start_trace(
    log_dir: os.PathLike[str] | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: object = None,
) -> None:
    """Begins to take a profile, which `stop_trace` writes.

    Args:
        log_dir: the folder for its files, in which every profile gets a folder of its own.
        create_perfetto_link: not provided: Perfetto opens the file that
            `create_perfetto_trace` writes.
        create_perfetto_trace: whether to write `perfetto_trace.json.gz` too.
        profiler_options: a `ProfileOptions`.

    Raises:
        RuntimeError: a profile is being taken already.
        NotImplementedError: a link is asked for.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> jax.profiler.start_trace(folder.name)
        >>> _ = jax.block_until_ready(jnp.ones(3) + 1)
        >>> jax.profiler.stop_trace()
        >>> folder.cleanup()
    """
    if create_perfetto_link:
        problem = "no server is run for Perfetto."
        got = "create_perfetto_link=True"
        fix = "create_perfetto_trace=True, and open the file at ui.perfetto.dev"
        error(NotImplementedError, "profiler.start_trace", problem, got=got, fix=fix)
    with _current.lock:
        if _current.session is not None:
            problem, got = "a profile is being taken already.", f"one for {_current.folder}"
            expected, fix = "one profile at a time", "minijax.profiler.stop_trace()"
            name = "profiler.start_trace"
            error(RuntimeError, name, problem, got=got, expected=expected, fix=fix)
        # The tracers of accelerators come with their clients.
        client.get_backend()
        options = ProfileOptions() if profiler_options is None else profiler_options
        _current.session = _profiler.ProfilerSession(options)
        _current.folder = os.fspath(log_dir)
        _current.for_perfetto = create_perfetto_trace


def stop_trace() -> None:
    """Ends the profile that `start_trace` began, and writes it.

    Raises:
        RuntimeError: no profile is being taken.

    Example:
        >>> jax.profiler.stop_trace()
        Traceback (most recent call last):
        RuntimeError: ...
    """
    with _current.lock:
        session, _current.session = _current.session, None
        if session is None:
            fix = "minijax.profiler.start_trace(folder) first"
            error(RuntimeError, "profiler.stop_trace", "no profile is being taken.", fix=fix)
        session.stop_and_export(_current.folder)
        if _current.for_perfetto:
            _write_for_perfetto(Path(_current.folder))


def _write_for_perfetto(folder: Path) -> None:
    """Writes the newest profile of a folder in the form that Perfetto reads."""
    runs = folder / "plugins" / "profile"
    newest = max(runs.iterdir(), key=lambda run: run.stat().st_mtime)
    (source,) = newest.glob("*.trace.json.gz")
    events = json.loads(gzip.decompress(source.read_bytes()))
    events["metadata"] = {"highres-ticks": True}
    text = json.dumps(events).encode()
    (newest / "perfetto_trace.json.gz").write_bytes(gzip.compress(text))


@contextlib.contextmanager
def trace(
    log_dir: os.PathLike[str] | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: object = None,
) -> Iterator[None]:
    """Context manager: takes a profile of what happens inside; arguments as of `start_trace`.

    Raises:
        RuntimeError: a profile is being taken already.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with jax.profiler.trace(folder):
        ...         _ = jax.block_until_ready(jnp.ones(3) + 1)
        ...     print(os.listdir(folder))
        ['plugins']
    """
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


def device_memory_profile(backend: str | None = None) -> bytes:
    """What the arrays and programs of a platform hold of its memory, as gzipped pprof data.

    Example:
        >>> import gzip
        >>> len(gzip.decompress(jax.profiler.device_memory_profile())) > 0
        True
    """
    return gzip.compress(client.get_backend(backend).heap_profile())


def save_device_memory_profile(
    filename: os.PathLike[str] | str, backend: str | None = None
) -> None:
    """Writes a file that pprof reads: see `device_memory_profile`.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     jax.profiler.save_device_memory_profile(f"{folder}/memory.prof")
        ...     print(os.listdir(folder))
        ['memory.prof']
    """
    Path(filename).write_bytes(device_memory_profile(backend))


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Lets tools such as XProf take profiles of this process, by a port of the machine.

    Args:
        port: where it listens.
        requires_backend: whether clients of devices are made first, whose tracers come with them.

    Returns:
        the server, which lives until `stop_server`.

    Raises:
        ValueError: there is a server already.

    Example:
        >>> import socket
        >>> with socket.socket() as free:
        ...     free.bind(("localhost", 0))
        ...     port = free.getsockname()[1]
        >>> server = jax.profiler.start_server(port)
        >>> jax.profiler.stop_server()
    """
    with _current.lock:
        if _current.server is not None:
            problem = "this process has a server already."
            got = f"port {port}"
            expected = "one server for each process"
            fix = "minijax.profiler.stop_server()"
            error(ValueError, "profiler.start_server", problem, got=got, expected=expected, fix=fix)
        if requires_backend:
            client.get_backend()
        _current.server = _profiler.start_server(port)
        return _current.server


def stop_server() -> None:
    """Ends the server that `start_server` began.

    Raises:
        ValueError: there is none.

    Example:
        >>> jax.profiler.stop_server()
        Traceback (most recent call last):
        ValueError: ...
    """
    with _current.lock:
        if _current.server is None:
            fix = "minijax.profiler.start_server(port) first"
            error(ValueError, "profiler.stop_server", "this process has no server.", fix=fix)
        _current.server = None
