"""Making foreign functions known: headers to compile them with, and XLA's table of their names."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from minijax.core.errors import error
from minijax.runtime import call_targets


def include_dir() -> str:
    """The folder of the C++ headers to compile foreign functions with, which come with jaxlib.

    Returns:
        The path; `xla/ffi/api/ffi.h` is in it.

    Raises:
        RuntimeError: there is no such folder.

    Example:
        >>> from pathlib import Path
        >>> Path(minijax.ffi.include_dir(), "xla", "ffi", "api", "ffi.h").exists()
        True
    """
    found = call_targets.include_folder()
    if found is None:
        problem = "this jaxlib brings no C++ headers."
        fix = "install a release of jaxlib"
        error(RuntimeError, "ffi.include_dir", problem, expected="a folder jaxlib/include", fix=fix)
    return found


def pycapsule(funcptr: Any) -> Any:
    """A Python object around the address of a function, as `register_ffi_target` takes it.

    Args:
        funcptr: a function of a library that `ctypes` has loaded, or an address as an integer.

    Raises:
        ValueError: the address is 0.

    Example:
        >>> import ctypes
        >>> minijax.ffi.pycapsule(ctypes.pythonapi.Py_IsInitialized)  # doctest: +ELLIPSIS
        <capsule object NULL at 0x...>
    """
    address = funcptr if isinstance(funcptr, int) else ctypes.cast(funcptr, ctypes.c_void_p).value
    if not address:
        problem = "there is no function at address 0."
        expected = "a function of a library that ctypes has loaded, or its address"
        error(ValueError, "ffi.pycapsule", problem, got=repr(funcptr), expected=expected)
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return make(address, None, None)


def register_ffi_target(
    name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any
) -> None:
    """Gives a foreign function a name that `ffi_call` and `ffi_lowering` call it by.

    Types that it keeps values of must be registered before, by `register_ffi_type`.

    Args:
        name: the name.
        fn: a capsule of its address, see `pycapsule`; or a dict with a capsule for each stage of a
            call: `"instantiate"`, which makes a value that lives as long as the executable,
            `"prepare"`, `"initialize"` and `"execute"`.
        platform: the back end it is for; one that is not there yet gets it when it comes.
        api_version: 1 for functions by `xla/ffi/api/ffi.h`, 0 for those of the older interface,
            `void f(void* out, const void** in)`.
        kwargs: `traits`, bits that tell XLA more of the function.

    Raises:
        JaxRuntimeError: `fn` is neither a capsule nor a dict of capsules, or the name is taken.
        TypeError: `kwargs` has something else.

    Example:
        >>> import ctypes
        >>> address = ctypes.pythonapi.Py_IsInitialized  # for the example: nothing calls it
        >>> fn = minijax.ffi.pycapsule(address)
        >>> minijax.ffi.register_ffi_target("a_kernel", fn, platform="some_accelerator")
    """
    unknown = sorted(set(kwargs) - {"traits"})
    if unknown:
        problem = f"unexpected arguments: {', '.join(unknown)}."
        error(TypeError, "ffi.register_ffi_target", problem, expected="traits, or none")
    call_targets.register(name, fn, platform, api_version, **kwargs)


def register_ffi_type(
    name: str, type_registration: Mapping[str, Any], platform: str = "cpu"
) -> None:
    """Makes a C++ type known whose values a foreign function keeps from call to call.

    Args:
        name: the name of the type.
        type_registration: a dict of capsules: `"type_id"` of the address of its
            `xla::ffi::TypeId`, and `"type_info"` of that of its `xla::ffi::TypeInfo`, which says
            how to delete a value; state needs both.
        platform: the back end it is for; one that is not there yet gets it when it comes.

    Raises:
        JaxRuntimeError: it is not such a dict, or another type has the name.

    Example:
        >>> import ctypes
        >>> capsule = minijax.ffi.pycapsule(ctypes.pythonapi.Py_IsInitialized)
        >>> minijax.ffi.register_ffi_type("a_state", {"type_id": capsule}, platform="some_gpu")
    """
    call_targets.register_type(name, type_registration, platform)


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """As `register_ffi_type`, of a type that needs no deletion.

    Source: mirrors jax.ffi.register_ffi_type_id (0.10), which refuses with this jaxlib.

    Args:
        name: the name of the type.
        obj: a capsule of the address of its `xla::ffi::TypeId`, or the dict that
            `register_ffi_type` takes.
        platform: the back end it is for.

    Raises:
        JaxRuntimeError: it is neither, or another type has the name.

    Example:
        >>> import ctypes
        >>> capsule = minijax.ffi.pycapsule(ctypes.pythonapi.Py_IsInitialized)
        >>> minijax.ffi.register_ffi_type_id("a_type", capsule, platform="some_gpu")
    """
    declaration = obj if isinstance(obj, Mapping) else {"type_id": obj}
    call_targets.register_type(name, declaration, platform)


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Tells that a foreign function works on the entries of leading dimensions one by one.

    Where `ffi_call(num_batch_dims=k)` calls it, devices that hold parts of these dimensions then
    call it with their own parts, and nothing is gathered.

    Args:
        name: the name that `register_ffi_target` was given, or will be.

    Raises:
        TypeError: it is not a string.

    Example:
        >>> minijax.ffi.register_ffi_target_as_batch_partitionable("a_kernel_for_batches")
    """
    call_targets.check_text("ffi.register_ffi_target_as_batch_partitionable", "name", name)
    call_targets.register_as_batch_partitionable(name)
