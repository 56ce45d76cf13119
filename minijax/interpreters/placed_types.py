"""Placed types: how traces type values that mesh axes split, or over which values vary.

Most programs run on one device, and no trace asks here.  The first value whose type is not plain,
or the first operation that may give such a value, puts `PlacedTyping` in place of what a trace asks
otherwise, for the rest of that trace.  Shardings of Explicit axes are found by `sharding/rules.py`,
how values stand to manual axes by `core/vma.py`, and the casts of operands by `casts.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from minijax.core import axes, meshes, vma
from minijax.core.aval import AbstractValue
from minijax.core.jaxpr import Atom
from minijax.core.operators import Avals, Values
from minijax.core.primitive import Primitive
from minijax.core.refs import AbstractRef
from minijax.core.trace import PLAIN, Detour, Params, Trace, Typing
from minijax.core.value_placement import NOT_MANUAL
from minijax.interpreters import casts, named_batching, references, staging
from minijax.interpreters.staging import StagingTrace
from minijax.sharding import rules


class PlacedTyping(Typing):
    """Types the equations of one trace whose values may be placed on devices."""

    __slots__ = ("has_memories", "has_shardings", "has_vma")

    def __init__(self) -> None:
        # Whether the type of some value shows how it is split.
        self.has_shardings = False
        # Whether the type of some value shows how it stands to manual mesh axes.
        self.has_vma = False
        # Whether the type of some value shows that it is not in the devices' own memory.
        self.has_memories = False

    def record(self, aval: AbstractValue) -> None:
        """Records which parts of a placement the type of a value has."""
        self.has_shardings |= aval.split is not None
        self.has_vma |= aval.manual_axis_type is not NOT_MANUAL
        self.has_memories |= aval.memory_kind is not None

    def operands(
        self, trace: Trace, primitive: Primitive, args: Values, params: Params
    ) -> tuple[Values, Params]:
        return casts.agreeing(trace, primitive, args, params)

    def equation(  # type: ignore[override]
        self,
        trace: StagingTrace,
        primitive: Primitive,
        args: Values,
        atoms: list[Atom],
        avals: list[AbstractValue],
        params: Params,
    ) -> tuple[list[Atom], Params, Any]:
        if self.has_vma or vma.vary.of(primitive) is not None:
            atoms, params, out = self._varying(trace, primitive, args, atoms, avals, params)
        else:
            out = primitive.abstract_eval(*avals, **params)
        if self.has_shardings or params.get(rules.sharding_param.of(primitive)) is not None:
            self.has_shardings = True
            out = rules.typed_results(primitive, [v.aval for v in atoms], out, params)
        if rules.tells_memory.of(primitive):
            self.has_memories |= out.memory_kind is not None
        elif self.has_memories and not vma.told_by_types(primitive):
            out = _in_memory(primitive, [v.aval for v in atoms], out)
        return atoms, params, out

    def _varying(
        self,
        trace: StagingTrace,
        primitive: Primitive,
        args: Values,
        atoms: list[Atom],
        avals: list[AbstractValue],
        params: Params,
    ) -> tuple[list[Atom], Params, Any]:
        """As `equation`, by how operands stand to manual mesh axes."""
        kind = vma.common(primitive, atoms, avals)
        if kind is None and self.has_vma:
            agreed, params = casts.agreeing(trace, primitive, args, params)
            if agreed is not args:
                atoms = list(map(trace.atom, agreed))
                avals = [v.aval for v in atoms]
                kind = vma.common(primitive, atoms, avals)
        out = primitive.abstract_eval(*avals, **params)
        if kind is not None:
            if primitive.multiple_results:
                return atoms, params, [aval.with_manual_type(kind) for aval in out]
            return atoms, params, out.with_manual_type(kind)
        out = vma.typed(primitive, avals, atoms, out, params)
        if not self.has_vma:
            outs = out if primitive.multiple_results else (out,)
            self.has_vma = any(a.manual_axis_type is not NOT_MANUAL for a in outs)
        return atoms, params, out

    def enter(self, avals: Avals, function_name: str) -> Callable[[], None] | None:
        """Puts the mesh of the arguments in force, where no mesh is."""
        if not self.has_shardings or not meshes.abstract_mesh.value.empty:
            return None
        found = rules.mesh_of_arguments(avals, function_name)
        around = meshes.abstract_mesh.swap_local(found)
        return lambda: meshes.abstract_mesh.set_local(around)


def _in_memory(primitive: Primitive, avals: list[AbstractValue], out: Any) -> Any:
    """The types of results, which are where all operands but scalars are, or with the devices."""
    kinds = {aval.memory_kind for aval in avals if getattr(aval, "shape", ()) or len(avals) == 1}
    kind = kinds.pop() if len(kinds) == 1 else None
    typed = [
        aval if aval.memory_kind == kind else aval.update(memory_kind=kind)
        for aval in (out if primitive.multiple_results else (out,))
    ]
    return typed if primitive.multiple_results else typed[0]


def _place(trace: Any) -> PlacedTyping:
    """The typing of a trace that may have placed values from now on."""
    if trace.typing is PLAIN:
        trace.typing = PlacedTyping()
    found: PlacedTyping = trace.typing
    return found


_CASTING = PlacedTyping()


class Semantics:
    """Implements `PlacementSemantics`: what placements mean to types and traces."""

    __slots__ = ()

    replicated_sharding = staticmethod(rules.replicated_sharding)
    batch_kind = staticmethod(named_batching.kind_after)

    def initial_typing(self) -> Typing:
        return _CASTING if axes.are_typed() else PLAIN

    def record(self, trace: Any, aval: AbstractValue) -> None:
        _place(trace).record(aval)
        if type(aval) is AbstractRef:
            references.watch(trace)


def _may_place(primitive: Primitive) -> Detour | None:
    """What a staging trace does first with operations whose results may be placed."""
    if vma.vary.of(primitive) is not None and not vma.told_by_types(primitive):
        return _placing
    asked = rules.sharding_param.of(primitive)
    return functools.partial(_placing_where_asked, asked) if asked else None


def _placing(trace: Trace, primitive: Primitive, args: Values, params: Params) -> None:
    _place(trace)


def _placing_where_asked(
    asked: str, trace: Trace, primitive: Primitive, args: Values, params: Params
) -> None:
    if params.get(asked) is not None:
        _place(trace)


staging.DETOURS.add(_may_place)
