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
    """Checks the version of jaxlib when minijax is imported.

    A later series than the newest tested one is used with a warning.  Later patch releases of that
    series are taken to be as good as tested.

    Raises:
        ImportError: it is too old.
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
    """Returns whether compile options have `exec_time_optimization_effort` and its like.

    0.10 has them; 0.11 removed them in favour of levels, `optimization_level` and its like.
    """
    return hasattr(build_options, "exec_time_optimization_effort")


def knows_compile_option(client: _jax.Client, name: str) -> bool:
    """Returns whether XLA knows a compiler option, without compiling anything.

    XLA reads options in order before it compiles, and rejects the first one that it does not know.
    The second option given here is never known, so that the message tells about the first.
    For example, 0.10 knows `xla_cpu_use_fusion_emitters` and 0.11 does not.
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
    """Returns what makes arrays of type `aval` from an executable's results, without checks.

    0.10 checks results unless told otherwise; 0.11 never does, and takes no such argument.
    """
    return _unchecked_handler()(aval, sharding, committed)


@functools.cache
def _unchecked_handler() -> Callable[[object, _jax.Sharding, bool], Any]:
    make = _jax.array_result_handler
    if "_skip_checks" not in (make.__doc__ or ""):
        return make
    return lambda aval, sharding, committed: make(aval, sharding, committed, True)


def replaces_shardings(array: _jax.ArrayImpl, other: _jax.ArrayImpl) -> bool:
    """Returns whether an array takes over the sharding of another one along with its memory.

    0.10 replaces both.  From 0.11 on an array takes over memory only, and only from an array whose
    sharding compares equal; in return the C++ call path checks that its arguments have memory.

    Args:
        array: an array that is not used afterwards.
        other: an array of the same type whose sharding differs.
    """
    try:
        array._replace_with(other)
    except _jax.JaxRuntimeError:
        return False
    return array._sharding is other._sharding


check_version(version.__version__)
