"""Configuration states: global values, environment variables, thread-local overrides.

Input: environment, `config.update`, context managers.  Output: `state.value`, read at any step.
Each state is backed by one of jaxlib's native `Config` objects, so that reading costs a C++
attribute and the C++ call path sees the states that belong in its keys.
`docs/recipes/add_a_setting.md` declares one.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import itertools
import logging
import os
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar, cast

from jaxlib import _jax

from minijax.core import deferral, source, system
from minijax.core.errors import error
from minijax.core.operators import Function, Value
from minijax.core.sequences import UNSPECIFIED

# Few programs misspell a setting, and every program imports this file.
difflib = deferral.module("difflib")

F = TypeVar("F", bound=Function)
T = TypeVar("T")

_native = _jax.config
_TRUE_WORDS = frozenset({"1", "true", "yes", "on", "y", "t"})
_FALSE_WORDS = frozenset({"0", "false", "no", "off", "n", "f", ""})

trace_context: Callable[[], tuple[Hashable, ...]] = _native.trace_context
"""Returns the values of all states with `in_trace_key=True`, as one tuple for cache keys."""


class Context(AbstractContextManager[Any]):
    """Base of context managers that are decorators too: each call is in a context of its own."""

    __slots__ = ()

    def __call__(self, function: F) -> F:
        """`function` inside this context."""

        @source.result_of(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with copy.copy(self):
                return function(*args, **kwargs)

        return cast(F, inside)


class override(Context, Generic[T]):  # noqa: N801  a context manager reads as a verb
    """Context manager: inside it, a native state has another value in this thread."""

    __slots__ = ("_native", "_on_change", "_previous", "_value")

    def __init__(self, native: Any, value: T, on_change: Callable[[T], None] | None = None) -> None:
        self._native = native
        self._value = value
        self._on_change = on_change

    def __enter__(self) -> None:
        self._previous = self._native.swap_local(self._value)
        if self._on_change is not None:
            self._on_change(self._value)

    def __exit__(self, *_: object) -> None:
        self._native.set_local(self._previous)
        if self._on_change is not None:
            self._on_change(self._native.value)


@source.boundaries("__call__")
class State(Generic[T]):
    """One named setting.

    Order of precedence: thread-local override, `config.update`, environment variable, default.
    Calling the state returns a context manager: `with enable_x64(True): ...`.  A boolean state
    that is called without an argument is turned on.

    Programs are cached, so a state that influences them has to be part of a cache key.  Which key
    depends on when the state is read.

    Args:
        name: the name; the environment variable is `MINIJAX_` and the name in capitals.
        default: the value if nothing sets it.
        doc: the documentation; its first paragraph is a summary.
        parse: checks and converts what a user passes, given the name and the value.  It receives
            a string if the value comes from the environment.
        in_trace_key: whether the value is part of the keys of traced programs.  Required if a rule
            or a library function reads it while a function is traced: a program that was traced
            under another value is then traced again.  Such a value is part of the key of calls,
            too.  It must be hashable.
        in_call_key: whether the value is part of the key under which jaxlib's C++ call path finds
            an executable, without being part of the keys of traced programs.  Required if it is
            read on each call, when a program is lowered, compiled or run: a call under another
            value then runs the Python code that reads it.  A value that changes the executable has
            to be part of the key of executables as well.  It must be hashable.
        on_change: called with the active value when it changes, and at import if the environment
            sets it.  It passes the value on to something that cannot read the state, such as
            Python's logging.

    A state with neither key is read only where no cache is involved, such as in a message.
    """

    __slots__ = (
        "_native",
        "_on_change",
        "_parse",
        "default",
        "doc",
        "env_name",
        "in_trace_key",
        "name",
    )

    def __init__(
        self,
        name: str,
        default: T,
        doc: str,
        *,
        parse: Callable[[str, Any], T],
        in_trace_key: bool = False,
        in_call_key: bool = False,
        on_change: Callable[[T], None] | None = None,
    ) -> None:
        self.name = name
        self.default = default
        self.doc = doc
        self.env_name = f"MINIJAX_{name.upper()}"
        self._parse = parse
        self.in_trace_key = in_trace_key
        text = os.environ.get(self.env_name)
        initial = default if text is None else parse(name, text)
        self._native = _native.Config(
            f"minijax_{name}",
            initial,
            include_in_jit_key=in_trace_key or in_call_key,
            include_in_trace_context=in_trace_key,
        )
        config.add(self)
        self._on_change = on_change
        if on_change is not None and initial != default:
            on_change(initial)

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """What the state says, and how it is set."""
        summary, _, rest = inspect.cleandoc(self.doc).partition("\n\n")
        return f"""{summary}

