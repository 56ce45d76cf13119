"""The kernels of `kernels.cc`, compiled once for all tests and all of their processes."""

import ctypes
import fcntl
import shutil
import subprocess
from pathlib import Path

import pytest

from minijax import ffi

SOURCE = Path(__file__).with_name("kernels.cc")
PREFIX = "tested_"
"""What the names of targets begin with, so that they are nobody else's."""

NAMES = ("normalize_rows", "weigh", "tell", "note", "increment", "follow")


@pytest.fixture(scope="session")
def kernels(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> ctypes.CDLL:
    """The library; its functions are known to XLA by their names after `PREFIX`."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++ to compile kernels with")
    folder = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):
        folder = folder.parent
    library = folder / "libkernels.so"
    with open(folder / "kernels.lock", "w") as lock:
        # Processes of one run come here at once; the first compiles, the others wait for it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.exists():
            _compile(compiler, library)
    loaded = ctypes.CDLL(str(library))
    _register(loaded)
    return loaded


def _compile(compiler: str, library: Path) -> None:
    flags = ["-std=c++17", "-Wall", "-shared", "-fPIC", "-isystem", ffi.include_dir()]
    subprocess.run([compiler, *flags, str(SOURCE), "-o", str(library)], check=True)


def _register(library: ctypes.CDLL) -> None:
    for name in NAMES:
        ffi.register_ffi_target(PREFIX + name, ffi.pycapsule(getattr(library, name)))
    for function in (library.counter_id, library.counter_info):
        function.restype = ctypes.c_void_p
    library.sum_of_notes.restype = ctypes.c_int64
    identity = {
        "type_id": ffi.pycapsule(library.counter_id()),
        "type_info": ffi.pycapsule(library.counter_info()),
    }
    ffi.register_ffi_type(PREFIX + "counter", identity)
    stages = {
        "instantiate": ffi.pycapsule(library.counter_instantiate),
        "execute": ffi.pycapsule(library.counter_execute),
    }
    ffi.register_ffi_target(PREFIX + "counter", stages)
    double_four = ffi.pycapsule(library.double_four)
    ffi.register_ffi_target(PREFIX + "double_four", double_four, api_version=0)
    ffi.register_ffi_target(PREFIX + "normalize_batches", ffi.pycapsule(library.normalize_rows))
    ffi.register_ffi_target_as_batch_partitionable(PREFIX + "normalize_batches")
