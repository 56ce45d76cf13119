"""Compiled programs that outlive the process, in a folder or in a store of the user's."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from jaxlib import version

import minijax as jax
import minijax.numpy as jnp
from minijax.core import config
from minijax.experimental.compilation_cache import compilation_cache
from minijax.extend import hooks
from minijax.runtime import compile as compilation
from minijax.runtime import program_store
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P

pytestmark = pytest.mark.feature("JT-23")
X = np.arange(8, dtype=np.float32)


class DictStore:
    """A store in memory."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.asked: list[str] = []

    def get(self, key: str) -> bytes | None:
        self.asked.append(key)
        return self.values.get(key)

    def put(self, key: str, value: bytes) -> None:
        self.values[key] = value


@pytest.fixture(autouse=True)
def everything_is_kept() -> Iterator[None]:
    jax.clear_caches()
    with config.persistent_cache_min_compile_time_secs(0):
        yield


@pytest.fixture
def store() -> Iterator[DictStore]:
    made = DictStore()
    hooks.set_program_store(made)
    yield made
    hooks.set_program_store(None)


def program(x: Any) -> Any:
    return jnp.sin(x) * 2 + 1


def run_anew(function: Callable[..., Any] = program, *args: Any, **options: Any) -> Any:
    """Runs a function that nothing in this process remembers."""
    jax.clear_caches()
    return np.asarray(jax.jit(function, **options)(*(args or (X,))))


def stored() -> tuple[int, int]:
    found = jax.cache_stats()["stored"]
    return found.hits, found.misses


def test_nothing_is_stored_by_default() -> None:
    run_anew()

    assert program_store.current_store() is None
    assert stored() == (0, 0)


def test_second_compilation_is_answered_by_the_store(store: DictStore) -> None:
    first = run_anew()
    assert stored() == (0, 1)

    second = run_anew()

    assert stored() == (1, 0)
    assert len(store.values) == 1
    np.testing.assert_array_equal(second, first)


def test_program_over_devices_keeps_its_placements(store: DictStore) -> None:
    with jax.cpu_devices(8):
        mesh = Mesh(np.array(jax.devices()), "x")
        x = jax.device_put(X, NamedSharding(mesh, P("x")))
        for _ in range(2):
            jax.clear_caches()
            out = jax.jit(lambda x: (x * 2, x.sum()))(x)

    assert stored() == (1, 0)
    assert out[0].sharding == x.sharding
    np.testing.assert_array_equal(out[0], 2 * X)
    assert out[1] == X.sum()


def test_program_of_the_store_takes_donated_memory(store: DictStore) -> None:
    for _ in range(2):
        x = jnp.array(X)
        run_anew(program, x, donate_argnums=0)

    assert stored() == (1, 0)
    assert x.is_deleted()


def test_analysis_of_a_program_of_the_store(store: DictStore) -> None:
    run_anew()
    jax.clear_caches()

    compiled = jax.jit(program).lower(X).compile()

    assert stored() == (1, 0)
    assert "HloModule jit_program" in compiled.as_text()


def test_program_with_callbacks_is_never_stored(store: DictStore) -> None:
    def calls(x: Any) -> Any:
        return jax.pure_callback(lambda x: 3 * np.asarray(x), x, x)

    for _ in range(2):
        np.testing.assert_array_equal(run_anew(calls), 3 * X)

    assert store.asked == []


def test_program_that_shows_placements_is_never_stored(store: DictStore) -> None:
    seen: list[Any] = []

    def shows(x: Any) -> Any:
        jax.debug.inspect_array_sharding(x, callback=seen.append)
        return x + 1

    for _ in range(2):
        run_anew(shows)

    assert store.asked == []
    assert len(seen) == 2


def key(**changes: Any) -> str:
    """The key of a module for one device, after changes of what it depends on."""
    client = SimpleNamespace(platform="tpu", platform_version=changes.pop("libtpu", "1"))
    device = SimpleNamespace(
        id=0, client=client, platform="tpu", device_kind=changes.pop("kind", "v5")
    )
    module = changes.pop("module", "module @jit_f { }")
    options = compilation.options_for((device,), **changes)
    return program_store.program_key(module, (device,), options)


