"""Named axes: which names are in scope, and how long they are.

`vmap(..., axis_name="i")` extends the environment while the function is traced; it enters the
keys of trace caches.  Devices live elsewhere, in `sharding/mesh.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxlib import _jax

from minijax.core.effects import NamedAxisEffect
from minijax.core.errors import message
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr

_environment: Any = _jax.config.Config(
    "minijax_axis_environment", (), include_in_jit_key=True, include_in_trace_context=True
)


class extend:  # noqa: N801  a context manager reads as a verb
    """Context manager: inside it, `name` is an axis of `size`; a nameless axis changes nothing."""

    __slots__ = ("_name", "_previous", "_size")

    def __init__(self, name: Any, size: int) -> None:
        self._name = name
        self._size = size

    def __enter__(self) -> None:
        self._previous = _environment.value
        if self._name is not None:
            _environment.set_local((*self._previous, (self._name, self._size)))

    def __exit__(self, *_: object) -> None:
        _environment.set_local(self._previous)


def in_scope() -> tuple[Any, ...]:
    """The axes in scope with their lengths, outermost first."""
    axes: tuple[Any, ...] = _environment.value
    return axes


def exists(name: Any) -> bool:
    """Whether an axis of this name is in scope."""
    return any(bound == name for bound, _ in _environment.value)


def size(name: Any, user: str = "axis_size") -> int:
    """How long the innermost axis of this name is.

    Raises:
        NameError: no such axis is in scope.
    """
    for bound, length in reversed(_environment.value):
        if bound == name:
            return int(length)
    raise NameError(
        message(
            user,
            f"unbound axis name {name!r}.",
            expected=f"one of {[bound for bound, _ in _environment.value]}",
            fix=f"call it inside vmap(..., axis_name={name!r}) or another mapping construct",
        )
    )


def substitute(jaxpr: Jaxpr, names: Mapping[Any, Any]) -> Jaxpr:
    """A jaxpr with its free axis names replaced.

    A primitive says by `axis_params` which of its parameters name axes that it uses, and by
    `binds_axis` which one names an axis that it binds for the jaxprs it holds.
    """
    eqns = []
    for eqn in jaxpr.eqns:
        params = dict(eqn.params)
        for key in eqn.primitive.axis_params:
            params[key] = _renamed(params[key], names)
        bound = params.get(eqn.primitive.binds_axis) if eqn.primitive.binds_axis else None
        inner = {old: new for old, new in names.items() if bound is None or old != bound}
        for key, value in params.items():
            if isinstance(value, Jaxpr):
                params[key] = substitute(value, inner)
            elif isinstance(value, ClosedJaxpr):
                params[key] = value.replace(jaxpr=substitute(value.jaxpr, inner))
        renamed = frozenset(
            NamedAxisEffect(names.get(e.name, e.name)) if isinstance(e, NamedAxisEffect) else e
            for e in eqn.effects
        )
        eqns.append(eqn.replace(params=params, effects=renamed))
    return jaxpr.replace(eqns=eqns)


def _renamed(value: Any, names: Mapping[Any, Any]) -> Any:
    if isinstance(value, tuple):
        return tuple(_renamed(v, names) for v in value)
    return names.get(value, value)
