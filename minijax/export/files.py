"""Files of exported programs, in the format that JAX 0.10 writes and reads.

Input: an `Exported`.  Output: bytes, and the other way round.  `SCHEMA` is the format: tables and
their fields in order.  The program inside is a portable artifact of StableHLO.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import ml_dtypes
import numpy as np

from minijax.core import dtypes, effects, source
from minijax.core.aval import ShapedArray
from minijax.core.errors import error
from minijax.core.meshes import AbstractMesh, AxisType, PartitionSpec, names_of
from minijax.export import artifacts, trees
from minijax.export.exported import DisabledSafetyCheck, Exported
from minijax.export.symbols import SymbolicScope, symbolic_shape
from minijax.export.tables import DamagedError, Reader, Record, Writer
from minijax.random import generators, keys
from minijax.sharding import rules
from minijax.sharding.named import NamedSharding

SCHEMA = {
    "PyTreeDef": {
        "kind": "int8",
        "children": "[PyTreeDef]",
        "names": "[string]",
        "custom_name": "string",
        "custom_data": "[uint8]",
    },
    "AbstractDevice": {"device_kind": "string", "num_cores": "uint32", "platform": "string"},
    "AbstractMesh": {
        "axis_sizes": "[uint32]",
        "axis_names": "[string]",
        "axis_types": "[int8]",
        "abstract_device": "AbstractDevice",
    },
    "PartitionSpecOneAxis": {"axes": "[string]"},
    "PartitionSpec": {
        "partitions": "[PartitionSpecOneAxis]",
        "reduced": "[string]",
        "unreduced": "[string]",
    },
    "NamedSharding": {
        "mesh": "AbstractMesh",
        "spec": "PartitionSpec",
        "memory_kind": "string",
        "abstract_mesh_idx": "uint32",
    },
    "AbstractValue": {"kind": "int8", "shape": "[string]", "dtype": "int8", "memory_space": "int8"},
    "Sharding": {"kind": "int8", "hlo_proto": "[uint8]", "named_sharding": "NamedSharding"},
    "Effect": {"type_name": "string"},
    "DisabledSafetyCheck": {"kind": "int8", "custom_call_target": "string"},
    "Exported": {
        "serialization_version": "uint16",
        "function_name": "string",
        "in_tree": "PyTreeDef",
        "in_avals": "[AbstractValue]",
        "out_tree": "PyTreeDef",
        "out_avals": "[AbstractValue]",
        "nr_devices_short": "int16",
        "in_shardings": "[Sharding]",
        "out_shardings": "[Sharding]",
        "platforms": "[string]",
        "ordered_effects": "[Effect]",
        "unordered_effects": "[Effect]",
        "disabled_checks": "[DisabledSafetyCheck]",
        "module": "[uint8]",
        "calling_convention_version": "uint16",
        "kept_arguments": "[uint16]",
        "uses_global_constants": "bool",
        "vjp": "Exported",
        "nr_devices": "uint32",
        "unique_avals": "[AbstractValue]",
        "unique_meshes": "[AbstractMesh]",
        "unique_shardings": "[NamedSharding]",
        "in_aval_numbers": "[uint32]",
        "out_aval_numbers": "[uint32]",
        "in_sharding_numbers": "[uint32]",
        "out_sharding_numbers": "[uint32]",
    },
}
# All versions since this one are read; JAX's own readers look for it too.
_VERSION = 3

_DTYPES: tuple[Any, ...] = (
    *map(np.dtype, ("bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")),
    *map(np.dtype, ("f2", "f4", "f8", "c8", "c16", ml_dtypes.bfloat16)),
    *map(np.dtype, (ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.float8_e4m3b11fnuz)),
    *map(np.dtype, (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2)),
    *map(np.dtype, (ml_dtypes.float8_e5m2fnuz, dtypes.float0, ml_dtypes.float8_e4m3)),
    *map(np.dtype, (ml_dtypes.float8_e3m4, ml_dtypes.float8_e8m0fnu, ml_dtypes.float4_e2m1fn)),
    *(
        keys.KeyDType(generators.GENERATORS[name])
        for name in ("threefry2x32", "rbg", "unsafe_rbg")
    ),
)
"""The dtypes in the order of their numbers in files."""

_MEMORIES = (None, None, "pinned_host", None)
"""Kinds of memory by their numbers: not given, the device's own, the host's, any."""
_DEVICE_MEMORY, _HOST_MEMORY = 1, 2
_AXIS_TYPES = (None, AxisType.Auto, AxisType.Explicit, AxisType.Manual)
_OF_PLATFORM, _OF_CUSTOM_CALL = 0, 1
_MOST_ORDERS = 20


def serialize(exported: Exported, vjp_order: int = 0) -> bytearray:
    """The bytes of an exported program, with so many orders of derivatives."""
    record = _record(exported, vjp_order)
    return bytearray(Writer(SCHEMA).bytes_of("Exported", record))


def _record(exported: Exported, vjp_order: int) -> Record:
    in_avals = list(map(_aval_record, exported.in_avals))
    out_avals = list(map(_aval_record, exported.out_avals))
    avals, meshes, shardings = _Distinct(), _Distinct(), _Distinct()
    ins, outs = exported._in_named_shardings, exported._out_named_shardings
    for sharding in filter(None, (*ins, *outs)):
        meshes.number(sharding.mesh.abstract_mesh)
        shardings.number(sharding)

    def numbers(given: Sequence[NamedSharding | None]) -> list[int]:
        return [0 if s is None else 1 + shardings.number(s) for s in given]

    def named(given: Sequence[NamedSharding | None]) -> list[Record]:
        return [{} if s is None else {"named_sharding": _sharding_record(s, meshes)} for s in given]

    vjp = None
    if vjp_order > 0:
        if not exported.has_vjp():
            problem = f"the program has no derivative of order {vjp_order} to write."
            error(ValueError, "Exported.serialize", problem, got=exported.fun_name)
        vjp = _record(exported.vjp(), vjp_order - 1)
    return {
        "serialization_version": _VERSION,
        "function_name": exported.fun_name,
        "in_tree": trees.record_of(exported.in_tree),
        "in_avals": in_avals,
        "out_tree": trees.record_of(exported.out_tree),
        "out_avals": out_avals,
        "in_shardings": named(ins),
        "out_shardings": named(outs),
        "platforms": list(exported.platforms),
        "ordered_effects": list(map(_effect_record, exported.ordered_effects)),
        "unordered_effects": list(map(_effect_record, exported.unordered_effects)),
        "disabled_checks": list(map(_check_record, exported.disabled_safety_checks)),
        "module": exported.mlir_module_serialized,
        "calling_convention_version": exported.calling_convention_version,
        "kept_arguments": list(exported.module_kept_var_idx),
        "uses_global_constants": exported.uses_global_constants,
        "vjp": vjp,
        "nr_devices": exported.nr_devices,
        "in_aval_numbers": [avals.number(aval) for aval in exported.in_avals],
        "out_aval_numbers": [avals.number(aval) for aval in exported.out_avals],
        "unique_avals": [_aval_record(aval) for aval in avals.values],
        "unique_meshes": [_mesh_record(mesh) for mesh in meshes.values],
        "unique_shardings": [_sharding_record(s, meshes) for s in shardings.values],
        "in_sharding_numbers": numbers(ins),
        "out_sharding_numbers": numbers(outs),
    }


class _Distinct:
    """Values, each with a number: that of its first appearance."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, value: Any) -> int:
        """The number of a value, which is noted."""
        found = self._numbers.setdefault(value, len(self.values))
        if found == len(self.values):
            self.values.append(value)
        return found


