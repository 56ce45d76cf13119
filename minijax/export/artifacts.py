"""Modules that leave the process and come back: portable artifacts of StableHLO.

Input: an MLIR module.  Output: bytes that other versions of StableHLO read, and the other way
round.  A module whose sizes are symbols, or that is for several platforms, becomes an ordinary one
when sizes and platform are known (`specialized`); `merged` puts a module into another one.

Jaxlib ends the process over some damaged artifacts, so `check_frame` looks at them before.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, cast

import numpy as np
from jaxlib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from minijax.core.errors import error
from minijax.export.tables import DamagedError
from minijax.lowering import stablehlo
from minijax.lowering.stablehlo import LoweringContext, string, symbol

_create = ir.Operation.create
_MAGIC = b"ML\xefR"
_FOUR_WEEKS = hlo.StablehloCompatibilityRequirement.WEEK_4
_INNER = "_wrapped_jax_export_main"


def serialized(module: ir.Module) -> bytes:
    """A module as a portable artifact, in a version of StableHLO that is four weeks old.

    Whoever has updated since then can read it.
    """
    target = hlo.get_version_from_compatibility_requirement(_FOUR_WEEKS)
    made: bytes = _jax.mlir.serialize_portable_artifact(module, target, True)
    return made


def module_of(artifact: bytes) -> ir.Module:
    """The module of a portable artifact.

    Raises:
        ValueError: the bytes are none that this version of StableHLO reads.
    """
    try:
        check_frame(artifact)
        with stablehlo.context():
            return _jax.mlir.deserialize_portable_artifact(artifact, stablehlo.context())
    except (DamagedError, RuntimeError, ValueError, ir.MLIRError) as caught:
        error(
            ValueError,
            "export",
            "the program in the file is damaged, or of another version of StableHLO.",
            got=f"{len(artifact)} bytes; {caught}",
            expected=f"a portable artifact of StableHLO up to {hlo.get_current_version()}",
            cause=None,
        )


def value_of(operation: ir.Operation | ir.OpView, name: str) -> Any:
    """Returns the value of an attribute; the stubs of jaxlib 0.10.2 call all `ir.Attribute`."""
    attribute: Any = operation.attributes[name]
    return attribute.value


def functions(module: ir.Module) -> dict[str, ir.Operation]:
    """The functions of a module by name."""
    found = (op.operation for op in module.body.operations)
    return {value_of(op, "sym_name"): op for op in found if op.name == "func.func"}


def bytecode(module: ir.Module) -> bytes:
    """A module in MLIR's own encoding."""
    stream = io.BytesIO()
    module.operation.write_bytecode(stream)
    return stream.getvalue()


def copied(module: ir.Module) -> ir.Module:
    """A module of its own, to be changed."""
    with stablehlo.context():
        return ir.Module.parse(bytecode(module))


def inline(module: ir.Module) -> None:
    """Writes out all calls of a module's functions, in place; only `main` stays."""
    found = functions(module)
    with stablehlo.context():
        while calls := [op for op in operations(found["main"]) if op.name == "func.call"]:
            for call in calls:
                _write_out(call, found[value_of(call, "callee")])
        for name, function in found.items():
            if name != "main":
                function.erase()


def _write_out(call: ir.Operation, callee: ir.Operation) -> None:
    """Puts what a function computes in the place of a call."""
    block = callee.regions[0].blocks[0]
    outs = clone_body(block, list(call.operands), ir.InsertionPoint(call))
    for old, new in zip(call.results, outs, strict=True):
        old.replace_all_uses_with(new)
    call.erase()


def clone_body(
    block: ir.Block, arguments: Sequence[ir.Value[Any]], point: ir.InsertionPoint
) -> list[ir.Value[Any]]:
    """Copies the operations of a block but for the last, which gives its results.

    Args:
        block: what is copied.
        arguments: what stands for the arguments of the block.
        point: where the copies go.
    """
    values: dict[ir.Value[Any], ir.Value[Any]] = dict(zip(block.arguments, arguments, strict=True))
    *inner, last = (op.operation for op in block.operations)
    for op in inner:
        copy = op.clone(point).operation
        for one in operations(copy):
            for i, operand in enumerate(one.operands):
                if operand in values:
                    one.operands[i] = values[operand]
        values.update(zip(op.results, copy.results, strict=True))
    return [values.get(x, x) for x in last.operands]


