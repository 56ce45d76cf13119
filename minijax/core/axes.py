"""Named axes: which names are in scope, how long they are, and what binds them.

`vmap(..., axis_name="i")`, `pmap` and `shard_map` extend the environment while their function is
traced; it enters the keys of trace caches.  Devices live elsewhere, in `sharding/mesh.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from jaxlib import _jax

from minijax.core import config
from minijax.core.effects import Effect, NamedAxisEffect
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr, Effects, Eqn, Jaxpr, jaxprs_in_params
from minijax.core.native import Config
from minijax.core.operators import AxisName
from minijax.core.primitive import Primitive
from minijax.core.rules import Facts, Rules

_environment: Config[tuple[Axis, ...]] = _jax.config.Config(
    "minijax_axis_environment", (), include_in_jit_key=True, include_in_trace_context=True
)


check_vma: Config[bool] = _jax.config.Config(
    "minijax_check_vma", True, include_in_jit_key=True, include_in_trace_context=True
)
"""Whether types tell over which mesh axes values vary; `shard_map(check_vma=False)` and `pmap`
switch it off for their bodies."""


axis_params: Facts[tuple[str, ...]] = Facts("axis_params", ())
"""The parameters that name axes which an operation uses."""

binds_axis: Facts[str | None] = Facts("binds_axis", None)
"""The parameter that names an axis which an operation binds for the jaxprs that it holds."""

communicates: Facts[bool] = Facts("communicates", False)
"""Whether devices wait for each other in an operation."""

crosses_processes: Facts[bool] = Facts("crosses_processes", False)
"""Whether an operation works among the devices of several processes, outside of checked types."""

waits_for_all: Facts[bool] = Facts("waits_for_all", False)
"""Whether on devices of the host all devices of the program wait, not only those along the axes
that the operation names."""

makes_equal: Facts[bool] = Facts("makes_equal", False)
"""Whether, along the axes that an operation names, all devices get the same."""

makes_different: Facts[bool] = Facts("makes_different", False)
"""Whether a device may get something else than others from the same operands."""

batch_axis = Rules("batch_axis")
"""The batching rule where the mapped axis is one that the operation itself names:
`(primitive, size, name, args, dims, **params)`; asked even if no operand is mapped."""

batch_spmd = Rules("batch_spmd")
"""The batching rule where the user says that mesh axes split the batch; asked first there:
`(primitive, size, mesh axes, args, dims, **params)`."""


class Axis(NamedTuple):
    """A named axis in scope.

    Attributes:
        name: what collectives call it.
        size: how long it is.
        kind: what binds it: `"vmap"`, `"pmap"`, a `"mesh"`, `"xmap"`, or a mesh of cores: `"core"`.
        carriers: the mesh axes that carry an axis of `xmap`.
    """

    name: AxisName
    size: int
    kind: str
    carriers: tuple[AxisName, ...] = ()


_core_index: Config[Any] = _jax.config.Config(
    "minijax_core_index", None, include_in_jit_key=False, include_in_trace_context=False
)


@contextlib.contextmanager
def core(name: str, size: int, index: object) -> Iterator[None]:
    """Context manager: inside it, programs are written for one core of a mesh of cores.

    Args:
        name: the axis of the cores.
        size: how many there are.
        index: the number of the core, a value of the loop over them.  It is not part of the keys of
            caches: what closes over it is staged again once it is finished.
    """
    with extend(name, size, "core"), config.override(_core_index, index):
        yield


def core_index() -> Any:
    """The number of the core that is being programmed; None outside of programs for cores."""
    return _core_index.value


class AxisOf:
    """The name of an axis that the user did not name, so that nothing refers to it."""

    __slots__ = ("_function",)

    def __init__(self, function: str) -> None:
        self._function = function

    def __repr__(self) -> str:
        return f"<axis {self._function}>"


def extend_all(axes: Iterable[Axis]) -> config.override[tuple[Axis, ...]]:
    """Context manager: inside it, these axes are in scope too, the last one innermost."""
    return only((*in_scope(), *axes))


def only(axes: Iterable[Axis]) -> config.override[tuple[Axis, ...]]:
    """Context manager: inside it, these axes are in scope and no others, the last one innermost."""
    return config.override(_environment, tuple(axes))


def extend(name: str, size: int, kind: str = "vmap") -> config.override[tuple[Axis, ...]]:
    """Context manager: inside it, `name` is an axis of `size`; a nameless axis changes nothing."""
    return extend_all(() if name is None else (Axis(name, size, kind),))


def outside() -> config.override[tuple[Axis, ...]]:
    """Context manager: inside it, no axis is in scope."""
    return only(())


def in_scope() -> tuple[Axis, ...]:
    """The axes in scope, outermost first."""
    axes: tuple[Axis, ...] = _environment.value
    return axes


def any_of_kind(kind: str) -> bool:
    """Whether an axis of this kind is in scope."""
    return any(axis.kind == kind for axis in _environment.value)


def find(name: Hashable) -> Axis | None:
    """The innermost axis of this name; None where there is none."""
    return next((axis for axis in reversed(_environment.value) if axis.name == name), None)


def exists(name: Hashable) -> bool:
    """Whether an axis of this name is in scope."""
    return find(name) is not None


def axis(name: Hashable, user: str) -> Axis:
    """The innermost axis of this name.

    Raises:
        NameError: no such axis is in scope.
    """
    found = find(name)
    if found is None:
        _refuse_unbound(name, user)
    return found


def _refuse_unbound(name: Hashable, user: str) -> NoReturn:
    bound = [axis.name for axis in in_scope()]
    names = list(dict.fromkeys(n for n in bound if not isinstance(n, AxisOf)))
    nameless = bool(bound) and not names
    expected = f"one of {', '.join(map(repr, names))}" if names else None
    got = None
    fix = f"call it inside vmap(..., axis_name={name!r}), or inside pmap or shard_map with an axis "
    fix += "of this name"
    if nameless:
        got, fix = "a pmap without axis_name around", f"pmap(..., axis_name={name!r})"
    elif names:
        fix = f"one of these names; or call it inside vmap(..., axis_name={name!r})"
    error(NameError, user, f"unbound axis name {name!r}.", got=got, expected=expected, fix=fix)


def size(name: AxisName, user: str = "lax.axis_size") -> int:
    """How long the innermost axis of this name is.

    Raises:
        NameError: no such axis is in scope.
    """
    return axis(name, user).size


def are_typed() -> bool:
    """Whether types speak of mesh axes here: inside `shard_map`, where vma is checked."""
    return bool(_environment.value) and check_vma.value


def typed_among(names: Sequence[AxisName]) -> tuple[AxisName, ...]:
    """Those of the names that types speak of: mesh axes, where vma is checked."""
    if not check_vma.value:
        return ()
    return tuple(n for n in names if (found := find(n)) is not None and found.kind == "mesh")


def used_by(jaxpr: Jaxpr) -> frozenset[AxisName]:
    """The names of axes that a jaxpr refers to and does not bind itself."""
    names: set[AxisName] = set()
    for eqn in jaxpr.eqns:
        for key in axis_params.of(eqn.primitive):
            value = eqn.params[key]
            names.update(value if isinstance(value, tuple) else (value,))
        bound = bound_by(eqn.primitive, eqn.params)
        for inner in jaxprs_in_params(eqn.params):
            names.update(used_by(inner) - bound)
    return frozenset(names)


def bound_by(primitive: Primitive, params: Mapping[str, Any]) -> frozenset[AxisName]:
    """The names of axes that an operation binds for the jaxprs it holds."""
    param = binds_axis.of(primitive)
    if param is None:
        return frozenset()
    found = params[param]
    return found if isinstance(found, frozenset) else frozenset({found})


def communication_over(jaxpr: Jaxpr, names: frozenset[AxisName]) -> Eqn | None:
    """The first equation of a jaxpr in which devices along these axes wait for each other."""
    for eqn in jaxpr.eqns:
        if waits_for_all.of(eqn.primitive) and names:
            return eqn
        if communicates.of(eqn.primitive):
            for key in axis_params.of(eqn.primitive):
                value = eqn.params[key]
                if names.intersection(value if isinstance(value, tuple) else (value,)):
                    return eqn
        inner_names = names - bound_by(eqn.primitive, eqn.params)
        for inner in jaxprs_in_params(eqn.params):
            found = communication_over(inner, inner_names)
            if found is not None:
                return found
    return None


def substitute(jaxpr: Jaxpr, names: Mapping[AxisName, Any]) -> Jaxpr:
    """A jaxpr with its free axis names replaced, each by another name or by several.

    `axis_params` tells which parameters name axes, and `binds_axis` which one binds one.
    """
    eqns = []
    for eqn in jaxpr.eqns:
        params = dict(eqn.params)
        for key in axis_params.of(eqn.primitive):
            params[key] = _renamed(params[key], names)
        bound = bound_by(eqn.primitive, params)
        inner = {old: new for old, new in names.items() if old not in bound}
        params = {key: _substituted(value, inner) for key, value in params.items()}
        eqns.append(eqn.replace(params=params, effects=_renamed_effects(eqn.effects, names)))
    return jaxpr.replace(eqns=eqns)


def _substituted(value: object, names: Mapping[AxisName, Any]) -> Any:
    """A parameter with the names replaced in the jaxprs that it is or holds."""
    if isinstance(value, Jaxpr):
        return substitute(value, names)
    if isinstance(value, ClosedJaxpr):
        return value.replace(jaxpr=substitute(value.jaxpr, names))
    if isinstance(value, tuple) and any(isinstance(v, (Jaxpr, ClosedJaxpr)) for v in value):
        return tuple(_substituted(v, names) for v in value)
    return value


def _renamed_effects(effects: Effects, names: Mapping[AxisName, Any]) -> Effects:
    found: set[Effect] = set()
    for effect in effects:
        if isinstance(effect, NamedAxisEffect):
            new = names.get(effect.name, effect.name)
            found.update(map(NamedAxisEffect, new if isinstance(new, tuple) else (new,)))
        else:
            found.add(effect)
    return frozenset(found)


def _renamed(value: object, names: Mapping[AxisName, Any]) -> Any:
    if not isinstance(value, tuple):
        return names.get(value, value)
    replaced = (names.get(v, v) for v in value)
    return tuple(n for new in replaced for n in (new if isinstance(new, tuple) else (new,)))
