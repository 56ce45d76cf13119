"""What minijax needs of jaxlib, and what it does with versions that lack some of it.

The first tests fail where a new jaxlib has renamed or removed something that minijax uses: they
name it.  The others take one attribute away, or pretend another version, and show the way around.
"""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from jaxlib import _jax, xla_client

import minijax as jax
from minijax.core import capabilities
from minijax.core.config import disable_most_optimizations
from minijax.runtime import client
from minijax.runtime.compile import options_for

pytestmark = pytest.mark.feature("CW-03")

_PACKAGE = Path(jax.__file__).parent

WITH_FALLBACK = {
    "ExecutableBuildOptions": {"exec_time_optimization_effort", "memory_fitting_effort"},
}
"""Attributes that some tested versions lack; `core/capabilities.py` asks for them first."""

USED_OF_CLASSES = {
    _jax.ArrayImpl: (
        "__cuda_array_interface__ _arrays _committed _copy_single_device_array_to_host_async "
        "_npy_value _replace_with _rewrap_with_aval_and_sharding _sharding "
        "_single_device_array_to_np_array_did_copy aval block_until_ready delete is_deleted "
        "is_ready on_device_size_in_bytes unsafe_buffer_pointer"
    ),
    _jax.Client: (
        "compile_and_load deserialize_executable device_count devices live_arrays "
        "local_device_count local_devices platform platform_version process_index "
        "serialize_executable"
    ),
    _jax.Device: (
        "addressable_memories client default_memory device_kind id local_hardware_id memory "
        "platform process_index"
    ),
    _jax.LoadedExecutable: (
        "execute_sharded get_compiled_memory_stats get_output_layouts get_output_shardings "
        "get_parameter_layouts get_parameter_shardings hlo_modules serialize"
    ),
    _jax.ExecuteResults: "consume_token consume_with_handlers",
    _jax.CompileOptions: (
        "env_option_overrides executable_build_options num_partitions num_replicas "
        "parameter_is_tupled_arguments"
    ),
    _jax.ExecutableBuildOptions: (
        "allow_spmd_sharding_propagation_to_output allow_spmd_sharding_propagation_to_parameters "
        "device_assignment memory_fitting_level num_partitions num_replicas optimization_level "
        "use_shardy_partitioner use_spmd_partitioning exec_time_optimization_effort "
        "memory_fitting_effort"
    ),
    xla_client.HloSharding: (
        "from_proto iota_tile is_manual is_replicated is_tiled manual replicate "
        "tile_assignment_devices tile_assignment_dimensions"
    ),
}
"""Attributes of objects of jaxlib that minijax uses, by class."""


def _names_of_modules() -> set[str]:
    """Returns the dotted names of jaxlib that the package's text refers to by a module."""
    texts = [path.read_text(encoding="utf-8") for path in _PACKAGE.rglob("*.py")]
    return {name for text in texts if "from jaxlib" in text for name in _names_in(ast.parse(text))}


def _names_in(tree: ast.Module) -> Iterator[str]:
    modules = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("jaxlib"):
            for alias in node.names:
                modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                yield f"{node.module}.{alias.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            names = [node.attr]
            inner: ast.expr = node.value
            while isinstance(inner, ast.Attribute):
                names.append(inner.attr)
                inner = inner.value
            if isinstance(inner, ast.Name) and inner.id in modules:
                yield ".".join([modules[inner.id], *reversed(names)])


def _exists(name: str) -> bool:
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value: object = importlib.import_module(".".join(parts[:length]))
        except ImportError:
            continue
        for part in parts[length:]:
            # What an instance has is for the table above to list.
            if not isinstance(value, types.ModuleType | type):
                return True
            if not hasattr(value, part):
                return False
            value = getattr(value, part)
        return True
    return False


def test_every_name_that_the_package_takes_from_jaxlib_exists():
    names = _names_of_modules()
    assert len(names) > 100
    assert "jaxlib._jax.ArrayImpl" in names
    assert sorted(name for name in names if not _exists(name)) == []


@pytest.mark.parametrize("kind", USED_OF_CLASSES, ids=lambda kind: kind.__name__)
def test_every_attribute_that_the_package_uses_exists_or_has_a_fallback(kind):
    missing = {name for name in USED_OF_CLASSES[kind].split() if not hasattr(kind, name)}
    assert missing <= WITH_FALLBACK.get(kind.__name__, set())


def test_attributes_in_the_table_are_used():
    text = "\n".join(path.read_text(encoding="utf-8") for path in _PACKAGE.rglob("*.py"))
    names = {name for attributes in USED_OF_CLASSES.values() for name in attributes.split()}
    assert sorted(name for name in names if name not in text) == []


def test_a_missing_name_is_noticed():
    assert not _exists("jaxlib._jax.ArrayImplementation")
    assert not _exists("jaxlib._jaxx.ArrayImpl")


def test_names_are_found_through_any_import_of_jaxlib():
    text = "from jaxlib.mlir import ir\nfrom jaxlib import _jax\n_jax.config.Config(ir.A)"
    tree = ast.parse(text)
    assert set(_names_in(tree)) == {
        "jaxlib.mlir.ir",
        "jaxlib._jax",
        "jaxlib._jax.config.Config",
        "jaxlib._jax.config",
        "jaxlib.mlir.ir.A",
    }


