"""Compiled programs that outlive the process: found by key instead of being compiled anew.

Input: a module, devices and options.  Output: jaxlib's executable, from the store if it is there.
The store is an object that a user installs, or the folder that `compilation_cache_dir` names, by
default one among the user's caches; without either every program is compiled.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import stat
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from jaxlib import _jax, version

from minijax.core import config, deferral, system
from minijax.core.cache import Cache
from minijax.core.errors import error, warn
from minijax.runtime import in_flight, placement

hashlib = deferral.module("hashlib")

_DIGEST_BYTES = 32


@runtime_checkable
class ProgramStore(Protocol):
    """What a user installs: keys are names that files can have, values are opaque.

    Source:     own; any object with the two methods is one.

    Example:
        >>> class Memory(dict):
        ...     put = dict.__setitem__
        >>> isinstance(Memory(), jax.extend.hooks.ProgramStore)
        True
    """

    def get(self, key: str) -> bytes | None:
        """The value that was put under a key, or None."""

    def put(self, key: str, value: bytes) -> None:
        """Keeps a value under a key, in place of one that is there."""


class FolderRefusedError(PermissionError):
    """A folder of programs that others own or may write."""


def _check_private(folder: Path, facts: os.stat_result, name: str = "") -> None:
    """Refuses what is known of a folder, or of the file `name` in it.

    Raises:
        FolderRefusedError: others own it or may write it.
    """
    is_own = facts.st_uid in (os.geteuid(), 0)
    if is_own and not facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return
    what = f"the file {name} in it" if name else "it"
    error(
        FolderRefusedError,
        "compilation cache",
        f"others {'may write' if is_own else 'own'} {what}, and could have put any program there.",
        got=f"{folder}, owner {facts.st_uid}, mode {stat.S_IMODE(facts.st_mode):o}",
        expected=f"owner {os.geteuid()}, and no one else who may write",
        fix="chmod go-w, or a folder of your own for compilation_cache_dir",
    )


_refused: set[str] = set()


class DirectoryStore:
    """A folder with one file for each program, which processes may share.

    A file appears with all of its content or not at all, whoever else writes it.  Programs are
    machine code: a folder, or a file in it, is refused that others own or may write.

    Args:
        path: the folder; it is made when the first program is stored, for its owner alone.
        most: bytes that its files may have together, if they are bounded: files that were used
            longest ago make room.

    Source:     own.

    Raises:
        PermissionError: by `get` and `put`, others own the folder or file, or may write it.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = jax.extend.hooks.DirectoryStore(folder)
        ...     store.put("key", b"value")
        ...     store.get("key"), store.get("other")
        (b'value', None)
    """

    __slots__ = ("most", "path")

    def __init__(self, path: os.PathLike[str] | str, most: int | None = None) -> None:
        self.path = Path(path)
        self.most = most

    def __repr__(self) -> str:
        return f"DirectoryStore({str(self.path)!r})"

    def _file(self, key: str) -> Path:
        return self.path / f"{key}-cache"

    def get(self, key: str) -> bytes | None:
        """The content of a key's file, or None if there is no file."""
        with contextlib.suppress(FileNotFoundError):
            _check_private(self.path, os.stat(self.path))
            # A pipe does not wait for who writes it.
            with open(os.open(self._file(key), os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
                facts = os.fstat(file.fileno())
                _check_private(self.path, facts, self._file(key).name)
                if stat.S_ISREG(facts.st_mode):
                    with contextlib.suppress(OSError):
                        os.utime(file.fileno())
                    return file.read()
        return None

    def put(self, key: str, value: bytes) -> None:
        """Writes a key's file."""
        if self.most is not None and len(value) > self.most:
            return
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_private(self.path, os.stat(self.path))
        written = self.path / f"{key}-{os.urandom(8).hex()}.part"
        try:
            with open(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(value)
            written.replace(self._file(key))
        except BaseException:
            written.unlink(missing_ok=True)
            raise
        if self.most is not None:
            self._make_room(self.most)

    def _make_room(self, most: int) -> None:
        """Removes files that were used longest ago.

        A small one counts for 16 KiB, as looking at many takes time.
        """
        found = []
        for file in os.scandir(self.path):
            # Another process may remove it meanwhile.
            with contextlib.suppress(FileNotFoundError):
                if file.name.endswith(("-cache", ".part")):
                    facts = file.stat()
                    found.append((facts.st_mtime, max(facts.st_size, 1 << 14), Path(file)))
        excess = sum(size for _, size, _ in found) - most
        for _, size, path in sorted(found):
            if excess <= 0:
                break
            path.unlink(missing_ok=True)
            excess -= size


class _Installed:
    """The store that a user has installed, if one has."""

    store: ProgramStore | None = None


def set_program_store(store: ProgramStore | None) -> None:
    """Makes compilation ask a store for programs before it compiles them, and tell it of new ones.

    Programs that took less than `persistent_cache_min_compile_time_secs` to compile are not told.

    Args:
        store: an object with `get(key)`, which returns bytes or None, and `put(key, value)`; None
            for none but the folder that `compilation_cache_dir` names.

    Source:     own.

    Raises:
        TypeError: `store` lacks a method.

    Example:
        >>> class Memory(dict):
        ...     put = dict.__setitem__
        >>> jax.extend.hooks.set_program_store(Memory())
        >>> jax.extend.hooks.set_program_store(None)
    """
    if store is not None and not isinstance(store, ProgramStore):
        problem = "a store has the methods get and put."
        got = f"{store!r} of type {type(store).__name__}"
        expected = "get(key: str) -> bytes | None and put(key: str, value: bytes)"
        error(TypeError, "set_program_store", problem, got=got, expected=expected)
    _Installed.store = store


def current_store() -> ProgramStore | None:
    """The store in force, or None."""
    if not config.enable_compilation_cache.value:
        return None
    if _Installed.store is not None:
        return _Installed.store
    path, most = config.compilation_cache_dir.value, config.compilation_cache_max_size.value
    if path is None:
        return None
    own = _MOST_BY_DEFAULT if path == config.compilation_cache_dir.default else None
    return DirectoryStore(path, own if most < 0 else most)


_MOST_BY_DEFAULT = 1 << 29
"""Bytes of the user's own folder."""


_stored = Cache(
    "stored",
    "compiled programs that outlive the process",
    key="jaxlib, platform, devices, processor, cores, options, environment, the module's text",
    owner="folder `compilation_cache_dir`, or a store of the user's",
)


def compile_or_get_cached(
    backend: _jax.Client,
    module: str | bytes,
    devices: tuple[Any, ...],
    options: _jax.CompileOptions,
    host_callbacks: Sequence[Any] = (),
    *,
    may_store: bool = True,
) -> tuple[Any, bytes | None]:
    """The executable of a module: from the store in force if it has it, else compiled.

    Its code comes with it if it was stored: XLA cannot write what it has loaded once more.

    Args:
        backend: the client that compiles.
        module: the MLIR module.
        devices: where it will run.
        options: jaxlib's compile options.
        host_callbacks: Python functions that the module calls: one that calls any lives in this
            process only.
        may_store: False for programs whose compilation does more than to make an executable.
    """
    in_flight.check_not_forked()
    there = placement.native_devices(devices)
    callbacks = [list(host_callbacks)] if host_callbacks else []
    # What is dumped while XLA compiles is wanted each time.
    flags = f"{os.environ.get('XLA_FLAGS')} {options.env_option_overrides}"
    may_store = may_store and not callbacks and "xla_dump" not in flags
    store = current_store() if may_store else None
    if store is None:
        return backend.compile_and_load(module, there, options, *callbacks), None
    key = program_key(module, devices, options)
    found = _load(store, key, backend, there, options)
    if found is not None:
        _stored.hits += 1
        return found
    _stored.misses += 1
    start = time.perf_counter()
    loaded = backend.compile_and_load(module, there, options)
    if time.perf_counter() - start >= config.persistent_cache_min_compile_time_secs.value:
        _keep(store, key, backend, loaded)
    return loaded, None


def _load(
    store: ProgramStore, key: str, backend: _jax.Client, there: object, options: _jax.CompileOptions
) -> tuple[Any, bytes] | None:
    """The executable under a key, and its code; None: what cannot be read is as good as absent."""
    with _told("could not be read, and is compiled anew", key, store):
        value = store.get(key)
        if value is not None:
            code = _opened(key, value)
            return backend.deserialize_executable(code, there, options), code
    return None


def _keep(
    store: ProgramStore, key: str, backend: _jax.Client, loaded: _jax.LoadedExecutable
) -> None:
    with _told("could not be written", key, store):
        value = _sealed(key, backend.serialize_executable(loaded))
        if len(value) >= config.persistent_cache_min_entry_size_bytes.value:
            store.put(key, value)


@contextlib.contextmanager
def _told(problem: str, key: str, store: ProgramStore) -> Iterator[None]:
    """Tells of a failure of the store, which programs do without; raises it if the user wants."""
    try:
        yield
    except Exception as error:
        if config.raise_persistent_cache_errors.value:
            raise
        path = str(getattr(store, "path", ""))
        if isinstance(error, OSError) and path == config.compilation_cache_dir.default:
            return  # Nobody has asked for that folder.
        if isinstance(error, FolderRefusedError):
            if repr(store) in _refused:
                return
            _refused.add(repr(store))
        warn(
            UserWarning,
            "compilation cache",
            f"a stored program {problem}.",
            got=f"{type(error).__name__}: {str(error).partition(chr(10))[0]}",
            fix=f"if it happens again, remove {key} from {store!r}",
        )


_FORMAT = b"minijax program 2\n"


def _digest(key: str, packed: bytes) -> bytes:
    """A digest of a program with all that decides what it is, of which its key is a digest."""
    return hashlib.sha256(_FORMAT + key.encode() + b"\n" + packed).digest()


def _sealed(key: str, blob: bytes) -> bytes:
    """Bytes with a digest in front: damage, and another program's bytes, show before XLA runs them.

    Who can write the file can make a digest too: it guards against accidents, not against owners.
    """
    packed = zlib.compress(blob, 1)
    return _digest(key, packed) + packed


def _opened(key: str, value: bytes) -> bytes:
    digest, packed = value[:_DIGEST_BYTES], value[_DIGEST_BYTES:]
    if _digest(key, packed) != digest:
        raise ValueError("its content is damaged, or that of another program")
    return zlib.decompress(packed)


def program_key(module: str | bytes, devices: Sequence[Any], options: _jax.CompileOptions) -> str:
    """The key of a program: the module's name, and a digest of all that decides what is compiled.

    Args:
        module: the MLIR module; where its operations come from does not count.
        devices: where it will run.
        options: jaxlib's compile options.
    """
    backend = devices[0].client
    text = str(module)
    parts: list[Any] = [
        version.__version__,
        os.stat(_jax.__file__).st_size,
        backend.platform,
        backend.platform_version,
        [device.device_kind for device in devices],
        # XLA cuts loops into as many parts as there are cores, and has threads for all devices.
        (_processor(), system.cores(), backend.device_count()) if backend.platform == "cpu" else "",
        # In the order of the flags: the last one of a name counts.
        sorted((k, v.split()) for k, v in os.environ.items() if _decides(k)),
        options.SerializeAsString(),
        sorted(map(repr, options.env_option_overrides)),
        text,
    ]
    digest = hashlib.sha256()
    for part in parts:
        encoded = part if isinstance(part, bytes) else str(part).encode()
        # The length keeps parts apart.
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    name = re.match(r"module @(\w+)", text)
    return f"{name[1] if name else 'program'}-{digest.hexdigest()}"


def _decides(name: str) -> bool:
    """Whether compilers read the variable of the environment."""
    is_option = name.startswith(("XLA_", "TF_XLA_", "LIBTPU_", "TPU_", "NVIDIA_TF32_"))
    return is_option and not name.startswith("XLA_PYTHON_CLIENT_")


_processor = functools.cache(system.processor)


def set_cache_dir(path: str | None) -> None:
    """Keeps compiled programs in a folder, for other processes too.

    Example:
        >>> from minijax.experimental.compilation_cache import compilation_cache
        >>> compilation_cache.set_cache_dir("programs")
        >>> jax.config.compilation_cache_dir
        'programs'
        >>> compilation_cache.set_cache_dir(None)
    """
    config.config.update("compilation_cache_dir", path)


def reset_cache() -> None:
    """Does nothing: which folder is used is looked up whenever a program is compiled.

    Example:
        >>> from minijax.experimental.compilation_cache import compilation_cache
        >>> compilation_cache.reset_cache()
    """
