"""Files of exported programs: how they are read.

Input: bytes in the format of `schema`, which JAX may have written.  Output: an `Exported`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from minijax.core import effects, source
from minijax.core.aval import ShapedArray
from minijax.core.errors import error
from minijax.core.meshes import AbstractMesh, PartitionSpec
from minijax.export import artifacts, seals, trees, trials
from minijax.export.checks import DisabledSafetyCheck
from minijax.export.exported import Exported
from minijax.export.schema import (
    AXIS_TYPES,
    DTYPES,
    EFFECTS_OF_JAX,
    MEMORIES,
    OF_CUSTOM_CALL,
    OF_PLATFORM,
    SCHEMA,
)
from minijax.export.scopes import SymbolicScope
from minijax.export.symbols import symbolic_shape
from minijax.export.tables import DamagedError, Reader, Record
from minijax.sharding import rules
from minijax.sharding.named import NamedSharding


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
        data, is_ours = seals.opened(bytes(blob))
        return _exported(Reader(SCHEMA, data).root("Exported"), is_ours)
    except DamagedError as caught:
        error(
            ValueError,
            "export.deserialize",
            "the bytes are no exported program, or a damaged one.",
            got=f"{len(blob)} bytes; {caught}",
            expected="what Exported.serialize() of minijax or of JAX 0.10 has written, unchanged",
            cause=None,
        )


def _exported(record: Record, is_ours: bool) -> Exported:
    """The program that a record tells of; unless it is ours, its code is tried before."""
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
    derivative = None if vjp is None else _exported(vjp, is_ours)
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
    artifacts.check_frame(found.mlir_module_serialized)
    if not is_ours:
        trials.check(found.mlir_module_serialized)
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
    kind = _entry(MEMORIES, record["memory_space"])
    return ShapedArray(shape, _entry(DTYPES, record["dtype"]), memory_kind=kind)


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
    types = [_entry(AXIS_TYPES, n) for n in record["axis_types"]]
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
    own = EFFECTS_OF_JAX.get(name, name)
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
    if record["kind"] == OF_CUSTOM_CALL and record["custom_call_target"]:
        return DisabledSafetyCheck.custom_call(record["custom_call_target"])
    if record["kind"] != OF_PLATFORM:
        raise DamagedError(f"there is no check of number {record['kind']}")
    return DisabledSafetyCheck.platform()