def _aval_record(aval: ShapedArray) -> Record:
    if aval.dtype not in _DTYPES:
        problem = f"files have no number for {aval.dtype.name}."
        error(NotImplementedError, "Exported.serialize", problem, got=str(aval))
    memory = _DEVICE_MEMORY if aval.memory_kind is None else _HOST_MEMORY
    shape = list(map(str, aval.shape))
    return {"shape": shape, "dtype": _DTYPES.index(aval.dtype), "memory_space": memory}


def _mesh_record(mesh: AbstractMesh) -> Record:
    return {
        "axis_sizes": list(mesh.axis_sizes),
        "axis_names": list(mesh.axis_names),
        "axis_types": [_AXIS_TYPES.index(kind) for kind in mesh.axis_types],
    }


def _sharding_record(sharding: NamedSharding, meshes: _Distinct) -> Record:
    spec, mesh = sharding.spec, sharding.mesh.abstract_mesh
    return {
        "mesh": _mesh_record(mesh),
        "spec": {
            "partitions": [{"axes": list(names_of(entry))} for entry in spec],
            "reduced": sorted(spec.reduced),
            "unreduced": sorted(spec.unreduced),
        },
        "memory_kind": sharding.memory_kind,
        "abstract_mesh_idx": meshes.number(mesh),
    }


_EFFECTS_OF_JAX = {"<class 'jax._src.ffi.FfiEffect'>": "<class 'minijax.lax.foreign.FfiEffect'>"}
"""Effects that both libraries have, by the names that JAX writes."""


