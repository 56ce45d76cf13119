"""Compiled programs that outlive the process, in a folder or in a store of the user's."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from jaxlib import version

import minijax as jax
import minijax.numpy as jnp
from minijax.core import config, system
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


def test_tests_store_nothing() -> None:
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


@pytest.mark.feature("CW-05")
@pytest.mark.parametrize(
    ("module", "name"), [(program_store, "_processor"), (system, "cores")], ids=str
)
def test_key_depends_on_processor_and_number_of_cores(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str
) -> None:
    def found() -> str:
        device = jax.devices()[0]
        options = compilation.options_for((device,))
        return program_store.program_key("module @jit_f { }", (device,), options)

    before = found()
    monkeypatch.setattr(module, name, lambda: "others")

    assert found() != before


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


@pytest.mark.feature("CW-05")
def test_files_used_longest_ago_make_room(tmp_path: Path) -> None:
    size = 1 << 15
    folder = program_store.DirectoryStore(tmp_path, most=3 * size)
    (tmp_path / "notes").write_bytes(b"n" * 4 * size)
    (tmp_path / "a-0.part").write_bytes(b"p" * size)  # left by a process that was ended
    os.utime(tmp_path / "a-0.part", (999, 999))
    for age, key in enumerate("abc"):
        folder.put(key, key.encode() * size)
        os.utime(tmp_path / f"{key}-cache", (1000 + age, 1000 + age))
    assert folder.get("a") == b"a" * size

    folder.put("d", b"d" * size)
    folder.put("huge", b"h" * 4 * size)

    assert {file.name for file in tmp_path.iterdir()} == {"notes", "a-cache", "c-cache", "d-cache"}


@pytest.mark.feature("CW-05")
def test_small_files_count_as_if_larger(tmp_path: Path) -> None:
    folder = program_store.DirectoryStore(tmp_path, most=1 << 18)
    for key in range(40):
        folder.put(str(key), b"small")
    assert len(list(tmp_path.iterdir())) == 16


@pytest.mark.feature("CW-05")
def test_setting_bounds_the_folder(tmp_path: Path) -> None:
    with config.compilation_cache_dir(tmp_path):
        assert program_store.current_store().most is None  # type: ignore[union-attr]
        with config.compilation_cache_max_size(1 << 14):
            for _ in range(2):
                run_anew()
                run_anew(lambda x: x - 3)
    assert len(list(tmp_path.iterdir())) == 1
    with config.compilation_cache_dir(config.compilation_cache_dir.default):
        assert program_store.current_store().most == 1 << 29  # type: ignore[union-attr]


@pytest.mark.feature("CW-05")
def test_programs_that_xla_dumps_are_never_stored(store: DictStore, tmp_path: Path) -> None:
    for _ in range(2):
        run_anew(program, compiler_options={"xla_dump_to": str(tmp_path)})
        assert any(tmp_path.iterdir())
        for file in tmp_path.iterdir():
            file.unlink()
    assert store.asked == []


USER = """
import sys
import numpy as np
import minijax as jax
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
for i in range(int(sys.argv[1])):
    out = jax.jit(lambda x: x * i + 1)(np.arange(3.0, dtype=np.float32))
    assert out.tolist() == [1, i + 1, 2 * i + 1], out
print(*jax.cache_stats()["stored"])
"""


def started(programs: int = 1, **variables: str) -> subprocess.Popen[str]:
    """A process of a user who has set these variables."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("XDG", "MINIJAX"))}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", USER, str(programs)],
        env={**kept, **variables, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def told(process: subprocess.Popen[str]) -> str:
    out, trace = process.communicate(timeout=120)
    assert (process.returncode, trace) == (0, "")
    return out.strip()


has_folder = pytest.mark.skipif(
    not system.identifies_processor(),
    reason="programs are stored only where processors can be told apart",
)


@has_folder
@pytest.mark.slow
@pytest.mark.feature("CW-05")
def test_programs_are_kept_among_the_users_caches(tmp_path: Path) -> None:
    off = told(started(HOME=str(tmp_path), MINIJAX_ENABLE_COMPILATION_CACHE="0"))
    assert (off, list(tmp_path.iterdir())) == ("0 0", [])

    assert [told(started(HOME=str(tmp_path))) for _ in range(2)] == ["0 1", "1 0"]
    folder = tmp_path / ".cache" / "minijax" / "programs"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [file.stat().st_mode & 0o777 for file in folder.iterdir()] == [0o600]

    other = tmp_path / "other"
    assert told(started(HOME=str(tmp_path), XDG_CACHE_HOME=str(other))) == "0 1"
    assert len(list((other / "minijax" / "programs").iterdir())) == 1


@has_folder
@pytest.mark.slow
@pytest.mark.feature("CW-05")
@pytest.mark.parametrize("obstacle", ["file", "shared", "relative"])
def test_folder_that_nobody_asked_for_fails_in_silence(tmp_path: Path, obstacle: str) -> None:
    caches = tmp_path / "caches"
    if obstacle == "file":
        caches.write_text("no folder")
    elif obstacle == "shared":
        (caches / "minijax" / "programs").mkdir(parents=True)
        (caches / "minijax" / "programs").chmod(0o777)
    where = "caches" if obstacle == "relative" else str(caches)

    assert told(started(HOME=str(tmp_path / "home"), XDG_CACHE_HOME=where)) == "0 1"
    assert not list(caches.rglob("*-cache"))


@pytest.mark.turns(3)
@has_folder
@pytest.mark.slow
@pytest.mark.feature("CW-05")
def test_several_processes_write_and_remove_at_once(tmp_path: Path) -> None:
    variables = {
        "MINIJAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "MINIJAX_COMPILATION_CACHE_MAX_SIZE": str(5 << 14),
        "MINIJAX_RAISE_PERSISTENT_CACHE_ERRORS": "1",
    }
    for process in [started(12, **variables) for _ in range(4)]:
        hits, misses = map(int, told(process).split())
        assert hits + misses == 12

    kept = [file.name for file in tmp_path.iterdir()]
    assert len(kept) <= 5
    assert all(name.endswith("-cache") for name in kept)


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
