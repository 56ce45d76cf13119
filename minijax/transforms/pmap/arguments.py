"""What users say about a `pmap`, checked: axes, sizes, static and donated arguments, devices."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from minijax.core import tree
from minijax.core.axes import in_scope
from minijax.core.errors import message
from minijax.interpreters import flattening
from minijax.runtime import client
from minijax.transforms import jit

Axes = tuple[int | None, ...]


class AxesTree(NamedTuple):
    """A tree of axes that describes arguments or results; hashable."""

    leaves: tuple[Any, ...]
    structure: Any

    @classmethod
    def of(cls, name: str, given: Any) -> AxesTree:
        """What the user gave as `name`.

        Raises:
            TypeError: a leaf is no integer and not None.
        """
        leaves, structure = tree.flatten(given, lambda x: x is None)
        for leaf in leaves:
            if leaf is not None and (isinstance(leaf, bool) or not hasattr(leaf, "__index__")):
                raise TypeError(
                    message(
                        "pmap",
                        f"{name} must hold integers and None only.",
                        got=f"{leaf!r} of type {type(leaf).__name__} in {given!r}",
                    )
                )
        indices = tuple(x if x is None else operator.index(x) for x in leaves)
        return cls(indices, structure)

    def value(self) -> Any:
        """The tree."""
        return tree.unflatten(self.structure, self.leaves)


class Settings(NamedTuple):
    """What the user asked of `pmap`; hashable, and part of the keys of staged programs."""

    axis_name: Any
    in_axes: AxesTree
    out_axes: AxesTree
    static_argnums: tuple[int, ...]
    donate_argnums: tuple[int, ...]
    devices: tuple[Any, ...] | None
    backend: Any
    axis_size: int | None


class MappedArguments(NamedTuple):
    """How arguments are mapped: the axis of each leaf, and how many slices there are.

    Attributes:
        axes: the dimension of slices of each leaf, or None.
        size: the number of slices of this process.
        global_size: the number of those of all processes.
    """

    axes: Axes
    size: int
    global_size: int


def settings_of(
    fun: Any,
    *,
    axis_name: Any,
    in_axes: Any,
    out_axes: Any,
    static_argnums: Any,
    devices: Any,
    backend: Any,
    axis_size: Any,
    donate_argnums: Any,
) -> Settings:
    """The arguments of `pmap`, checked.

    Raises:
        TypeError: axes are no integers, or devices no sequence.
        ValueError: there are no devices, none of this process, or an argument is both static and
            donated.
    """
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    static = _positions(static_argnums)
    donated = _positions(donate_argnums)
    both = sorted(set(static) & set(donated))
    if both:
        raise ValueError(
            message(
                "pmap",
                f"arguments cannot be static and donated: {both}.",
                got=f"static_broadcasted_argnums={static}, donate_argnums={donated}",
            )
        )
    return Settings(
        axis_name,
        AxesTree.of("in_axes", in_axes),
        AxesTree.of("out_axes", out_axes),
        static,
        donated,
        _checked_devices(fun, devices),
        backend,
        None if axis_size is None else operator.index(axis_size),
    )


def _positions(given: Any) -> tuple[int, ...]:
    found = given if isinstance(given, Iterable) else (given,)
    return tuple(map(operator.index, found))


def _checked_devices(fun: Any, devices: Any) -> tuple[Any, ...] | None:
    if devices is None:
        return None
    found = tuple(devices)
    if not found:
        raise ValueError(
            message(
                "pmap",
                "devices must not be empty.",
                got="devices=[]",
                fix="leave devices away for the first ones there are",
            )
        )
    here = client.process_index(found[0].client)
    if all(d.process_index != here for d in found):
        raise ValueError(
            message(
                "pmap",
                f"devices for {flattening.function_name(fun)} must include one of this process.",
                got=f"devices={list(found)}, process {here}",
            )
        )
    return found


def split_static(
    name: str, settings: Settings, args: tuple[Any, ...]
) -> tuple[Any, Sequence[int] | None, tuple[Any, ...]]:
    """The static arguments; positions of the others, None for all; the others themselves.

    Raises:
        ValueError: there are fewer arguments than static ones, or one is not hashable.
    """
    given = settings.static_argnums
    if not given:
        return (), None, args
    highest = max(i if i >= 0 else -i - 1 for i in given)
    if highest >= len(args):
        raise ValueError(
            message(
                "pmap",
                f"{name} has static_broadcasted_argnums={given}.",
                got=f"{len(args)} positional argument(s)",
                expected=f"at least {highest + 1}; static arguments are passed by position",
            )
        )
    static = sorted(i % len(args) for i in given)
    for i in static:
        jit.check_hashable(name, i, args[i])
    statics = tuple((i, type(args[i]), args[i]) for i in static)
    positions = [i for i in range(len(args)) if i not in static]
    return statics, positions, tuple(args[i] for i in positions)


def in_axes_of(
    settings: Settings,
    in_tree: Any,
    positions: Sequence[int] | None,
    avals: Sequence[Any],
    names: Callable[[], Sequence[str]],
) -> MappedArguments:
    """The axis of each flat argument, and the number of slices.

    Raises:
        ValueError: in_axes does not fit the arguments, a dimension does not exist, sizes disagree
            or nothing is mapped.
    """
    in_axes = settings.in_axes.value()
    if positions is not None and isinstance(in_axes, tuple):
        in_axes = _for_positions(in_axes, positions)
    given = tree.flatten_in_axes("pmap in_axes", in_tree, in_axes)
    axes = tuple(_canonical(i, axis, avals[i], names) for i, axis in enumerate(given))
    size = _size(avals, axes, names)
    wanted = settings.axis_size
    # A map inside another one is over devices of this process.
    is_inner = any(axis.kind == "pmap" for axis in in_scope())
    several = not is_inner and client.process_count(_client_of(settings)) > 1
    if wanted is None:
        total = size * _processes(settings) if several else size
    elif not several and wanted != size:
        raise ValueError(
            message(
                "pmap",
                f"axis_size is {wanted}, and the arguments have {size} slices.",
                expected="one size, as there is one process",
                fix="leave axis_size away",
            )
        )
    else:
        total = wanted
    return MappedArguments(axes, size, total)


def _client_of(settings: Settings) -> Any:
    return settings.devices[0].client if settings.devices else settings.backend


def _processes(settings: Settings) -> int:
    """How many processes take part."""
    if settings.devices is None:
        return client.process_count(settings.backend)
    return len({device.process_index for device in settings.devices})


def _for_positions(in_axes: tuple[Any, ...], positions: Sequence[int]) -> tuple[Any, ...]:
    """The entries of arguments that are not static."""
    if positions and positions[-1] >= len(in_axes):
        raise ValueError(
            message(
                "pmap",
                "in_axes must have one entry for each positional argument, static ones too.",
                got=f"{len(in_axes)} entries, an argument at position {positions[-1]}",
            )
        )
    return tuple(in_axes[i] for i in positions)


def _canonical(
    index: int, axis: int | None, aval: Any, names: Callable[[], Sequence[str]]
) -> int | None:
    if axis is None:
        return None
    if not -aval.ndim <= axis < aval.ndim:
        raise ValueError(
            message(
                "pmap",
                f"axis {axis} of the argument {names()[index]} does not exist.",
                got=str(aval),
                expected=f"an argument of rank at least {axis + 1 if axis >= 0 else -axis}, or "
                "in_axes=None for arguments that all devices share",
            )
        )
    return int(axis % aval.ndim)


def _size(avals: Sequence[Any], axes: Axes, names: Callable[[], Sequence[str]]) -> int:
    mapped = [
        (i, aval.shape[axis])
        for i, (aval, axis) in enumerate(zip(avals, axes, strict=True))
        if axis is not None
    ]
    sizes = {size for _, size in mapped}
    if len(sizes) == 1:
        return int(sizes.pop())
    if not sizes:
        raise ValueError(
            message(
                "pmap",
                "no argument is mapped, so there is nothing to map over.",
                fix="map at least one argument (in_axes)",
            )
        )
    known = names()
    raise ValueError(
        message(
            "pmap",
            "the sizes of the mapped dimensions disagree.",
            got="\n".join(
                f"{known[i]}: {avals[i]}, dimension {axes[i]} has size {size}" for i, size in mapped
            ),
            expected="one size; in_axes=None for arguments that all devices share",
        )
    )


def out_axes_of(settings: Settings, out_tree: Any, avals: Sequence[Any]) -> Axes:
    """The axis of each flat result.

    Raises:
        ValueError: out_axes does not fit the results, or a dimension cannot be there.
    """
    given = tree.flatten_axes(
        "pmap out_axes", out_tree, settings.out_axes.value(), value="the results"
    )
    found = []
    for i, (axis, aval) in enumerate(zip(given, avals, strict=True)):
        rank = aval.ndim + 1
        if axis is not None and not -rank <= axis < rank:
            raise ValueError(
                message(
                    "pmap",
                    f"out_axes {axis} is out of range for {flattening.result_paths(out_tree)[i]}.",
                    got=f"a result of rank {rank} with the mapped dimension",
                )
            )
        found.append(axis if axis is None else axis % rank)
    return tuple(found)


def donations(
    settings: Settings, in_tree: Any, positions: Sequence[int] | None
) -> tuple[bool, ...]:
    """Which flat arguments give their memory away."""
    args_tree, kwargs_tree = in_tree.children()
    subtrees = args_tree.children()
    places = range(len(subtrees)) if positions is None else positions
    total = len(subtrees) + len(settings.static_argnums)
    wanted = {i % total if -total <= i < total else i for i in settings.donate_argnums}
    flags: list[bool] = []
    for place, subtree in zip(places, subtrees, strict=True):
        flags += [place in wanted] * subtree.num_leaves
    return (*flags, *(False,) * kwargs_tree.num_leaves)


def check_names_no_devices(name: str, devices: Sequence[Any] | None) -> None:
    """Refuses maps inside other programs that name devices.

    Raises:
        ValueError: the map does.
    """
    if devices is not None:
        raise ValueError(
            message(
                "pmap",
                f"{name} names devices and is called inside another program, which has devices.",
                got=f"devices={list(devices)}",
                fix="leave devices away, or give them to the outermost pmap",
            )
        )


def check_platform(name: str, backend: Any, platform: str) -> None:
    """Refuses maps inside programs for another platform than they name.

    Raises:
        ValueError: the map names another one.
    """
    if backend is not None and client.get_backend(backend).platform != platform:
        raise ValueError(
            message(
                "pmap",
                f"{name} is for another platform than the program that it is called in.",
                got=f"backend={backend!r}, inside a program for {platform!r}",
                fix="leave backend away, or give it to the outermost pmap",
            )
        )