def _effect_record(effect: effects.Effect) -> Record:
    kind: Any = type(effect)
    try:
        is_alone = kind() == effect and hash(kind()) == hash(effect)
    except Exception:  # whatever a class of the user's raises
        is_alone = False
    if not is_alone:
        problem = "an effect stands in files by its class alone, whose objects must be equal."
        error(NotImplementedError, "Exported.serialize", problem, got=repr(effect))
    own = str(kind)
    return {"type_name": next((one for one, two in _EFFECTS_OF_JAX.items() if two == own), own)}


def _check_record(check: DisabledSafetyCheck) -> Record:
    target = check.is_custom_call()
    if target is None:
        return {"kind": _OF_PLATFORM}
    return {"kind": _OF_CUSTOM_CALL, "custom_call_target": target}


@source.boundary
def deserialize(blob: bytes | bytearray) -> Exported:
    """An exported program from the bytes of a file.

    The bytes must come from somebody you trust: the program may call any function that XLA knows.

    Args:
        blob: what `Exported.serialize` of this library, or of JAX, gives.

    Raises:
        TypeError: `blob` is not bytes.
        ValueError: the bytes are damaged, or nothing says what a class in a tree is.
        NotImplementedError: they hold what this version does not know.

    Example:
        >>> exported = jax.export.export(jax.jit(jnp.sin))(jnp.ones(3))
        >>> jax.export.deserialize(exported.serialize()).call(jnp.zeros(3))
        Array([0., 0., 0.], dtype=float32)
    """
    if not isinstance(blob, bytes | bytearray | memoryview):
        problem = "takes the bytes of a file."
        error(TypeError, "export.deserialize", problem, got=type(blob).__name__)
    try:
        return _exported(Reader(SCHEMA, bytes(blob)).root("Exported"))
    except DamagedError as caught:
        error(
            ValueError,
            "export.deserialize",
            "the bytes are no exported program, or a damaged one.",
            got=f"{len(blob)} bytes; {caught}",
            expected="what Exported.serialize() of minijax or of JAX 0.10 has written, unchanged",
            cause=None,
        )


def _exported(record: Record) -> Exported:
    """The program that a record tells of."""
    given = cast(dict[str, Any], record)
    if not given["function_name"] or given["in_tree"] is None or given["out_tree"] is None:
        raise DamagedError("it has no name, or no structure of arguments and results")
    meshes = [_mesh(one) for one in given["unique_meshes"]]
    shardings = [_sharding(one, meshes) for one in given["unique_shardings"]]
    scope = SymbolicScope()
    unique = [_aval(one, scope) for one in given["unique_avals"]]

    def values(role: str) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        numbers = given[f"{role}_sharding_numbers"]
        if numbers:
            places = [_entry([None, *shardings], n) for n in numbers]
        else:
            places = [_placement(one, meshes) for one in given[f"{role}_shardings"]]
        listed = given[f"{role}_aval_numbers"]
        if listed:
            avals = [_entry(unique, n) for n in listed]
        else:
            avals = [_aval(one, scope) for one in given[f"{role}_avals"]]
        if len(places) != len(avals):
            raise DamagedError("it has other numbers of values and of placements")
        return tuple(map(_placed, avals, places)), tuple(places)

    in_avals, ins = values("in")
    out_avals, outs = values("out")
    kept = tuple(given["kept_arguments"])
    if any(i >= len(in_avals) for i in kept) or sorted(set(kept)) != list(kept):
        raise DamagedError("it uses arguments that do not exist")
    if not given["platforms"]:
        raise DamagedError("it names no platform")
    vjp = given["vjp"]
    derivative = None if vjp is None else _exported(vjp)
    ordered = tuple(map(_effect, given["ordered_effects"]))
    found = Exported(
        fun_name=given["function_name"],
        in_tree=trees.structure_of(given["in_tree"], in_avals),
        in_avals=in_avals,
        out_tree=trees.structure_of(given["out_tree"], out_avals),
        out_avals=out_avals,
        _has_named_shardings=True,
        _in_named_shardings=ins,
        _out_named_shardings=outs,
        in_shardings_hlo=(None,) * len(ins),
        out_shardings_hlo=(None,) * len(outs),
        nr_devices=given["nr_devices"] or given["nr_devices_short"],
        platforms=tuple(given["platforms"]),
        ordered_effects=ordered,
        unordered_effects=tuple(map(_effect, given["unordered_effects"])),
        disabled_safety_checks=tuple(map(_check, given["disabled_checks"])),
        mlir_module_serialized=given["module"],
        calling_convention_version=given["calling_convention_version"],
        module_kept_var_idx=kept,
        uses_global_constants=bool(given["uses_global_constants"]),
        _get_vjp=None if derivative is None else lambda _: derivative,
    )
    artifacts.check(found)
    return found


