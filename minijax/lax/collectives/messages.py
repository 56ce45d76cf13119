"""One device sends and another receives, each by an operation of its own: `psend` and `precv`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from minijax.core import axes as core_axes
from minijax.core.aval import (
    NOT_MANUAL,
    AbstractToken,
    ManualAxisType,
    ShapedArray,
    abstract_token,
    manual_type,
)
from minijax.core.effects import SingleSideCollectiveEffect
from minijax.core.errors import error
from minijax.core.primitive import Primitive
from minijax.core.specs import PartitionSpec
from minijax.interpreters import casts, hlo_build
from minijax.lax.collectives import arguments
from minijax.lax.collectives.arguments import Axes
from minijax.lax.collectives.permutations import Pairs
from minijax.sharding import rules


class OneSided(Primitive):
    """One end of messages between devices.  It has neither derivative nor batch, and no results
    where there are no devices.
    """

    axis_params = ("axis_name",)
    communicates: ClassVar[bool] = True
    has_effects: ClassVar[bool] = True
    knows_extended: ClassVar[bool] = True
    constrains_results: ClassVar[bool] = False
    without = frozenset({"jvp", "transpose", "batch"})

    def effects(self, *avals: Any, axis_name: Axes, **_: Any) -> frozenset[Any]:
        return casts.named_effects(axis_name) | {SingleSideCollectiveEffect()}

    def attributes(self, ctx: Any, axes: Axes, perm: Pairs) -> dict[str, Any]:
        """Who sends to whom.

        Raises:
            NotImplementedError: the platform has no such operation, or devices are replicas.
        """
        if ctx.platform not in arguments.GPUS:
            error(
                NotImplementedError,
                f"lax.{self.name}",
                "is implemented for GPUs only.",
                got=f"a program for {ctx.platform}",
                fix="lax.ppermute, which all platforms have",
            )
        devices = ctx.module.device_axes
        channel = devices.channel()
        if not channel:
            error(
                NotImplementedError,
                f"lax.{self.name}",
                "is implemented inside of shard_map only.",
                fix="shard_map in place of pmap, or lax.ppermute",
            )
        found = {
            "source_target_pairs": hlo_build.dense(arguments.pairs_of_devices(devices, axes, perm)),
            **channel,
        }
        if not ctx.module.partitioning.with_shardy:
            found["mhlo.sharding"] = hlo_build.string("{manual}")
        return found


class PSend(OneSided):
    """Sends the block of each source to its destination, which must receive it.

    Shapes: x: T[s] -> a token.
    """

    name = "psend"

    def abstract_eval(self, x: ShapedArray, *, axis_name: Axes, perm: Pairs) -> AbstractToken:
        return abstract_token

    def vary(
        self, avals: Sequence[Any], outs: Sequence[Any], *, axis_name: Axes, perm: Pairs
    ) -> ManualAxisType:
        arguments.check_varying(self.name, avals[0], axis_name)
        return NOT_MANUAL

    def shard(self, avals: Sequence[Any], outs: Sequence[Any], **params: Any) -> PartitionSpec:
        return PartitionSpec()

    def lower(self, ctx: Any, x: Any, *, axis_name: Axes, perm: Pairs) -> Any:
        attributes = self.attributes(ctx, axis_name, perm)
        token = ctx.op("stablehlo.create_token", [])
        return ctx.op("stablehlo.send", [x, token], attributes)


class PRecv(OneSided):
    """Receives a block on each destination; comes after what the token stands for.

    Shapes: a token -> T[s], as `out_shape` says.
    """

    name = "precv"

    def abstract_eval(
        self, token: Any, *, axis_name: Axes, out_shape: ShapedArray, perm: Pairs
    ) -> ShapedArray:
        if not isinstance(token, AbstractToken):
            error(TypeError, "lax.precv", "the first operand must be a token.", got=str(token))
        return out_shape

    def vary(
        self, avals: Sequence[Any], outs: Sequence[Any], *, axis_name: Axes, **_: Any
    ) -> ManualAxisType:
        return manual_type({*core_axes.typed_among(axis_name), *outs[0].vma})

    def shard(self, avals: Sequence[Any], outs: Sequence[Any], **params: Any) -> PartitionSpec:
        return rules.spec_of(outs[0])

    def lower(
        self, ctx: Any, token: Any, *, axis_name: Axes, out_shape: ShapedArray, perm: Pairs
    ) -> Any:
        attributes = self.attributes(ctx, axis_name, perm)
        types = [hlo_build.type_of(out_shape), hlo_build.type_of(abstract_token)]
        return ctx.ops("stablehlo.recv", [token], attributes, types)[0]


psend_p = PSend()
precv_p = PRecv()


def psend(x: Any, axis_name: Any, perm: Any) -> Any:
    """Sends blocks between devices, which receive them by `precv`.

    Types:     the operand varies over the axes.
    Lowers to: stablehlo.send, on GPUs only.
    Source:    mirrors jax.lax.psend (0.10).

    Args:
        x: an array.
        axis_name: a name, or names, of mesh axes of shard_map.
        perm: pairs (source, destination) of positions, counted in the order of the mesh.

    Returns:
        A token for `precv`.

    Raises:
        NameError: a name is not in scope.
        ValueError: a position is out of range, or a source or destination is named twice.
        NotImplementedError: when the program is lowered for another platform than a GPU.

    Example:
        >>> def pass_on(x):
        ...     return lax.precv(lax.psend(x, "x", [(0, 1)]), x, "x", [(0, 1)])
        >>> mesh, P = jax.make_mesh((8,), ("x",)), jax.P
        >>> f = jax.shard_map(pass_on, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
        >>> jax.eval_shape(f, jnp.ones(8)).shape
        (8,)
    """
    axes, pairs = _ends("lax.psend", axis_name, perm)
    arguments.check_no_sums("lax.psend", x, axes)
    return psend_p.bind(arguments.with_pvary(x, axes), axis_name=axes, perm=pairs)


def precv(token: Any, out_shape: Any, axis_name: Any, perm: Any) -> Any:
    """Receives the blocks that devices have sent by `psend`.

    Types:     the result varies over the axes, and over those that `out_shape` varies over.
    Lowers to: stablehlo.recv, on GPUs only.
    Source:    mirrors jax.lax.precv (0.10).

    Args:
        token: what `psend` returned, or another token.
        out_shape: anything with the shape and dtype of what is received.
        axis_name: a name, or names, of mesh axes of shard_map.
        perm: pairs (source, destination) of positions, counted in the order of the mesh.

    Raises:
        NameError: a name is not in scope.
        TypeError: `token` is none.
        ValueError: a position is out of range, or a source or destination is named twice.
        NotImplementedError: when the program is lowered for another platform than a GPU.

    Example:
        >>> def receive(x):
        ...     return lax.precv(lax.create_token(), x, "x", [(0, 1)])
        >>> mesh, P = jax.make_mesh((8,), ("x",)), jax.P
        >>> f = jax.shard_map(receive, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
        >>> jax.eval_shape(f, jnp.ones(8)).shape
        (8,)
    """
    axes, pairs = _ends("lax.precv", axis_name, perm)
    aval = ShapedArray(out_shape.shape, out_shape.dtype)
    varying = getattr(getattr(out_shape, "aval", out_shape), "vma", None) or ()
    if core_axes.are_typed():
        aval = aval.with_manual_type(manual_type(varying))
    return precv_p.bind(token, axis_name=axes, out_shape=aval, perm=pairs)


def _ends(name: str, axis_name: Any, perm: Any) -> tuple[Axes, Pairs]:
    axes = arguments.in_mesh_order(arguments.canonical_axes(name, axis_name))
    return axes, arguments.permutation(name, perm, arguments.axes_size(name, axes))
