"""The arguments of a jitted function: which are static, which give their memory away, and where.

Input: what the user says by position or by name.  Output: both, and the flags of flat arguments;
`transforms/jit.py` asks once when a function is wrapped, and with each new signature.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from minijax.core.errors import error, message
from minijax.interpreters import flattening
from minijax.runtime import client


def split_static(
    name: str, settings: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, list[int], tuple[Any, ...], dict[str, Any]]:
    """The static arguments; positions of the others; the others themselves."""
    static = {i + len(args) if i < 0 else i for i in settings.static_argnums}
    static_names = set(settings.static_argnames)
    positions = [i for i in range(len(args)) if i not in static]
    fixed_args = tuple((i, args[i]) for i in sorted(static) if i < len(args))
    fixed_kwargs = tuple((k, v) for k, v in sorted(kwargs.items()) if k in static_names)
    for where, value in (*fixed_args, *fixed_kwargs):
        check_hashable(name, where, value)
    dyn_kwargs = {k: v for k, v in kwargs.items() if k not in static_names}
    statics = tuple((where, type(value), value) for where, value in (*fixed_args, *fixed_kwargs))
    return statics, positions, tuple(args[i] for i in positions), dyn_kwargs


def donated_leaves(
    settings: Any, in_tree: Any, positions: Sequence[int] | None, num_args: int
) -> tuple[bool, ...]:
    """For each flat argument whether results may take its memory; empty if of none."""
    if not (settings.donate_argnums or settings.donate_argnames):
        return ()
    args_tree, kwargs_tree = in_tree.children()
    places = range(num_args) if positions is None else positions
    total = max([*places, *settings.static_argnums, -1]) + 1
    wanted = {i + total if i < 0 else i for i in settings.donate_argnums}
    flags: list[bool] = []
    for place, subtree in zip(places, args_tree.children(), strict=True):
        flags += [place in wanted] * subtree.num_leaves
    _, names = kwargs_tree.node_data() or (None, ())
    for name, subtree in zip(names or (), kwargs_tree.children(), strict=True):
        flags += [name in settings.donate_argnames] * subtree.num_leaves
    return tuple(flags)


def with_statics(
    function: Callable[..., Any], statics: Any, positions: Sequence[int]
) -> Callable[..., Any]:
    """`function` of its dynamic arguments alone."""
    fixed = {where: value for where, _, value in statics if isinstance(where, int)}
    fixed_kwargs = {where: value for where, _, value in statics if isinstance(where, str)}

    def call(*args: Any, **kwargs: Any) -> Any:
        given = iter(args)
        total = len(args) + len(fixed)
        full = [fixed[i] if i in fixed else next(given) for i in range(total)]
        return function(*full, **fixed_kwargs, **kwargs)

    return call


def check_hashable(name: str, where: Any, value: Any) -> None:
    """Refuses a static argument that cannot be part of a cache's key.

    Raises:
        ValueError: it has no hash.
    """
    try:
        hash(value)
    except TypeError:
        error(
            ValueError,
            name,
            f"the static argument {where!r} is not hashable.",
            got=f"{value!r} of type {type(value).__name__}",
            expected="a hashable value: its hash is part of the key of the compiled program",
            fix="pass a tuple in place of a list or array, or do not mark it as static",
            cause=None,
        )


def warn_of_useless_donation(
    name: str, avals: Sequence[Any], donated: Sequence[bool], outvars: Sequence[Any]
) -> None:
    """Warns of donated arguments that no result can use."""
    if not any(donated):
        return
    free = [(v.aval.shape, v.aval.dtype) for v in outvars]
    useless = []
    for aval, given in zip(avals, donated, strict=True):
        if given and (aval.shape, aval.dtype) in free:
            free.remove((aval.shape, aval.dtype))
        elif given:
            useless.append(aval)
    if useless:
        warnings.warn(
            message(
                name,
                "some donated arguments fit no result, so their memory cannot be reused.",
                got=", ".join(a.str_short() for a in useless),
            ),
            stacklevel=5,
        )


def _as_tuple(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _check_kinds(
    transformation: str, purpose: str, nums: tuple[Any, ...], names: tuple[Any, ...]
) -> None:
    for argument, given, kind in (("argnums", nums, int), ("argnames", names, str)):
        wrong = [x for x in given if not isinstance(x, kind) and not hasattr(x, "__index__")]
        if wrong or (kind is str and not all(isinstance(x, str) for x in given)):
            error(
                TypeError,
                transformation,
                f"{purpose}_{argument} are {'positions' if kind is int else 'names'}.",
                got=", ".join(map(repr, given)),
                expected="an int, or a sequence of ints"
                if kind is int
                else "a string, or a sequence of strings",
            )


def resolve_names(
    function: Any, argnums: Any, argnames: Any, purpose: str, transformation: str = "jit"
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of the same parameters, each found from the other by the signature.

    Raises:
        TypeError: a position is no integer, or a name no string.
        ValueError: the function has no such parameter.
    """
    nums, names = _as_tuple(argnums), _as_tuple(argnames)
    if not nums and not names:
        return (), ()
    _check_kinds(transformation, purpose, nums, names)
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return nums, names
    positional = [
        p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    keywords = any(p.kind is p.VAR_KEYWORD for p in parameters)
    all_names = {p.name for p in parameters}
    for i in nums:
        if not variadic and not -len(positional) <= i < len(positional):
            error(
                ValueError,
                transformation,
                f"{purpose}_argnums {i} is out of range.",
                got=f"{flattening.function_name(function)} with positional parameters {positional}",
            )
    for name in names:
        if name not in all_names and not keywords:
            error(
                ValueError,
                transformation,
                f"{purpose}_argnames names no parameter: {name!r}.",
                got=f"{flattening.function_name(function)} with parameters {sorted(all_names)}",
            )
    if not names and nums:
        named = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        names = tuple(
            positional[i]
            for i in nums
            if abs(i) <= len(positional) - (i >= 0) and positional[i] in named
        )
    elif not nums and names:
        nums = tuple(i for i, n in enumerate(positional) if n in names)
    return nums, names


def check_not_both(fun: Any, static: tuple[Any, ...], donated: tuple[Any, ...]) -> None:
    """Refuses arguments that are static and donated.

    Raises:
        ValueError: there is one.
    """
    both = [x for x in static if x in donated]
    if both:
        error(
            ValueError,
            "jit",
            "an argument is both static and donated: static ones have no memory to give.",
            got=f"{', '.join(map(repr, both))} of {flattening.function_name(fun)}",
            fix="leave it out of donate_argnums and donate_argnames",
        )


def device_of(device: Any, backend: Any, *, is_placed: bool) -> Any:
    """The device that the arguments `device` and `backend` name, if any.

    Raises:
        AttributeError: `device` is none.
        ValueError: placements are given as well.
    """
    if is_placed and not (device is None and backend is None):
        error(
            ValueError,
            "jit",
            "takes in_shardings, or device or backend, not both.",
            got=f"in_shardings, device={device!r}, backend={backend!r}",
            fix="say with in_shardings alone where to run",
        )
    if backend is not None:
        return client.get_backend(backend).local_devices()[0]
    if device is not None and not hasattr(device, "platform"):
        error(
            AttributeError,
            "jit",
            "not a device.",
            got=f"device: {device!r} of type {type(device).__name__}",
            expected="one of minijax.devices()",
        )
    return device
