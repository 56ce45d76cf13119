"""Ahead-of-time stages of a `pmap`: traced, lowered, compiled, as those of `jit`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from minijax.core.errors import message
from minijax.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from minijax.core.trace import Tracer
from minijax.interpreters import program
from minijax.transforms import stages
from minijax.transforms.pmap import programs
from minijax.transforms.pmap.primitive import pmap_p


class Traced(stages.Traced):
    """A mapped function staged for arguments of certain types.

    Its jaxpr is one application of the primitive `pmap`.
    """

    @classmethod
    def of(
        cls,
        params: dict[str, Any],
        outer: Sequence[Any],
        in_tree: Any,
        out_tree: Any,
        args: Sequence[Any],
    ) -> Traced:
        """The stage for the parameters of the primitive, for `args`.

        Args:
            params: the parameters.
            outer: traced values that the function closes over.
            in_tree: the tree of (args, kwargs).
            out_tree: the tree of the results.
            args: flat arguments.
        """
        options = program.Options(params["name"], donated=params["donated_invars"])
        return cls(applied(params), outer, in_tree, out_tree, options, args, None)

    def lower(self, *, lowering_platforms: Sequence[str] | None = None) -> stages.Lowered:
        """Lowers to StableHLO, for the devices there are or for the platform named.

        Raises:
            ValueError: the function closes over values that are being traced, or there are not the
                devices that it takes.
        """
        if any(isinstance(x, Tracer) for x in self._outer):
            raise ValueError(
                message(
                    self.fun_name,
                    "cannot be lowered: it closes over traced values.",
                    fix="pass them as arguments",
                )
            )
        params = dict(self._closed.jaxpr.eqns[0].params)
        made = programs.prepared(params.pop("jaxpr"), programs.MapInfo(**params))
        platform = lowering_platforms[0] if lowering_platforms else made.where.devices[0].platform
        with programs.inside(params):
            lowered = program.lower(made.closed, made.options, platform)
        return stages.Lowered(self, lowered, made.where, ())


def applied(params: Mapping[str, Any]) -> ClosedJaxpr:
    """A jaxpr of one equation: the map, of whole arrays."""
    inner: ClosedJaxpr = params["jaxpr"]
    size = params["axis_size"]
    invars = list(map(Var, programs.whole_avals(inner.in_avals, params["in_axes"], size)))
    outvars = list(map(Var, pmap_p.abstract_eval(**params)))
    eqn = Eqn(invars, outvars, pmap_p, dict(params), pmap_p.effects(**params))
    return ClosedJaxpr(
        Jaxpr([], list(invars), list(outvars), [eqn], debug_info=inner.jaxpr.debug_info), []
    )
