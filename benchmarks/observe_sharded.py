"""What a worker sees of one library's programs over eight devices: how they are partitioned.

The StableHLO is reported as what it says of arguments, results and constraints, with shardings
spelled on the mesh's axes, and as its operations, calls written out; the optimized HLO as its
collectives.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import observe
import parity_sharded_programs

_COLLECTIVE = re.compile(
    r"= (.+?) ((?:all-(?:reduce|gather|to-all)|reduce-scatter|collective-[a-z]+)(?:-start)?)\("
)
_LAYOUT = re.compile(r"\{[\d,]*\}")
_UNCOMPARED = frozenset({"jax.result_info", "mhlo.layout_mode"})
# How often a constant is written down depends on nothing but taste.
_SILENT = frozenset({"func.return", "sdy.return", "stablehlo.constant", "stablehlo.return"})


def observe_sharded(jax: Any, names: list[str]) -> dict[str, Any]:
    """What each program gives, or the class of the error that it raises."""
    jax.config.update("jax_num_cpu_devices", 8)
    programs = parity_sharded_programs.build(jax)
    return {
        name: _observe_one(jax, programs[name]) for name in programs if name in (names or programs)
    }


def _observe_one(jax: Any, program: parity_sharded_programs.Sharded) -> dict[str, Any]:
    jitted = jax.jit(program.function, **program.options)
    try:
        lowered = jitted.lower(*program.args)
        compiled = lowered.compile()
        results, tree = jax.tree.flatten(jitted(*program.args))
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)[:300]}
    module = _Module(lowered.compiler_ir())
    return {
        "tree": str(tree),
        "types": [observe.type_text(jax, each) for each in results],
        "values": [observe.values(jax, each) for each in results],
        "arguments": module.values("arg_attrs", "inputs"),
        "results": module.values("res_attrs", "results"),
        "constraints": module.constraints,
        "operations": [f"{count} {name}" for name, count in sorted(module.operations.items())],
        "collectives": collectives(compiled.as_text()),
        "placements": [_placement(each) for each in results],
    }


def _placement(x: Any) -> str:
    sharding = x.sharding
    spec = getattr(sharding, "spec", None)
    entries = [] if spec is None else list(spec)
    while entries and entries[-1] is None:
        entries.pop()
    kind = f"{type(sharding).__name__}{tuple(entries)} in {sharding.memory_kind}"
    return f"{kind}, {'committed' if x.committed else 'free'}"


class _Module:
    """A StableHLO module, read through its bindings."""

    def __init__(self, module: Any) -> None:
        functions = [op.operation for op in module.body.operations]
        self._meshes = {
            _text(op.attributes["sym_name"]): str(op.attributes["mesh"])
            for op in functions
            if op.name == "sdy.mesh"
        }
        self._functions = {
            _text(op.attributes["sym_name"]): op for op in functions if op.name == "func.func"
        }
        self.operations: Counter[str] = Counter()
        self.constraints: list[str] = []
        self._main = self._functions["main"]
        self._visit(self._main)

    def values(self, key: str, side: str) -> list[str]:
        """The arguments or results of the program, each as its type and its attributes."""
        attributes = self._main.attributes
        types = getattr(attributes["function_type"].value, side)
        said = attributes[key] if key in attributes else [{}] * len(types)
        return [f"{t} {self._said(s)}".strip() for t, s in zip(types, said, strict=True)]

    def _said(self, attributes: Any) -> str:
        pairs = [(each.name, each.attr) for each in attributes]
        shown = [f"{k}={self._spelled(v)}" for k, v in sorted(pairs) if k not in _UNCOMPARED]
        return " ".join(shown)

    def _spelled(self, attribute: Any) -> str:
        """An attribute, the symbols of meshes replaced by what they stand for."""
        return re.sub(r"@(\w+)", lambda match: self._meshes.get(match[1], match[0]), str(attribute))

    def _visit(self, operation: Any) -> None:
        for region in operation.regions:
            for block in region.blocks:
                for each in block.operations:
                    self._count(each.operation)

    def _count(self, operation: Any) -> None:
        name = operation.name
        if name in ("func.call", "call"):
            callee = _text(operation.attributes["callee"])
            self._visit(self._functions[callee])
            return
        if name == "stablehlo.custom_call":
            name = f"{name} {_text(operation.attributes['call_target_name'])}"
        if name == "sdy.sharding_constraint":
            sharding = self._spelled(operation.attributes["sharding"])
            self.constraints.append(f"{operation.results[0].type} {sharding}")
        if name not in _SILENT:
            self.operations[name] += 1
        self._visit(operation)


def _text(attribute: Any) -> str:
    return str(attribute).strip('@"')


def collectives(hlo: str) -> list[str]:
    """The operations of compiled HLO that move data between devices, as kind and shape."""
    found = _COLLECTIVE.findall(hlo)
    return sorted(f"{kind} {_LAYOUT.sub('', shape)}" for shape, kind in found)
