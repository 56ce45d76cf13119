"""Compiled programs as bytes: machine code, which runs where processor, jaxlib and devices agree.

Input: a `Compiled`.  Output: bytes and its trees, and the other way round.  Unlike an exported
program it is compiled already, so that it starts at once, and is of no use anywhere else.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from jaxlib import _jax

from minijax.core import source
from minijax.core.aval import AbstractValue, ShapedArray
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr
from minijax.export import seals
from minijax.export.tables import DamagedError
from minijax.interpreters import staging
from minijax.interpreters.structural import full
from minijax.lowering.call_plan import ANYWHERE, ProgramOptions
from minijax.runtime import client, placement, program_store
from minijax.runtime.array import physical_aval
from minijax.runtime.execute import Executable
from minijax.runtime.transfer import InputsHandler, ResultsHandler
from minijax.transforms.jit.stages import Compiled, Staged

if TYPE_CHECKING:
    from minijax.core.native import PyTreeDef


class _Record(NamedTuple):
    """What there is to know of a compiled program.

    Attributes:
        machine: what must agree where it runs, in words.
        key: a digest of all that decides which code is compiled.
        name: the function's name.
        devices: the numbers of its devices.
        ins: types of all arguments.
        outs: types of the results.
        kept: which arguments it takes; None for all.
        places: where it takes them, and the layouts in which they lie there.
        targets: the same of its results.
        donated: which arguments give their memory away.
        committed: whether its results stay where they are.
        code: XLA's bytes.
    """

    machine: str
    key: str
    name: str
    devices: tuple[int, ...]
    ins: tuple[Any, ...]
    outs: tuple[Any, ...]
    kept: tuple[int, ...] | None
    places: tuple[Any, ...]
    targets: tuple[Any, ...]
    donated: tuple[int, ...]
    committed: bool
    code: bytes


def _machine(devices: Sequence[Any]) -> str:
    backend = devices[0].client
    kinds = ", ".join(dict.fromkeys(str(d.device_kind) for d in devices))
    return f"{backend.platform} ({backend.platform_version.splitlines()[0]}), {kinds}"


def _key(devices: Sequence[Any]) -> str:
    options = _jax.CompileOptions()
    return program_store.program_key("module @executable", tuple(devices), options)


@source.boundary
def serialize(compiled: Compiled) -> tuple[bytes, PyTreeDef, PyTreeDef]:
    """A compiled program as bytes, and the structures of its arguments and results.

    Args:
        compiled: what `jit(f).lower(...).compile()` gives.

    Raises:
        TypeError: `compiled` is no compiled program.
        ValueError: it calls Python, has references or effects, or was not compiled by XLA here.

    Example:
        >>> from minijax.experimental import serialize_executable
        >>> compiled = jax.jit(lambda x: x + 1).lower(np.ones(3)).compile()
        >>> stored = serialize_executable.serialize(compiled)
        >>> serialize_executable.deserialize_and_load(*stored)(np.zeros(3))
        Array([1., 1., 1.], dtype=float32)
    """
    name = "serialize_executable.serialize"
    if not isinstance(compiled, Compiled):
        fix = "jit(f).lower(...).compile()"
        error(TypeError, name, "takes a compiled program.", got=repr(compiled), fix=fix)
    executable = compiled._executable
    reasons = {
        "it calls Python": executable.callbacks,
        "it has references": compiled._written,
        "it has effects": executable.has_effects,
        "it was compiled by another back end": executable.loaded is None,
        "it closes over values that are traced": compiled._outer,
        "it has large constants": executable.place.consts,
    }
    for reason, holds in reasons.items():
        if holds:
            problem = f"{compiled.fun_name} cannot leave the process: {reason}."
            error(
                ValueError,
                name,
                problem,
                fix="leave that out of what is compiled, or pass it as an argument",
            )
    devices, used = executable.devices, executable.place
    record = _Record(
        _machine(devices),
        _key(devices),
        compiled.fun_name,
        tuple(device.id for device in devices),
        tuple(map(_facts, compiled._closed.in_avals)),
        tuple(map(_facts, compiled._closed.out_avals)),
        None if used.kept is None else tuple(used.kept),
        tuple((place.public, place.layout) for place in used.targets),
        tuple((place.public, place.layout) for place in executable.build.targets),
        executable.donated,
        executable.committed,
        executable.code or devices[0].client.serialize_executable(executable.loaded),
    )
    return seals.sealed(pickle.dumps(tuple(record))), compiled.in_tree, compiled.out_tree


def _facts(aval: AbstractValue) -> tuple[Any, ...]:
    return aval.shape, aval.dtype, aval.weak_type, aval.split


def _type(facts: tuple[Any, ...]) -> ShapedArray:
    shape, dtype, weak_type, split = facts
    return ShapedArray(shape, dtype, weak_type, sharding=split)


@source.boundary
def deserialize_and_load(
    serialized: bytes,
    in_tree: PyTreeDef,
    out_tree: PyTreeDef,
    backend: str | _jax.Client | None = None,
    execution_devices: Sequence[Any] | None = None,
) -> Compiled:
    """A compiled program from bytes, ready to be called.

    The bytes must come from somebody you trust: they are machine code, and a pickle.

    Args:
        serialized: what `serialize` gave.
        in_tree: the structure of the arguments, which it gave too.
        out_tree: that of the results.
        backend: the platform to run on.
        execution_devices: the devices to run on; those that it was compiled for where absent.

    Raises:
        TypeError: `serialized` is not bytes.
        ValueError: the bytes are damaged, or of another processor, jaxlib or kind of devices, or
            the devices are others than it was compiled for.
    """
    name = "serialize_executable.deserialize_and_load"
    if not isinstance(serialized, bytes | bytearray):
        error(TypeError, name, "takes bytes.", got=type(serialized).__name__)
    record = _opened(bytes(serialized), name)
    found = execution_devices
    if found is None:
        every = {device.id: device for device in client.devices(backend)}
        found = [every[i] for i in record.devices if i in every]
    if tuple(device.id for device in found) != record.devices:
        problem = "the devices are others than the program was compiled for."
        expected = f"devices {', '.join(map(str, record.devices))}"
        error(ValueError, name, problem, got=", ".join(map(str, found)), expected=expected)
    if _key(found) != record.key:
        problem = "the program was compiled for another processor, jaxlib or kind of devices."
        fix = "compile it here, or export it: export.export(jit(f)) runs anywhere"
        got = f"a program for {record.machine}; XLA's flags and the number of cores count too"
        error(ValueError, name, problem, got=got, expected=_machine(found), fix=fix)
    return _loaded(record, tuple(found), in_tree, out_tree)


def _opened(serialized: bytes, name: str) -> _Record:
    try:
        data, is_sealed = seals.opened(serialized)
    except DamagedError:
        is_sealed = False
    if not is_sealed:
        problem = "the bytes are no compiled program, or a damaged one."
        error(ValueError, name, problem, got=f"{len(serialized)} bytes", cause=None)
    return _Record(*pickle.loads(data))


def _loaded(
    record: _Record, devices: tuple[Any, ...], in_tree: PyTreeDef, out_tree: PyTreeDef
) -> Compiled:
    """The program of a record."""
    ins, outs = list(map(_type, record.ins)), list(map(_type, record.outs))
    kept = range(len(ins)) if record.kept is None else record.kept
    there = placement.native_devices(devices)
    loaded = devices[0].client.deserialize_executable(record.code, there, None)
    used = [ins[i] for i in kept]
    executable = Executable(
        loaded,
        devices,
        InputsHandler(used, _natives(record.places, used), record.kept),
        ResultsHandler(outs, _natives(record.targets, outs), record.committed),
        committed=record.committed,
        donated=record.donated,
        code=record.code,
    )
    options = ProgramOptions(
        record.name, donated=tuple(i in record.donated for i in range(len(ins)))
    )
    staged = Staged(
        _closed(ins, outs), [], out_tree, options, ANYWHERE, inline=False, takes_references=False
    )
    lowered: Any = SimpleNamespace(_staged=staged, in_tree=in_tree, _written=())
    return Compiled(lowered, executable)


def _natives(places: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    return [
        placement.native(sharding, physical_aval(aval).ndim, layout)
        for (sharding, layout), aval in zip(places, avals, strict=True)
    ]


def _closed(ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> ClosedJaxpr:
    """A jaxpr with these types of arguments and results; nothing is computed by it."""
    jaxpr, consts = staging.stage(
        lambda *_: [full(aval.shape, 0, aval.dtype) for aval in outs], list(ins)
    )
    return ClosedJaxpr(jaxpr, consts)