`config.update({self.name!r}, value)` sets it, `with {self.name}(value):` for a block in this
thread; {self.env_name} holds its first value, which is {self.default!r} by default.

{rest}"""

    @property
    def value(self) -> T:
        """The value in force in this thread."""
        return self._native.value

    @property
    def native(self) -> Any:
        """The C++ object behind the state."""
        return self._native

    def update(self, value: T) -> None:
        """Sets the global value, for every thread without an override."""
        self._native.set_global(self._parse(self.name, value))
        if self._on_change is not None:
            self._on_change(self._native.value)

    def __call__(self, new_val: object = UNSPECIFIED) -> Context:
        return override(self._native, self.checked(new_val), self._on_change)

    def checked(self, new_val: object) -> T:
        """A value that the state can have, of what a context manager is given.

        Raises:
            TypeError: nothing was given, and the state is not one that is on or off.
            ValueError: the state takes no such value.
        """
        if new_val is UNSPECIFIED:
            if type(self.default) is not bool:
                error(TypeError, self.name, "needs a value.", fix=f"with {self.name}(value): ...")
            new_val = True
        return self._parse(self.name, new_val)

    def __bool__(self) -> bool:  # noqa: PLE0304  it never returns
        problem = "a configuration state has no truth value."
        fix = f"config.{self.name} on the config object, or the state's .value"
        error(TypeError, f"config.{self.name}", problem, fix=fix)

    def __repr__(self) -> str:
        return f"State({self.name}={self.value!r})"


@source.boundaries("update", "read")
class Config:
    """All states by name: `config.update("enable_x64", True)`, `config.enable_x64`.

    Names are also accepted with JAX's prefix, so `config.update("jax_enable_x64", True)` works.
    """

    def __init__(self) -> None:
        self._states: dict[str, State[Any]] = {}

    def add(self, state: State[Any]) -> None:
        """Registers `state`; two states of one name are an error."""
        if state.name in self._states:
            error(ValueError, "config.add", f"state {state.name!r} exists already.")
        self._states[state.name] = state

    def state(self, name: str) -> State[Any]:
        """The state called `name`.

        Raises:
            AttributeError: there is none.
        """
        short = name.removeprefix("jax_")
        short = _OTHER_NAMES.get(short, short)
        if short not in self._states:
            near = difflib.get_close_matches(short, self._states)
            problem = f"unknown configuration state {name!r}."
            expected = "one of minijax.config.values"
            fix = f"did you mean {' or '.join(map(repr, near))}?" if near else None
            error(AttributeError, "config", problem, expected=expected, fix=fix)
        return self._states[short]

    @property
    def x64_enabled(self) -> bool:
        """Whether arrays have dtypes of 64 bits."""
        return bool(self.read("enable_x64"))

    def update(self, name: str, val: object) -> None:
        """Sets the global value of the state called `name`.

        Raises:
            AttributeError: there is no such state.
            ValueError: the value is not one the state accepts.
        """
        self.state(name).update(val)

    def read(self, name: str) -> Any:
        """The value in force of the state called `name`."""
        return self.state(name).value

    @property
    def values(self) -> dict[str, Any]:
        """Every state's value in force, by name, and by the name with JAX's prefix."""
        names = (*self._states, *_OTHER_NAMES)
        return {prefix + name: self.read(name) for prefix in ("", "jax_") for name in names}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.state(name).value

    def __iter__(self) -> Iterator[State[Any]]:
        return iter(self._states.values())

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._states})


_OTHER_NAMES = {"enable_checks": "check", "x64_enabled": "enable_x64"}
"""What JAX calls states that have other names here."""

config = Config()


class UserContext(Generic[T]):
    """A value of the user's own that is part of what programs are traced for.

    Attributes:
        value: what is in force in this thread.
    """

    __slots__ = ("_native",)

    def __init__(self, default_value: T) -> None:
        name = f"minijax_user_context_{next(_numbers)}"
        self._native = _native.Config(
            name, default_value, include_in_jit_key=True, include_in_trace_context=True
        )

    @property
    def value(self) -> T:
        """The value in force in this thread."""
        return self._native.value

    def get_global(self) -> T:
        """The value of threads that have none of their own."""
        return self._native.get_global()

    def set_global(self, value: T) -> None:
        """Sets the value of threads that have none of their own."""
        self._native.set_global(value)

    def __call__(self, value: T) -> Context:
        return override(self._native, value)


_numbers = itertools.count()


def make_user_context(default_value: object = None) -> UserContext[Any]:
    """A value that jitted functions may read: they are traced anew where it is another one.

    Args:
        default_value: what it is where no `with` says otherwise; values need a hash.

    Example:
        >>> scale = jax.make_user_context(1)
        >>> f = jax.jit(lambda x: x * scale.value)
        >>> f(3)
        Array(3, dtype=int32, weak_type=True)
        >>> with scale(10):
        ...     f(3)
        Array(30, dtype=int32, weak_type=True)
    """
    return UserContext(default_value)


def one_of(*choices: Any, **keys: Any) -> Callable[[Declaration], State[Any]]:
    """Returns a decorator like `state`'s, for one of `choices`; the first is the default."""

    def parse(name: str, value: object) -> Any:
        if value in choices:
            return value
        expected = "one of " + ", ".join(map(repr, choices))
        problem = "not one of the choices."
        error(ValueError, f"config.{name}", problem, got=repr(value), expected=expected)

    return state(choices[0], parse=parse, **keys)