@pytest.mark.parametrize(
    "change",
    [
        {"module": "module @jit_f { other }"},
        {"libtpu": "2"},
        {"kind": "v6"},
        {"options": {"xla_cpu_enable_fast_math": True}},
        {"num_args": 2001},
    ],
    ids=str,
)
def test_key_depends_on_what_is_compiled(change: dict[str, Any]) -> None:
    assert key(**change) != key()


def test_key_depends_on_jaxlib_and_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key()
    monkeypatch.setattr(version, "__version__", "0.0.1")
    other = key()
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

    assert len({before, other, key()}) == 3


def test_key_does_not_depend_on_where_the_program_was_written() -> None:
    texts = ["def f(x):\n    return x + 1", "\n\n\ndef f(x):\n    return x + 1"]
    modules = []
    for text in texts:
        scope: dict[str, Any] = {}
        exec(text, scope)
        modules.append(jax.jit(scope["f"]).lower(X).compiler_ir())

    assert key(module=modules[0]) == key(module=modules[1])


def damaged(value: bytes) -> bytes:
    return value[:50] + bytes([value[50] ^ 1]) + value[51:]


@pytest.mark.parametrize(
    "damage", [damaged, lambda value: value[:-7], lambda value: b"", lambda value: b"garbage"]
)
def test_damaged_entry_is_compiled_anew_with_a_warning(
    store: DictStore, damage: Callable[[bytes], bytes]
) -> None:
    run_anew()
    (name, whole), *_ = store.values.items()
    store.values[name] = damage(whole)

    with pytest.warns(UserWarning, match="could not be read, and is compiled anew"):
        out = run_anew()

    np.testing.assert_array_equal(out, program(X))
    run_anew()
    assert stored() == (1, 0)


@pytest.mark.feature("RB-04")
def test_bytes_of_another_program_are_refused(store: DictStore) -> None:
    run_anew()
    run_anew(lambda x: x - 3)
    first, second = store.values
    store.values[first], store.values[second] = store.values[second], store.values[first]

    for function in (program, lambda x: x - 3):
        with pytest.warns(UserWarning, match="compiled anew"):
            np.testing.assert_array_equal(run_anew(function), function(X))


@pytest.mark.feature("RB-04")
@pytest.mark.sampled(4)
@pytest.mark.parametrize("bit", range(0, 256, 8))
def test_no_flipped_bit_gets_through(store: DictStore, bit: int) -> None:
    sealed = program_store._sealed("key", b"some program" * 9)
    at = bit * len(sealed) // 256
    flipped = sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :]

    assert program_store._opened("key", sealed) == b"some program" * 9
    for key, value in (("key", flipped), ("other", sealed), ("key", sealed + b"\0")):
        with pytest.raises(ValueError, match="damaged"):
            program_store._opened(key, value)


def refuses_once(folder: Path, what: str) -> None:
    program_store._refused.clear()
    with config.compilation_cache_dir(folder), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(3):
            np.testing.assert_array_equal(run_anew(), program(X))
            np.testing.assert_array_equal(run_anew(lambda x: x - 3), X - 3)
    assert [what in str(w.message) for w in said] == [True]


