"""The table of foreign functions that compiled programs call by name.

Input: a name, a platform and the address of machine code, in a capsule.  XLA keeps the table for
the whole process; a function for a platform that has no client yet is kept until it has one.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.util
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jaxlib import _jax, xla_client

from minijax.core import deferral, system
from minijax.core.errors import error

LEGACY, TYPED = 0, 1
"""Versions of the interface between XLA and foreign functions, as the table numbers them."""

_KERNELS_OF_PLATFORM = {
    "cpu": ("jaxlib.lapack",),
    "cuda": ("jaxlib.gpu_solver", "jaxlib.gpu_linalg", "jaxlib.gpu_sparse"),
    "rocm": ("jaxlib.gpu_solver", "jaxlib.gpu_linalg", "jaxlib.gpu_sparse"),
}

_lock = threading.Lock()
_batch_partitionable: set[str] = set()
# XLA ends the process where one of the older interface is registered over another.
_legacy: dict[tuple[str, str], int | None] = {}
_with_kernels: set[str] = set()


@functools.cache
@deferral.whole
def _open_table_of_host() -> None:
    """Lets what is registered for the host reach XLA at once, in the order of registration.

    jaxlib would keep it until there is a client and then enter functions before types; but types
    must be known before the functions that keep values of them.
    """
    xla_client.register_custom_type_handler("cpu", _jax.register_custom_type)
    xla_client.register_custom_call_handler("cpu", _jax.register_custom_call_target)


_REGISTER = "ffi.register_ffi_target"


def check_text(user: str, argument: str, given: object) -> None:
    """Refuses, for the public function `user`, names that XLA cannot read.

    Raises:
        TypeError: it is not a string.
        ValueError: it has characters that no text has, such as those of broken pairs.
    """
    if not isinstance(given, str):
        got = f"{given!r} of type {type(given).__name__}"
        error(TypeError, user, f"{argument} must be a str.", got=got)
    if given.encode(errors="replace").decode() != given:
        error(ValueError, user, f"{argument} is no text in Unicode.", got=ascii(given))


def _check_addresses(user: str, given: object, right: str) -> int | None:
    """The last address in a capsule, or in several; XLA calls or reads what is there at once.

    Raises:
        ValueError: the memory there cannot be executed ("x") or read ("r").
    """
    address = None
    for capsule in given.values() if isinstance(given, Mapping) else [given]:
        if type(capsule).__name__ == "PyCapsule":
            address = _pointer(capsule, _name(capsule))
            if not system.may_access(address, right):
                problem = "there is neither a function nor a declaration at an address."
                error(ValueError, user, problem, got=f"{capsule} of {address:#x}")
    return address


_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
    ("PyCapsule_GetName", ctypes.pythonapi)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def register(
    name: str,
    function: Callable[..., Any],
    platform: str = "cpu",
    api_version: int = TYPED,
    traits: int = 0,
) -> None:
    """Puts a function into the table.

    Args:
        name: what programs call.
        function: a capsule of its address, or a capsule for each stage of a call.
        platform: the back end it is for.
        api_version: `TYPED` or `LEGACY`.
        traits: bits of XLA's FFI traits.
    """
    _open_table_of_host()
    check_text(_REGISTER, "name", name)
    check_text(_REGISTER, "platform", platform)
    address = _check_addresses(_REGISTER, function, "x")
    if api_version == LEGACY and _legacy.setdefault((name, platform), address) != address:
        problem = f"another function is registered as {name!r} already."
        error(ValueError, _REGISTER, problem, fix="choose another name")
    xla_client.register_custom_call_target(
        name, function, platform, api_version, xla_client.CustomCallTargetTraits(traits)
    )


def register_type(name: str, declaration: object, platform: str = "cpu") -> None:
    """Makes a type known whose values stateful functions keep.

    Args:
        name: the type's name.
        declaration: capsules of its id (`type_id`) and of how to delete a value (`type_info`).
        platform: the back end it is for.
    """
    _open_table_of_host()
    check_text("ffi.register_ffi_type", "name", name)
    _check_addresses("ffi.register_ffi_type", declaration, "r")
    xla_client.register_custom_type(name, declaration, platform)


def register_as_batch_partitionable(name: str) -> None:
    """Tells that a function works on the entries of leading dimensions one by one."""
    with _lock:
        if name not in _batch_partitionable:
            xla_client.register_custom_call_as_batch_partitionable(name)
            _batch_partitionable.add(name)


def include_folder() -> str | None:
    """The folder of the C++ headers that jaxlib brings; None if it brings none."""
    spec = importlib.util.find_spec("jaxlib")
    places = [] if spec is None else spec.submodule_search_locations or []
    folders = [Path(place, "include") for place in places]
    return next((str(folder) for folder in folders if folder.is_dir()), None)


def provide_linear_algebra(platform: str) -> None:
    """Puts jaxlib's kernels of linear algebra for a platform into the table, the first time.

    Nothing happens on platforms for which this installation has none.
    """
    if platform not in _with_kernels:
        _provide(platform)


@deferral.whole
def _provide(platform: str) -> None:
    for module in map(importlib.import_module, _KERNELS_OF_PLATFORM.get(platform, ())):
        for table, functions in module.registrations().items():
            for name, function, version in functions:
                xla_client.register_custom_call_target(name, function, table, version)
        for name in module.batch_partitionable_targets():
            register_as_batch_partitionable(name)
        if platform == "cpu":
            # It looks for LAPACK among what SciPy brings, which takes a while.
            module._lapack.initialize()
    _with_kernels.add(platform)