def state(
    default: T, *, parse: Callable[[str, Any], T] | None = None, **keys: Any
) -> Callable[[Declaration], State[T]]:
    """Returns a decorator that declares a state with the name and docstring of a function.

    Args:
        default: the value if nothing sets it.
        parse: as for `State`; by default the state takes values of the type of `default`.
        **keys: `in_trace_key`, `in_call_key` and `on_change`, as for `State`.
    """
    parser = parse or _PARSERS[type(default)]
    return lambda declaration: State(
        declaration.__name__, default, declaration.__doc__ or "", parse=parser, **keys
    )


Declaration = Callable[[], None]
"""A function without a body, whose name and documentation are those of a state."""


def _as_given(name: str, value: object) -> Any:
    return value


def _parse_device(name: str, value: object) -> Any:
    if not (value is None or isinstance(value, str) or hasattr(value, "device_kind")):
        error(ValueError, name, "no device.", got=repr(value), expected="a device or a platform")
    return value


def _parse_bool(name: str, value: Value) -> bool:
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _TRUE_WORDS:
            return True
        if word in _FALSE_WORDS:
            return False
    elif value in (True, False, 0, 1):
        return bool(value)
    error(ValueError, f"config.{name}", "not a boolean.", got=repr(value), expected="True or False")


def _parse_number(name: str, value: object, convert: Callable[[Any], Any], what: str) -> Any:
    try:
        return convert(value)
    except (TypeError, ValueError):
        error(ValueError, f"config.{name}", f"not {what}.", got=repr(value), cause=None)


