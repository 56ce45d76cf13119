"""Back ends that compile for themselves: they are handed a program, and return what runs it.

Input: a module, and all that is needed to call it.  Output: a function of the arguments.  A back
end is one of these if it has a method `compile_replicated(program)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minijax.runtime import client, placement
from minijax.runtime.array import physical_aval
from minijax.runtime.execute import Executable
from minijax.runtime.handlers import InputsHandler, ResultsHandler

Run = Callable[[Sequence[Any]], Sequence[Any]]


class ForeignProgram(NamedTuple):
    """What a back end is handed that compiles for itself.

    Attributes:
        name: what the program is called.
        module: the StableHLO module.
        options: jaxlib's compile options, with the devices.
        devices: where it shall run, in order.
        host_callbacks: Python functions that the module calls, by index.
        is_trivial: whether it computes nothing: its results are arguments and constants.
        in_indices: for each argument that it uses, the part of it that each device holds.
        place: makes C++ arrays, one for each parameter, of the arguments of a call.
        build: makes the results of a call of C++ arrays, or of lists of their pieces.
    """

    name: str
    module: Any
    options: Any
    devices: tuple[Any, ...]
    host_callbacks: tuple[Any, ...]
    is_trivial: bool
    in_indices: tuple[tuple[Any, ...], ...]
    place: InputsHandler
    build: ResultsHandler


def compiler_of(devices: tuple[Any, ...]) -> Callable[[ForeignProgram], Run] | None:
    """What compiles for devices whose back end does so for itself; None for others."""
    return getattr(client.get_device_backend(devices[0]), "compile_replicated", None)


def hand_over(
    compiler: Callable[[ForeignProgram], Run],
    executable: Executable,
    name: str,
    module: Any,
    options: Any,
    *,
    is_trivial: bool,
) -> None:
    """Has a back end compile a program, and an executable without a program run it.

    Args:
        compiler: the back end's `compile_replicated`.
        executable: all that is known about the program, but how to run it.
        name: what it is called.
        module: the StableHLO module.
        options: jaxlib's compile options.
        is_trivial: whether it computes nothing.
    """
    executable.foreign = compiler(
        ForeignProgram(
            name,
            module,
            options,
            executable.devices,
            executable.callbacks,
            is_trivial,
            tuple(map(_indices, executable.in_avals, executable.ins)),
            executable.place,
            executable.build,
        )
    )


def _indices(aval: Any, target: Any) -> tuple[Any, ...]:
    shape = physical_aval(aval).shape
    return tuple(place.slices for place in placement.places(target.public, shape))