@pytest.mark.feature("RB-04")
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_folder_that_others_may_write_is_refused_once(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    refuses_once(tmp_path, "others may write it")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.feature("RB-04")
def test_files_that_others_may_write_or_own_are_refused(tmp_path: Path) -> None:
    folder = program_store.DirectoryStore(tmp_path / "made")
    folder.put("a", b"value")
    file = folder.path / "a-cache"
    assert (folder.path.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)
    for mode in (0o620, 0o602):
        file.chmod(mode)
        with pytest.raises(PermissionError, match="others may write the file a-cache"):
            folder.get("a")
    facts = SimpleNamespace(st_uid=12345, st_mode=0o700)
    with pytest.raises(PermissionError, match="others own it"):
        program_store._check_private(folder.path, facts)  # type: ignore[arg-type]


@pytest.mark.feature("RB-04")
@pytest.mark.parametrize("kind", ["fifo", "folder", "device", "dangling"])
def test_what_is_no_file_neither_hangs_nor_runs(tmp_path: Path, kind: str) -> None:
    folder = program_store.DirectoryStore(tmp_path)
    with config.compilation_cache_dir(tmp_path):
        run_anew()
        (file,) = tmp_path.iterdir()
        file.unlink()
        if kind == "fifo":
            os.mkfifo(file, 0o600)
        elif kind == "folder":
            file.mkdir(0o700)
        else:
            file.symlink_to("/dev/null" if kind == "device" else tmp_path / "nowhere")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.testing.assert_array_equal(run_anew(), program(X))
            np.testing.assert_array_equal(run_anew(), program(X))
    assert folder.get("absent") is None


@pytest.mark.feature("RB-04")
@pytest.mark.parametrize(
    ("name", "counts"),
    [("TF_XLA_FLAGS", True), ("LIBTPU_INIT_ARGS", True), ("XLA_PYTHON_CLIENT_PREALLOCATE", False)],
)
def test_key_depends_on_the_environment_of_compilers(
    monkeypatch: pytest.MonkeyPatch, name: str, counts: bool
) -> None:
    before = key()
    monkeypatch.setenv(name, "--some=1 --some=2")
    changed = key()
    monkeypatch.setenv(name, "--some=2 --some=1")

    assert (before != changed) == counts
    assert (changed != key()) == counts


def test_failure_of_the_store_is_raised_on_request(store: DictStore) -> None:
    run_anew()
    store.values = dict.fromkeys(store.values, b"garbage")

    with (
        config.raise_persistent_cache_errors(True),
        pytest.raises(ValueError, match="its content is damaged"),
    ):
        run_anew()


def test_failing_write_is_a_warning(store: DictStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(key: str, value: bytes) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(store, "put", full)

    with pytest.warns(UserWarning, match=r"could not be written.*\n.*OSError: no space left"):
        run_anew()


def test_store_without_put_is_refused() -> None:
    with pytest.raises(TypeError, match="a store has the methods get and put"):
        hooks.set_program_store(SimpleNamespace(get=lambda key: None))  # type: ignore[arg-type]


def test_folder_holds_one_file_for_each_program(tmp_path: Path) -> None:
    folder = tmp_path / "programs"
    with config.compilation_cache_dir(folder):
        run_anew()
        run_anew()

    assert stored() == (1, 0)
    (file,) = folder.iterdir()
    assert file.name.startswith("jit_program-")
    assert file.name.endswith("-cache")


def test_names_of_jax_choose_the_folder(tmp_path: Path) -> None:
    try:
        compilation_cache.set_cache_dir(str(tmp_path))
        assert jax.config.jax_compilation_cache_dir == str(tmp_path)
        jax.config.update("jax_enable_compilation_cache", False)
        run_anew()
        assert list(tmp_path.iterdir()) == []
        jax.config.update("jax_enable_compilation_cache", True)
        run_anew()
        assert len(list(tmp_path.iterdir())) == 1
    finally:
        jax.config.update("jax_enable_compilation_cache", True)
        jax.config.update("jax_compilation_cache_dir", None)


def test_folder_must_be_a_path() -> None:
    with pytest.raises(ValueError, match="not a path"):
        jax.config.update("jax_compilation_cache_dir", 3)


@pytest.mark.parametrize(
    "limit",
    [
        config.persistent_cache_min_compile_time_secs(1000),
        config.persistent_cache_min_entry_size_bytes(1 << 30),
    ],
    ids=["time", "size"],
)
def test_small_programs_are_not_kept(store: DictStore, limit: Any) -> None:
    with limit:
        run_anew()

    assert len(store.asked) == 1
    assert store.values == {}


def test_file_appears_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = program_store.DirectoryStore(tmp_path)
    folder.put("a", b"old")

    def fails(self: Path, target: Path) -> None:
        raise OSError("interrupted")

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(OSError, match="interrupted"):
        folder.put("a", b"new")

    assert folder.get("a") == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["a-cache"]


@pytest.mark.slow
def test_another_process_finds_the_program(tmp_path: Path) -> None:
    text = f"""
import numpy as np
import minijax as jax
jax.config.update("jax_compilation_cache_dir", {str(tmp_path)!r})
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
out = jax.jit(lambda x: x * 2 + 1)(np.arange(3.0, dtype=np.float32))
print(out.tolist(), tuple(jax.cache_stats()["stored"]))
"""
    outputs = [
        subprocess.run(
            [sys.executable, "-c", text], capture_output=True, text=True, check=True
        ).stdout.strip()
        for _ in range(2)
    ]

    assert outputs == ["[1.0, 3.0, 5.0] (0, 1)", "[1.0, 3.0, 5.0] (1, 0)"]