def _parse_text(name: str, value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    error(ValueError, f"config.{name}", "not a string.", got=repr(value))


def _parse_path(name: str, value: object) -> str | None:
    if value is None or isinstance(value, (str, os.PathLike)):
        return None if value is None else os.fspath(value) or None
    expected = "a path, or None"
    error(ValueError, f"config.{name}", "not a path.", got=repr(value), expected=expected)


_PARSERS: dict[type, Callable[[str, Any], Any]] = {
    bool: _parse_bool,
    int: functools.partial(_parse_number, convert=int, what="an integer"),
    float: functools.partial(_parse_number, convert=float, what="a number"),
    str: _parse_text,
}


@state(False, in_trace_key=True)
def enable_x64() -> None:
    """Keep 64-bit types instead of reducing them to 32 bits.

    Source: mirrors jax.enable_x64 (0.10).

    Example:
        >>> with jax.enable_x64(True):
        ...     print(jnp.arange(3).dtype)
        int64
    """


@state(False, in_trace_key=True)
def disable_jit() -> None:
    """Run jitted functions operation by operation."""


@one_of("standard", "strict", in_trace_key=True)
def numpy_dtype_promotion() -> None:
    """How operands of different dtypes combine; 'strict' refuses all but weak types.

    Source: mirrors jax.numpy_dtype_promotion (0.10).

    Example:
        >>> with jax.numpy_dtype_promotion("strict"):
        ...     jnp.arange(3) + jnp.ones(3)
        Traceback (most recent call last):
        minijax...TypePromotionError: ...
    """


@one_of("allow", "warn", "raise", in_trace_key=True)
def numpy_rank_promotion() -> None:
    """What happens when operands of different rank are broadcast.

    Source: mirrors jax.numpy_rank_promotion (0.10).

    Example:
        >>> with jax.numpy_rank_promotion("raise"):
        ...     jnp.ones((2, 3)) + jnp.ones(3)
        Traceback (most recent call last):
        ValueError: ...
    """


@one_of(
    None, "default", "high", "highest", "bfloat16", "tensorfloat32", "float32", in_trace_key=True
)
def default_matmul_precision() -> None:
    """Precision of dot and convolution where the call names none.

    Source: mirrors jax.default_matmul_precision (0.10).

    Example:
        >>> with jax.default_matmul_precision("float32"):
        ...     jaxpr = jax.make_jaxpr(lax.dot)(jnp.ones(3), jnp.ones(3))
        >>> jaxpr.eqns[0].params["precision"]
        (Precision.HIGHEST, Precision.HIGHEST)
    """


@state(None, parse=_parse_device, in_call_key=True)
def default_device() -> None:
    """Device of computations without committed arguments.

    Source: mirrors jax.default_device (0.10).

    Example:
        >>> with jax.default_device(jax.devices()[3]):
        ...     print(jnp.ones(2).devices())
        {CpuDevice(id=3)}
    """


@one_of(
    "threefry2x32",
    "rbg",
    "unsafe_rbg",
    "philox2x32",
    "philox4x32",
    "threefry4x32",
    in_trace_key=True,
)
def default_prng_impl() -> None:
    """Implementation of random keys made without naming one.

    Source: mirrors jax.default_prng_impl (0.10).

    Example:
        >>> with jax.default_prng_impl("rbg"):
        ...     print(jax.random.key(0).dtype)
        key<rbg>
    """


@state(False)
def log_compiles() -> None:
    """Log every compilation at WARNING level.

    Source: mirrors jax.log_compiles (0.10).

    Example:
        >>> jax.config.update("log_compiles", False)
        >>> jax.config.log_compiles
        False
    """


@state(False, in_trace_key=True)
def check_tracer_leaks() -> None:
    """Raise when a tracer outlives its trace.

    Source: mirrors jax.check_tracer_leaks (0.10).

    Example:
        >>> leaked = []
        >>> with jax.check_tracer_leaks(True):
        ...     jax.jit(lambda x: leaked.append(x))(1)
        Traceback (most recent call last):
        RuntimeError: ...
    """


@state(False, in_call_key=True)
def debug_nans() -> None:
    """Raise when a computation produces a NaN.

    Source: mirrors jax.debug_nans (0.10).

    Example:
        >>> with jax.debug_nans(True):
        ...     jnp.log(-1.0)
        Traceback (most recent call last):
        FloatingPointError: ...
    """


@state(False, in_call_key=True)
def debug_infs() -> None:
    """Raise when a computation produces an infinity.

    Source: mirrors jax.debug_infs (0.10).

    Example:
        >>> with jax.debug_infs(True):
        ...     jnp.log(0.0)
        Traceback (most recent call last):
        FloatingPointError: ...
    """


@state(frozenset[Any](), parse=lambda _, value: frozenset(value), in_trace_key=True)
def checking() -> None:
    """Kinds of faults that what is being traced is checked for; set by `checked`."""


@state(False, in_trace_key=True)
def debug_key_reuse() -> None:
    """Raise when a random key is used twice.

    Source: mirrors jax.debug_key_reuse (0.10).

    Example:
        >>> key = jax.random.key(0)
        >>> with jax.debug_key_reuse(True):
        ...     jax.random.normal(key) + jax.random.normal(key)
        Traceback (most recent call last):
        minijax...CheckedKeyReuseError: ...
    """


@state(False)
def check() -> None:
    """Type-check every jaxpr after each pass.

    Source: mirrors jax.enable_checks (0.10).

    Example:
        >>> with jax.enable_checks(True):
        ...     print(jax.make_jaxpr(lambda x: x + 1)(1))
        { lambda ; a:i32[]. let b:i32[] = add a 1:i32[] in (b,) }
    """


enable_checks = check


@state(True, in_call_key=True)
def use_shardy_partitioner() -> None:
    """Partition programs with Shardy instead of its predecessor, GSPMD."""


@state(False)
def disable_most_optimizations() -> None:
    """Compile faster to slower code.  Programs that are compiled already stay as they are.

    For programs that run once, such as those of tests: StableHLO is simplified and fused as ever,
    but machine code is made of it with little effort.  Mirrors jax_disable_most_optimizations.
    """


@state(False, in_trace_key=True)
def remove_size_one_mesh_axis_from_type() -> None:
    """Leave mesh axes of size 1 out of sums over devices.

    Source: mirrors jax.remove_size_one_mesh_axis_from_type (0.10).

    Example:
        >>> jax.config.remove_size_one_mesh_axis_from_type
        False
    """


@state(False, in_trace_key=True)
def allow_divergent_collectives() -> None:
    """Accept collectives in branches and loops that, as far as is known, not all devices enter."""


@state(True, in_trace_key=True)
def experimental_xmap_spmd_lowering() -> None:
    """Run the devices of xmap as partitions of one program; otherwise as replicas of it."""


@state(True, in_trace_key=True)
def eager_pmap() -> None:
    """Run pmap operation by operation where jit is disabled."""


@state(False, in_trace_key=True)
def pmap_via_shard_map() -> None:
    """Run pmap as a jitted shard_map."""


@state(False, in_trace_key=True)
def pmap_results_unstacked() -> None:
    """Describe results of pmap by `PmapSharding`: pieces then lack the mapped dimension."""


@state(False)
def distributed_debug() -> None:
    """Log each run of a mapped function at WARNING level."""


@one_of("allow_jit", "allow_all")
def spmd_mode() -> None:
    """Whether single operations may run on arrays of which other processes hold pieces."""


@state(False)
def no_tracing() -> None:
    """Raise when a jitted function is traced.

    Source: mirrors jax.no_tracing (0.10).

    Example:
        >>> f = jax.jit(lambda x: x + 1)
        >>> with jax.no_tracing(True):
        ...     f(1)
        Traceback (most recent call last):
        RuntimeError: ...
    """


@state(False, in_call_key=True)
def no_execution() -> None:
    """Raise when a compiled program is run.

    Source: mirrors jax.no_execution (0.10).

    Example:
        >>> f = jax.jit(lambda x: x + 1)
        >>> with jax.no_execution(True):
        ...     f(1)
        Traceback (most recent call last):
        RuntimeError: ...
    """


@state("", in_call_key=True)
def platforms() -> None:
    """Platforms that may be used, by commas; the first is the default one.  Empty: all."""


@state("", in_call_key=True)
def platform_name() -> None:
    """The default platform.  Empty: as `platforms` says."""


@state(True, in_trace_key=True)
def threefry_partitionable() -> None:
    """Each random bit depends on its key and place alone, however arrays are split.

    Without it, bits are those of earlier versions, which depend on the size of the whole.

    Source: mirrors jax.threefry_partitionable (0.10).

    Example:
        >>> key = jax.random.key(0)
        >>> with jax.threefry_partitionable(False):
        ...     older = jax.random.bits(key, (3,))
        >>> older == jax.random.bits(key, (3,))
        Array([False, False, False], dtype=bool)
    """


@one_of("allow", "warn", "error", in_trace_key=True)
def legacy_prng_key() -> None:
    """What functions of random numbers do with an old-style key, an array of words.

    Source: mirrors jax.legacy_prng_key (0.10).

    Example:
        >>> with jax.legacy_prng_key("error"):
        ...     key = jax.random.key(0)
    """


@state(-1, in_call_key=True)
def num_cpu_devices() -> None:
    """Host devices to create; -1 leaves it to XLA_FLAGS, or 1."""


@state(1, in_trace_key=True)
def num_simulated_cores() -> None:
    """Cores of a mesh of cores, on a host, where their number is not given."""


@state(False, in_trace_key=True)
def detect_core_races() -> None:
    """Follow each core of core_map stepwise, and refuse programs in which two write one place."""


@one_of("gloo", "none")
def cpu_collectives_implementation() -> None:
    """How host devices of several processes exchange data; by 'none' they cannot."""


@state(False)
def enable_recoverability() -> None:
    """Let a process live on when others of its program have died: it does so in any case."""


def _folder_of_programs() -> str | None:
    """The user's own folder of programs; None where there is none, or processors look alike."""
    caches = os.path.join(os.path.expanduser("~"), ".cache")
    caches = os.path.join(caches, os.environ.get("XDG_CACHE_HOME", ""), "minijax", "programs")
    return caches if os.path.isabs(caches) and system.identifies_processor() else None


@state(_folder_of_programs(), parse=_parse_path)
def compilation_cache_dir() -> None:
    """Folder where compiled programs are kept for other processes; None for no folder."""


@state(-1)
def compilation_cache_max_size() -> None:
    """Bytes that the folder of compiled programs may hold: those used longest ago make room.

    -1 means 512 MiB in the user's own folder, and no bound in one that was named.
    """


@state(True)
def enable_compilation_cache() -> None:
    """Use the folder or store of compiled programs, if any."""


@state(0.1)
def persistent_cache_min_compile_time_secs() -> None:
    """Programs that were compiled in less time are not kept."""


@state(0)
def persistent_cache_min_entry_size_bytes() -> None:
    """Smaller programs are not kept."""


@state(False)
def raise_persistent_cache_errors() -> None:
    """Raise what goes wrong with the store of compiled programs, instead of a warning."""


@one_of("auto", "off", "tracebackhide", "remove_frames", "quiet_remove_frames")
def traceback_filtering() -> None:
    """What becomes of frames of the package in tracebacks.

    "off" leaves them.  "tracebackhide" marks them for IPython and pytest, which hide them.
    "remove_frames" takes them out and leaves the whole traceback in the exception's cause;
    "quiet_remove_frames", and "auto", take them out and say so in a note.

    Source: mirrors the setting jax_traceback_filtering (0.10).

    Example:
        >>> jax.config.traceback_filtering
        'auto'
    """


source.traceback_filtering = lambda: traceback_filtering.value


@state(False, in_trace_key=True)
def check_static_indices() -> None:
    """Raise where an element is read at an integer that is out of bounds, instead of the nearest.

    Source: mirrors the setting jax_check_static_indices (0.10).

    Example:
        >>> with jax.config.state("check_static_indices")(True):
        ...     jnp.arange(3)[5]
        Traceback (most recent call last):
        IndexError: ...
    """


@state(0, in_trace_key=True)
def random_seed_offset() -> None:
    """Added to the seed of every random key."""


@state(False, in_trace_key=True)
def high_dynamic_range_gumbel() -> None:
    """Draw Gumbel numbers, and what is made of them, in the mode "high" where none is named."""


@one_of("warn", "error", in_trace_key=True)
def explicit_x64_dtypes() -> None:
    """What happens where a dtype of 64 bits is asked for, and 64-bit types are off."""


@state(False)
def disallow_mesh_context_manager() -> None:
    """Raise where a mesh is entered by `with mesh:` instead of `set_mesh`."""


@state(False)
def explain_cache_misses() -> None:
    """Log, at WARNING level, each time that a jitted function is traced again, and for what types.

    Source: mirrors jax.explain_cache_misses (0.10); `minijax.explain.retraces` says more.

    Example:
        >>> with jax.explain_cache_misses(True):
        ...     jax.jit(lambda x: x + 1)(1)
        Array(2, dtype=int32, weak_type=True)
    """


def _set_level(level: str | None) -> None:
    logging.getLogger("minijax").setLevel(level or "NOTSET")


@one_of("NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL", None, on_change=_set_level)
def logging_level() -> None:
    """The level of the package's logger, "minijax"."""


_shown_loggers: list[logging.Logger] = []
_to_stderr = logging.StreamHandler()


def _show_loggers(names: str) -> None:
    for logger in _shown_loggers:
        logger.removeHandler(_to_stderr)
        logger.setLevel(logging.NOTSET)
    _shown_loggers[:] = map(logging.getLogger, filter(None, names.split(",")))
    for logger in _shown_loggers:
        logger.addHandler(_to_stderr)
        logger.setLevel(logging.DEBUG)


@state("", on_change=_show_loggers)
def debug_log_modules() -> None:
    """Loggers, by commas, of which everything is shown on stderr: "minijax"."""


@state("")
def dump_ir_to() -> None:
    """A folder, into which the StableHLO of each program that is compiled is written."""


@state(True)
def include_debug_info_in_dumps() -> None:
    """Whether the files that `dump_ir_to` asks for have locations."""


@state(True)
def compiler_enable_remat_pass() -> None:
    """Whether XLA may compute values again to save memory."""


@state(0.0)
def exec_time_optimization_effort() -> None:
    """How much effort XLA takes to make programs fast, from -1 to 1."""


@state(0.0)
def memory_fitting_effort() -> None:
    """How much effort XLA takes to make programs fit into memory, from -1 to 1."""


@one_of("UNKNOWN", "O0", "O1", "O2", "O3")
def optimization_level() -> None:
    """How much XLA optimizes for speed, as a level."""


@one_of("O2", "UNKNOWN", "O0", "O1", "O3")
def memory_fitting_level() -> None:
    """How much XLA does to make programs fit into memory, as a level."""


@state(False, on_change=_jax.guard_lib.update_thread_guard_global_state)
def thread_guard() -> None:
    """Raise where programs of several processes start in another thread than the one that asks.

    Source: mirrors jax.thread_guard (0.10).

    Example:
        >>> with jax.thread_guard(True):
        ...     jnp.sqrt(4.0)
        Array(2., dtype=float32, weak_type=True)
    """


_WITHOUT_EFFECT = {
    "`random.key` makes keys, `random.PRNGKey` words": "enable_custom_prng",
    "softmax has the stable derivative always": "softmax_custom_jvp",
    "errors and locations tell the user's line": "include_full_tracebacks_in_locations=True "
    "traceback_in_locations_limit=100 tracer_error_num_traceback_frames=5",
    "jaxprs are printed without colors": "pprint_use_color=True",
    "there is one implementation, without versions": "use_direct_linearize=True custom_vjp3 "
    "remat3 scan3 refs_to_pins use_simplified_jaxpr_constants",
    "it is checked always": "disable_bwd_checks disable_vmap_shmap_error mutable_array_checks=True",
    "`shard_map` says itself whether it checks": "check_vma",
    "casts to what varies are made where they are needed": "auto_pcast=True",
    "sums of float16 are accumulated in float32": "allow_f16_reductions=True",
    "programs on host devices are queued always": "cpu_enable_async_dispatch=True",
    "large constants are arguments of programs": "captured_constants_warn_bytes=2_000_000_000 "
    "captured_constants_report_frames=0 embedded_constants_max_bytes=32",
    "XLA folds constants": "eager_constant_folding",
    "the store of compiled programs has its own rules": "compilation_cache_check_contents "
    "compilation_cache_include_metadata_in_key "
    "persistent_cache_enable_xla_caches='xla_gpu_per_fusion_autotune_cache_dir' "
    "remove_custom_partitioning_ptr_from_cache_key",
    "profiles do not guide the compiler": "enable_pgle pgle_profiling_runs=3 "
    "pgle_aggregation_percentile=90 compilation_cache_expect_pgle xla_profile_version=0",
    "each process compiles for itself": "share_binary_between_hosts "
    "share_binary_between_hosts_timeout_ms=1200000",
    "what is compiled is logged, whatever its size": "compiler_detailed_logging_min_ops=10",
    "`ad_checkpoint.print_saved_residuals` shows residuals": "log_checkpoint_residuals",
    "there are no kernels of its kind": "bcoo_cusparse_lowering mosaic_allow_hlo "
    "pallas_enable_debug_checks pallas_poison_buffers pallas_use_mosaic_gpu=True "
    "pallas_verbose_errors ragged_dot_use_gpu_pallas_triton_lowering "
    "ragged_dot_use_ragged_dot_instruction=True threefry_gpu_kernel_lowering "
    "use_emit_pipeline_primitive use_magma='auto'",
    "there is no jax2tf": "jax2tf_associative_scan_reductions "
    "jax2tf_default_native_serialization=True",
    "processes have met before clients are made": "cpu_get_global_topology_timeout_minutes=5 "
    "cpu_get_local_topology_timeout_minutes=2 check_proxy_envs=True enable_preemption_service=True",
    "clients are kept": "debug_leaked_clients_on_clear_backends",
}
"""States of JAX that programs may set: why they change nothing, and their defaults."""

_REFUSED = {
    "debug_nans, debug_infs and minijax.checked find it.": "error_checking_behavior_nan='ignore' "
    "error_checking_behavior_divide='ignore' error_checking_behavior_oob='ignore' "
    "experimental_unsafe_xla_runtime_errors",
    "programs are exported in one format.": "export_calling_convention_version=10 "
    "export_ignore_forward_compatibility serialization_version=0",
    "the names of files are told as they are.": "hlo_source_file_canonicalization_regex=None "
    "source_url_schema=None",
    "XLA is not told which line has called it.": "send_traceback_to_runtime='off'",
    "clients have the devices that are there; `platforms` chooses.": "backend_target='' "
    "cuda_visible_devices='all' mock_gpu_topology='' mock_num_gpu_processes=0 xla_backend='' "
    "oneapi_visible_devices='all' pjrt_client_create_options=None rocm_visible_devices='all' "
    "sort_devices_by_process_index=True",
    "processes exchange data by collectives alone.": "cross_host_transfer_socket_address='' "
    "cross_host_transfer_timeout_seconds=None cross_host_transfer_transfer_size=None "
    "cross_host_transport_addresses='' force_dcn_cross_host_transfers",
    "StableHLO alone is dumped.": "dump_ir_modes='stablehlo'",
}
"""States of JAX that have to keep their defaults: why, and what these are."""


def _declare(setting: str, reason: str, *, refused: bool) -> None:
    """{reason}.

    Source: mirrors the setting of JAX (0.10).

    Example:
        >>> jax.config.read({name!r}) == {default}
        True
    """
    name, _, text = setting.partition("=")
    text = text or "False"
    default = ast.literal_eval(text)

    def default_alone(name: str, value: object) -> Any:
        if str(value) != str(default):
            error(ValueError, f"config.{name}", reason, got=repr(value), expected=text)
        return default

    doc = (_declare.__doc__ or "").format(reason=reason.rstrip("."), name=name, default=text)
    State[Any](name, default, doc, parse=default_alone if refused else _as_given)


for _reason, _settings in _WITHOUT_EFFECT.items():
    for _setting in _settings.split():
        _text = f"Accepted for programs that set it; without effect: {_reason}"
        _declare(_setting, _text, refused=False)
for _reason, _settings in _REFUSED.items():
    for _setting in _settings.split():
        _declare(_setting, _reason, refused=True)

# By these names the package shows them.
allow_f16_reductions = config.state("allow_f16_reductions")
auto_pcast = config.state("auto_pcast")
enable_custom_prng = config.state("enable_custom_prng")
jax2tf_associative_scan_reductions = config.state("jax2tf_associative_scan_reductions")
softmax_custom_jvp = config.state("softmax_custom_jvp")
