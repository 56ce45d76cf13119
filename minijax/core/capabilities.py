"""What the installed jaxlib can do, wherever versions of it differ.

Each function answers one question, by looking at jaxlib or by trying, never by comparing version
numbers: a capability may arrive, or disappear, in a release that nobody has tested.  The docstrings
say in which versions the answers differ.  Nothing else in the package asks about jaxlib's version,
except for the keys under which compiled programs are stored.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable
from typing import Any

from jaxlib import _jax, version

OLDEST = "0.10.2"
"""The oldest version of jaxlib that the test suite is run with."""

NEWEST = "0.12.0.1"
"""The newest version of jaxlib that the test suite is run with."""


def check_version(installed: str) -> None:
    """Checks that the installed jaxlib is a version that minijax supports.

    Warns if the minor version is newer than `NEWEST`'s. A newer patch release is accepted without
    a warning.

    Raises:
        ImportError: the version is older than `OLDEST`.
    """
    if _numbers(installed) < _numbers(OLDEST):
        raise ImportError(
            f"minijax requires jaxlib {OLDEST} or newer, but {installed} is installed.\n"
            f"  fix       python -m pip install --upgrade jaxlib"
        )
    if _numbers(installed)[:2] > _numbers(NEWEST)[:2]:
        warnings.warn(
            f"minijax is tested with jaxlib {OLDEST} to {NEWEST}; {installed} is newer.\n"
            f'  fix       if something fails: python -m pip install "jaxlib<={NEWEST}"',
            stacklevel=2,
        )


def _numbers(release: str) -> tuple[int, ...]:
    """Returns the leading numbers of a version, such as (0, 12, 0, 1) for "0.12.0.1.dev3"."""
    return tuple(map(int, re.match(r"\d+(\.\d+)*", release)[0].split(".")))  # type: ignore[index]


def has_compilation_efforts(build_options: _jax.ExecutableBuildOptions) -> bool:
    """Returns whether compile options have `exec_time_optimization_effort`.

    0.10 has it and `memory_fitting_effort`; 0.11 replaced both with `optimization_level` and
    `memory_fitting_level`.
    """
    return hasattr(build_options, "exec_time_optimization_effort")


def has_compile_option(client: _jax.Client, name: str) -> bool:
    """Returns whether XLA has a compiler option, without compiling anything.

    XLA parses options in order before it compiles, and its error names the first unknown one. The
    option in question is followed by one that never exists, so compilation always fails and the
    message shows whether the first was accepted. For example, 0.10 has
    `xla_cpu_use_fusion_emitters` and 0.11 does not.
    """
    options = _jax.CompileOptions()
    options.env_option_overrides = [(name, False), ("no_such_option", False)]
    devices = _jax.DeviceList(tuple(client.devices()[:1]))
    try:
        client.compile_and_load("func.func @main() {return}", devices, options)
    except _jax.JaxRuntimeError as caught:
        return f"'{name}'" not in str(caught)
    return True


def array_result_handler(aval: object, sharding: _jax.Sharding, committed: bool) -> Any:
    """Returns a handler that builds arrays of type `aval` from the buffers of a result.

    The handler does not check that the buffers match the type. 0.10 checks unless the argument
    `_skip_checks` is true; 0.11 never checks and does not have the argument.
    """
    return _unchecked_handler()(aval, sharding, committed)


@functools.cache
def _unchecked_handler() -> Callable[[object, _jax.Sharding, bool], Any]:
    make = _jax.array_result_handler
    if "_skip_checks" not in (make.__doc__ or ""):
        return make
    return lambda aval, sharding, committed: make(aval, sharding, committed, True)


def can_replace_sharding(array: _jax.ArrayImpl, other: _jax.ArrayImpl) -> bool:
    """Returns whether `ArrayImpl._replace_with` replaces the sharding as well as the memory.

    0.10 replaces both. 0.11 and later replace only the memory, and only if both shardings compare
    equal; their C++ call path checks that its arguments have memory.

    Args:
        array: an array to try it on; it must not be used afterwards.
        other: an array of the same type with another sharding.
    """
    try:
        array._replace_with(other)
    except _jax.JaxRuntimeError:
        return False
    return array._sharding is other._sharding


check_version(version.__version__)
