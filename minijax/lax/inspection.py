"""`debug.inspect_array_sharding`: asking the compiler how it places a value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.core import tree
from minijax.core.primitive import Primitive
from minijax.interpreters import eager, inspection
from minijax.interpreters.inspection import Inspection
from minijax.runtime import client
from minijax.runtime.array import Array, physical_aval
from minijax.sharding.base import Sharding
from minijax.sharding.single_device import SingleDeviceSharding


class InspectSharding(Primitive):
    """Tells a Python function how a value is placed, when the program is compiled.

    Derivative: the primal value is inspected; without results there is nothing to transpose.
    """

    name = "inspect_sharding"
    multiple_results = True
    has_effects = True
    knows_extended = True

    def impl(self, x: Any, *, callback: Inspection) -> list[Any]:
        eager.check_no_tracers([x])
        if type.__instancecheck__(Array, x):
            callback.callback(x.sharding)
        else:
            callback.callback(SingleDeviceSharding(client.default_device()))
        return []

    def abstract_eval(self, *avals: Any, **_: Any) -> list[Any]:
        return []

    def shard(self, avals: Sequence[Any], outs: Sequence[Any], **_: Any) -> list[Any]:
        return []

    def effects(self, *avals: Any, **_: Any) -> frozenset[Any]:
        return frozenset({inspection.effect})

    def lower(self, ctx: Any, value: Any, *, callback: Inspection) -> list[Any]:
        if ctx.module.partitioning.partitions > 1:
            callback.lower(ctx, value, physical_aval(ctx.avals_in[0]))
        return []

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[list[Any], list[Any]]:
        return self.bind(*primals, **params), []

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[list[Any], list[Any]]:
        return self.bind(*args, **params), []


inspect_sharding_p = InspectSharding()


def inspect_array_sharding(value: Any, *, callback: Callable[[Sharding], Any]) -> None:
    """Tells a function how arrays are placed: at once, or inside `jit` when it is compiled.

    Inside `jit` the compiler decides about values between arguments and results; the function is
    called once for each compilation, with what it has decided.  Under vmap it is told about the
    whole batch.

    Source: mirrors jax.debug.inspect_array_sharding (0.10).

    Args:
        value: an array, or a tree of arrays.
        callback: takes a `Sharding` for each array; what it returns is ignored.

    Raises:
        TypeError: `callback` cannot be called.

    Example:
        >>> spread = jax.NamedSharding(jax.make_mesh((8,), ("x",)), jax.P("x"))
        >>> x = jax.device_put(jnp.arange(8), spread)
        >>> jax.debug.inspect_array_sharding(x, callback=lambda sharding: print(sharding.spec))
        P('x',)
    """
    eager.check_callable("debug.inspect_array_sharding", callback)
    for leaf in tree.leaves(value):
        inspect_sharding_p.bind(leaf, callback=Inspection(callback))