def wrap_main(
    module: ir.Module,
    in_types: Sequence[ir.Type],
    arguments: Callable[[LoweringContext, Sequence[ir.Value[Any]]], Sequence[ir.Value[Any]]],
    arg_attributes: Sequence[ir.Attribute] = (),
) -> None:
    """Gives a module another function `main`, which calls the one that was there.

    Args:
        module: the module, which is changed.
        in_types: the types of the new function's arguments.
        arguments: gives of the new function's arguments those of the old one.
        arg_attributes: a dictionary of attributes for each argument of the new function.
    """
    context = stablehlo.context()
    with context, ir.Location.unknown() as unknown:
        old = functions(module)["main"]
        out_types = list(value_of(old, "function_type").results)
        inner = _free_name(module, _INNER)
        old.attributes["sym_name"] = string(inner)
        old.attributes["sym_visibility"] = string("private")
        signature = ir.FunctionType.get(list(in_types), out_types)
        attributes = {
            "sym_name": string("main"),
            "function_type": ir.TypeAttr.get(signature),
            "sym_visibility": string("public"),
        }
        if "res_attrs" in old.attributes:
            attributes["res_attrs"] = old.attributes["res_attrs"]
        if any(len(ir.DictAttr(given)) for given in arg_attributes):
            attributes["arg_attrs"] = ir.ArrayAttr.get(list(arg_attributes))
        point = ir.InsertionPoint(old)
        made = _create("func.func", [], [], attributes, regions=1, ip=point)
        block = made.regions[0].blocks.append(*in_types, arg_locs=[unknown] * len(in_types))
        ctx = LoweringContext(cast("Any", module), "", ir.InsertionPoint(block), unknown)
        values = list(arguments(ctx, list(block.arguments)))
        callee = {"callee": symbol(inner)}
        outs = _create("func.call", out_types, values, callee, ip=ctx.point).results
        _create("func.return", [], list(outs), ip=ctx.point)


def _free_name(module: ir.Module, name: str) -> str:
    taken = functions(module)
    while name in taken:
        name += "_"
    return name


def specialized(
    artifact: bytes, in_types: Sequence[ir.Type], platform: int | None, *, has_symbols: bool
) -> ir.Module:
    """The module of an artifact for known sizes and one platform.

    Args:
        artifact: a portable artifact.
        in_types: the types of the arguments, without the number of the platform.
        platform: the number of the platform, if the module takes it.
        has_symbols: whether sizes may be unknown.

    Raises:
        ValueError: the sizes do not fit, or the artifact is damaged.
    """
    module = module_of(artifact)
    main = functions(module).get("main")
    if main is None:
        error(ValueError, "Exported.call", "the program in the file has no function `main`.")
    expected = list(value_of(main, "function_type").inputs)
    if len(expected) != len(in_types) + (platform is not None):
        damaged = "it takes another number of arguments than the file says."
        error(ValueError, "export", damaged, got=f"{len(expected)} arguments")
    if platform is None and not has_symbols:
        return module

    def arguments(ctx: LoweringContext, given: Sequence[ir.Value[Any]]) -> list[ir.Value[Any]]:
        values = list(given)
        if platform is not None:
            kind = expected[0].element_type
            values.insert(0, ctx.constant(np.asarray(platform, f"int{kind.width}")))
        return [
            x if x.type == kind else ctx.op("stablehlo.convert", [x], None, kind)
            for x, kind in zip(values, expected, strict=True)
        ]

    wrap_main(module, in_types, arguments)
    try:
        refined = _jax.mlir.refine_polymorphic_shapes(
            bytecode(module), enable_shape_assertions=True, validate_static_shapes=True
        )
    except (RuntimeError, ValueError, ir.MLIRError) as caught:
        problem = "the program cannot be compiled for these sizes."
        got = str(caught)
        error(ValueError, "Exported.call", problem, got=got, cause=None)
    with stablehlo.context():
        return ir.Module.parse(refined)


def merged(ctx: LoweringContext, module: ir.Module, name: str) -> tuple[str, ir.FunctionType]:
    """Adds the functions and meshes of a module to the one that is built.

    Args:
        ctx: a context that builds the latter.
        module: the former, which is used up.
        name: what its `main` is called there.

    Returns:
        The name that `main` has, and its type.
    """
    target = ctx.module
    tops = [op.operation for op in module.body.operations]
    renamed = {}
    for op in tops:
        old = value_of(op, "sym_name")
        if op.name == "sdy.mesh":
            new = target.partitioning.symbol_of_text(str(op.attributes["mesh"]), "mesh")
        else:
            new = target.fresh_name(name if old == "main" else f"{name}_{old}")
        renamed[old] = new if new == old else f"{new}.new"
        if new != old:
            # First out of the way of a symbol that has the name now.
            op.attributes["sym_name"] = string(f"{new}.new")
            ir.SymbolTable.replace_all_symbol_uses(old, f"{new}.new", module.operation)
    main = functions(module)[renamed["main"]]
    for op in tops:
        marked = value_of(op, "sym_name")
        new = marked.removesuffix(".new")
        if new != marked:
            op.attributes["sym_name"] = string(new)
            ir.SymbolTable.replace_all_symbol_uses(marked, new, module.operation)
    _strip(main)
    for op in tops:
        if op.name == "func.func":
            op.attributes["sym_visibility"] = string("private")
            op.clone(target.point)
    return value_of(main, "sym_name"), value_of(main, "function_type")


_OF_ENTRIES = frozenset({"tf.aliasing_output", "jax.buffer_donor", "jax.result_info"})
"""Attributes of arguments and results that mean something in entry functions alone."""