def test_result_handlers_need_no_flag_against_checks(monkeypatch):
    calls = []

    def make(aval, sharding, committed):
        """(aval: object, sharding: object, committed: bool) -> ResultHandler"""
        calls.append((aval, sharding, committed))

    capabilities._unchecked_handler.cache_clear()
    monkeypatch.setattr(_jax, "array_result_handler", make)
    try:
        capabilities.array_result_handler("aval", "sharding", True)
    finally:
        capabilities._unchecked_handler.cache_clear()
    assert calls == [("aval", "sharding", True)]


def test_options_of_xla_are_asked_for_without_compiling():
    backend = client.cpu_client()
    assert capabilities.has_compile_option(backend, "xla_llvm_disable_expensive_passes")
    assert not capabilities.has_compile_option(backend, "xla_no_such_thing")


@pytest.mark.parametrize("is_known", [True, False])
def test_single_operations_compile_with_or_without_the_option_for_them(monkeypatch, is_known):
    client._without_fusion.cache_clear()
    monkeypatch.setattr(capabilities, "has_compile_option", lambda client, name: is_known)
    try:
        with disable_most_optimizations(False):
            options = options_for(
                tuple(jax.devices()[:1]), options={**client.ONE_OPERATION, "xla_dump_to": "x"}
            )
    finally:
        client._without_fusion.cache_clear()
    extra = [("xla_cpu_use_fusion_emitters", False)] if is_known else []
    assert options.env_option_overrides == [("xla_dump_to", "x"), *extra]


SCENARIO = """
import numpy as np
import minijax as jax
import minijax.numpy as jnp
from jaxlib import _jax
from minijax.runtime import placement

{without}
mesh = None
with jax.cpu_devices(4):
    mesh = jax.make_mesh((4,), ("x",))
    split = jax.NamedSharding(mesh, jax.P("x"))
    pieces = [jax.device_put(np.array([i]), d) for i, d in enumerate(jax.devices())]
    whole = jax.make_array_from_single_device_arrays((4,), split, pieces)
    double = jax.jit(lambda x: 2 * x, donate_argnums=0)
    for _ in range(3):
        print(double(jax.device_put(np.array([7]), jax.devices()[1])))
    print(double(pieces[1]), pieces[1].is_deleted(), whole)
    whole.delete()
    print(repr(whole), [piece.is_deleted() for piece in pieces])
    other = jax.device_put(np.arange(4), split)
    double(other)
    try:
        print(jax.jit(jnp.sin)(other))
    except RuntimeError as error:
        print(type(error).__name__, str(error).splitlines()[0])
    shared = jax.device_put(np.arange(4), split)
    alias = jax.device_put(shared, split, may_alias=True)
    shared.delete()
    print(shared.is_deleted(), alias.is_deleted(), alias)
    for memory in ("pinned_host", "device"):
        array = jax.device_put(np.arange(4), split.with_memory_kind(memory))
        array.delete()
        print(repr(array))
"""
_REFUSES = """
jaxlibs_own = _jax.ArrayImpl._replace_with

def replace_memory(self, other):
    if self._sharding is not other._sharding and not self._sharding == other._sharding:
        raise _jax.JaxRuntimeError("Unable to replace an Array with an Array of different sharding")
    jaxlibs_own(self, other)

_jax.ArrayImpl._replace_with = replace_memory
"""


def test_arrays_are_deleted_and_donated_where_their_shardings_stay():
    printed = {
        subprocess.run(
            [sys.executable, "-c", SCENARIO.format(without=without)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for without in ("", _REFUSES)
    }
    assert printed == {
        "[14]\n[14]\n[14]\n"
        "[2] True Array(deleted, i32[4@x])\n"
        "Array(deleted, i32[4@x]) [False, True, False, False]\n"
        "DeletedArrayError Array: the array has been deleted.\n"
        "True True Array(deleted, i32[4@x])\n"
        "Array(deleted, i32<host>[4@x])\n"
        "Array(deleted, i32[4@x])\n"
    }


IMPORT = """
import warnings
from jaxlib import version
version.__version__ = {installed!r}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import minijax as jax, minijax.numpy as jnp
    print(jax.jit(jnp.sum)(jnp.arange(4)))
print(*[warning.message for warning in caught], sep="\\n")
"""


def _imported_with(installed: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", IMPORT.format(installed=installed)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_newer_jaxlib_works_with_one_warning():
    done = _imported_with("97.1.0.dev20300101")
    assert done.stdout == (
        "6\n"
        f"minijax is tested with jaxlib {capabilities.OLDEST} to {capabilities.NEWEST}; "
        "97.1.0.dev20300101 is newer.\n"
        "  fix       if something fails: python -m pip install "
        f'"jaxlib<={capabilities.NEWEST}"\n'
    )


def test_a_patch_of_the_newest_jaxlib_works_without_a_warning():
    series = ".".join(capabilities.NEWEST.split(".")[:2])
    assert _imported_with(f"{series}.99").stdout == "6\n\n"


def test_an_older_jaxlib_is_refused_by_a_sentence():
    done = _imported_with("0.9.3")
    assert done.returncode == 1
    assert "ImportError: minijax requires jaxlib 0.10.2 or newer, but 0.9.3" in done.stderr