def _entry(entries: Sequence[Any], number: int) -> Any:
    if not 0 <= number < len(entries):
        raise DamagedError(f"it refers to entry {number} of {len(entries)}")
    return entries[number]


def _aval(record: dict[str, Any], scope: SymbolicScope) -> ShapedArray:
    texts = record["shape"]
    if all(text.isdecimal() and text.isascii() for text in texts):
        shape: tuple[int, ...] = tuple(map(int, texts))
        if any(d >= 2**63 for d in shape):
            raise DamagedError("a dimension does not fit into 64 bits")
    else:
        try:
            shape = symbolic_shape(",".join(texts), scope=scope)
        except (ValueError, SyntaxError, TypeError) as caught:
            raise DamagedError(f"{','.join(texts)!r} is no shape: {caught}") from None
    kind = _entry(_MEMORIES, record["memory_space"])
    return ShapedArray(shape, _entry(_DTYPES, record["dtype"]), memory_kind=kind)


def _placed(aval: ShapedArray, sharding: NamedSharding | None) -> Any:
    """The type of a value that is placed so."""
    if sharding is None or not sharding.mesh.explicit_axes:
        return aval
    return _checked(lambda: rules.typed_aval(aval, sharding))


def _checked(make: Callable[[], Any]) -> Any:
    """What a class makes of facts of a file; the class refuses those that do not fit together."""
    try:
        return make()
    except (ValueError, TypeError) as caught:
        raise DamagedError(str(caught).splitlines()[0]) from None


def _mesh(record: dict[str, Any]) -> AbstractMesh:
    types = [_entry(_AXIS_TYPES, n) for n in record["axis_types"]]
    sizes, names = tuple(record["axis_sizes"]), tuple(record["axis_names"])
    if None in types or not len(sizes) == len(names) == len(types):
        raise DamagedError("a mesh has other numbers of names, sizes and types of axes")
    made: AbstractMesh = _checked(lambda: AbstractMesh(sizes, names, tuple(types)))
    return made


def _sharding(record: dict[str, Any], meshes: Sequence[AbstractMesh]) -> NamedSharding:
    if meshes:
        mesh = _entry(meshes, record["abstract_mesh_idx"])
    elif record["mesh"] is None:
        raise DamagedError("a placement has no mesh")
    else:
        mesh = _mesh(record["mesh"])
    spec = record["spec"]
    if spec is None:
        raise DamagedError("a placement has no spec")
    entries = [tuple(entry["axes"]) or None for entry in spec["partitions"]]
    entries = [e[0] if e is not None and len(e) == 1 else e for e in entries]

    def make() -> NamedSharding:
        sets = {"unreduced": frozenset(spec["unreduced"]), "reduced": frozenset(spec["reduced"])}
        kind = record["memory_kind"]
        kind = kind if kind == "pinned_host" else None
        return NamedSharding(mesh, PartitionSpec(*entries, **sets), memory_kind=kind)

    made: NamedSharding = _checked(make)
    return made


def _placement(record: dict[str, Any], meshes: Sequence[AbstractMesh]) -> NamedSharding | None:
    if record["hlo_proto"]:
        problem = "the file was written before placements had names."
        error(NotImplementedError, "export.deserialize", problem, fix="write it anew with JAX 0.10")
    named = record["named_sharding"]
    return None if named is None else _sharding(named, meshes)


def _effect(record: dict[str, Any]) -> effects.Effect:
    name = record["type_name"]
    own = _EFFECTS_OF_JAX.get(name, name)
    for kind in _classes(effects.Effect):
        if str(kind) == own:
            return kind()
    problem = "the program has an effect that is not known here."
    fix = "import the module that defines it, and register it: effects.lowerable_effects.add_type"
    error(NotImplementedError, "export.deserialize", problem, got=str(name), fix=fix)


def _classes(base: type[effects.Effect]) -> Iterator[type[effects.Effect]]:
    for kind in base.__subclasses__():
        yield kind
        yield from _classes(kind)


def _check(record: dict[str, Any]) -> DisabledSafetyCheck:
    if record["kind"] == _OF_CUSTOM_CALL and record["custom_call_target"]:
        return DisabledSafetyCheck.custom_call(record["custom_call_target"])
    if record["kind"] != _OF_PLATFORM:
        raise DamagedError(f"there is no check of number {record['kind']}")
    return DisabledSafetyCheck.platform()