def _strip(function: ir.Operation) -> None:
    """Removes the attributes of arguments and results that only entry functions have."""
    for key in ("arg_attrs", "res_attrs"):
        if key in function.attributes:
            entries = [ir.DictAttr(entry) for entry in ir.ArrayAttr(function.attributes[key])]
            kept = [
                stablehlo.dictionary(
                    {x.name: x.attr for x in cast("Any", entry) if x.name not in _OF_ENTRIES}
                )
                for entry in entries
            ]
            function.attributes[key] = ir.ArrayAttr.get(kept, stablehlo.context())


def operations(operation: ir.Operation) -> Iterator[ir.Operation]:
    """An operation and all in its regions."""
    yield operation
    for region in operation.regions:
        for block in region:
            for inner in block:
                yield from operations(inner.operation)


_LAPACK = ("potrf", "geqrf", "geev", "gesdd", "getrf", "gehrd", "gees", "trsm", "gtsv")
_REAL_OR_COMPLEX = (("syevd", "heevd"), ("sytrd", "hetrd"), ("orgqr", "ungqr"))
STABLE_TARGETS = frozenset(
    {
        *(f"lapack_{kind}{name}_ffi" for kind in "sdcz" for name in _LAPACK),
        *(
            f"lapack_{kind}{names[kind in 'cz']}_ffi"
            for kind in "sdcz"
            for names in _REAL_OR_COMPLEX
        ),
        "cu_lu_pivots_to_permutation",
        "hip_lu_pivots_to_permutation",
        *(
            f"{library}_{name}_ffi"
            for library in ("cusolver", "hipsolver")
            for name in ("getrf", "geqrf", "orgqr", "potrf", "syevd", "gesvd", "gesvdj", "sytrd")
        ),
        "hipsolver_gesdd_ffi",
        "cusparse_gtsv2_ffi",
        "cu_threefry2x32_ffi",
        "hip_threefry2x32_ffi",
        "Sharding",
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "annotate_device_placement",
        "Eigh",
        "Qr",
        "ProductOfElementaryHouseholderReflectors",
        "LuDecomposition",
        "ApproxTopK",
        "stablehlo.dynamic_approx_top_k",
        "AllocateBuffer",
        "tf.call_tf_function",
        "tpu_custom_call",
        "mosaic_gpu_v2",
        "shape_assertion",
        *(f"stablehlo.dynamic_{name}" for name in ("reduce_window", "rng_bit_generator", "top_k")),
    }
)
"""Functions that XLA finds by name and that later versions keep."""


def targets(module: ir.Module) -> list[str]:
    """The functions that a module calls by name, each once."""
    calls = (op for op in operations(module.operation) if op.name == "stablehlo.custom_call")
    return list(dict.fromkeys(value_of(op, "call_target_name") for op in calls))


def check_targets(module: ir.Module, name: str, allowed: Collection[str]) -> None:
    """Refuses calls of functions that a later version may not have.

    Raises:
        ValueError: there is one that is not allowed.
    """
    unknown = [t for t in targets(module) if t not in STABLE_TARGETS and t not in allowed]
    if unknown and "ALL" not in allowed:
        error(
            ValueError,
            "export.export",
            f"{name} calls functions by names that other versions need not have.",
            got=", ".join(unknown),
            fix="export.export(..., disabled_checks=[DisabledSafetyCheck.custom_call(name)]) if "
            "whoever runs it has the function",
        )


def check_frame(artifact: bytes) -> None:
    """Refuses bytes that do not have the frame of MLIR's bytecode: numbers that end, sections.

    Raises:
        DamagedError: they do not.
    """
    if artifact[:4] != _MAGIC:
        raise DamagedError("the program does not begin as MLIR's bytecode does")
    version, at = _number(artifact, 4)
    end = artifact.find(b"\0", at)
    producer = artifact[at:end] if end > 0 else b""
    if version > 100 or not re.fullmatch(rb"[ -~]+", producer):
        raise DamagedError("the program does not say who has written it")
    at = end + 1
    seen = set()
    while at < len(artifact):
        code = artifact[at]
        size, start = _number(artifact, at + 1)
        if code & 0x80:
            power, start = _number(artifact, start)
            if power & (power - 1) or not 0 < power <= 4096:
                raise DamagedError("a section of the program is aligned to no power of two")
            while start % power:
                if artifact[start : start + 1] != b"\xcb":
                    raise DamagedError("the program has no padding where it should")
                start += 1
        code &= 0x7F
        if code in seen or code > 16 or size > len(artifact) - start:
            raise DamagedError("the sections of the program do not fit")
        seen.add(code)
        at = start + size


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number in MLIR's encoding, and where it ends."""
    if at >= len(data):
        raise DamagedError("the program ends within a number")
    first = data[at]
    count = (first & -first).bit_length() if first else 9
    if at + count > len(data):
        raise DamagedError("the program ends within a number")
    raw = data[at + 1 : at + 9] if count == 9 else data[at : at + count]
    value = int.from_bytes(raw, "little")
    return (value if count == 9 else value >> count), at + count
