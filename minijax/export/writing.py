"""Files of exported programs: how they are written.

Input: an `Exported`.  Output: bytes in the format of `schema`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.core import effects
from minijax.core.aval import ShapedArray
from minijax.core.errors import error
from minijax.core.meshes import AbstractMesh, names_of
from minijax.export import seals, trees
from minijax.export.checks import DisabledSafetyCheck
from minijax.export.schema import (
    AXIS_TYPES,
    DEVICE_MEMORY,
    DTYPES,
    EFFECTS_OF_JAX,
    HOST_MEMORY,
    OF_CUSTOM_CALL,
    OF_PLATFORM,
    SCHEMA,
    VERSION,
)
from minijax.export.tables import Record, Writer
from minijax.sharding.named import NamedSharding


def serialized(exported: Any, vjp_order: int = 0) -> bytearray:
    """The bytes of an exported program, with so many orders of derivatives."""
    record = _record(exported, vjp_order)
    return bytearray(seals.sealed(Writer(SCHEMA).bytes_of("Exported", record)))


def _record(exported: Any, vjp_order: int) -> Record:
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
        "serialization_version": VERSION,
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
    if aval.dtype not in DTYPES:
        problem = f"files have no number for {aval.dtype.name}."
        error(NotImplementedError, "Exported.serialize", problem, got=str(aval))
    memory = DEVICE_MEMORY if aval.memory_kind is None else HOST_MEMORY
    shape = list(map(str, aval.shape))
    return {"shape": shape, "dtype": DTYPES.index(aval.dtype), "memory_space": memory}


def _mesh_record(mesh: AbstractMesh) -> Record:
    names: tuple[Any, ...] = mesh.axis_names
    return {
        "axis_sizes": list(mesh.axis_sizes),
        "axis_names": list(names),
        "axis_types": [AXIS_TYPES.index(kind) for kind in mesh.axis_types],
    }


def _names(entry: object) -> tuple[Any, ...]:
    return names_of(entry)


def _sharding_record(sharding: NamedSharding, meshes: _Distinct) -> Record:
    spec: Any = sharding.spec
    mesh = sharding.mesh.abstract_mesh
    return {
        "mesh": _mesh_record(mesh),
        "spec": {
            "partitions": [{"axes": list(_names(entry))} for entry in spec],
            "reduced": sorted(spec.reduced),
            "unreduced": sorted(spec.unreduced),
        },
        "memory_kind": sharding.memory_kind,
        "abstract_mesh_idx": meshes.number(mesh),
    }


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
    return {"type_name": next((one for one, two in EFFECTS_OF_JAX.items() if two == own), own)}


def _check_record(check: DisabledSafetyCheck) -> Record:
    target = check.is_custom_call()
    if target is None:
        return {"kind": OF_PLATFORM}
    return {"kind": OF_CUSTOM_CALL, "custom_call_target": target}
