"""Moving values to devices and back: `device_put`, `device_get`, `block_until_ready`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from minijax.core import dtypes, tree
from minijax.core.aval import ShapedArray, aval_of
from minijax.core.errors import message
from minijax.core.primitive import Primitive
from minijax.core.specs import PartitionSpec
from minijax.core.trace import Tracer
from minijax.interpreters import assignment, resharding
from minijax.interpreters.tangents import jvp_of_unary_linear
from minijax.runtime import client
from minijax.runtime.array import Array, ExtendedArray, array_from_host, physical_aval
from minijax.runtime.placement import native
from minijax.sharding import contexts, rules
from minijax.sharding.base import Sharding
from minijax.sharding.named import NamedSharding
from minijax.sharding.single_device import SingleDeviceSharding


def _target_of(target: Any) -> Sharding | None:
    """The placement that a target of `device_put` names, or None for no particular one.

    Raises:
        ValueError: the target is neither a device nor a sharding on devices.
    """
    if target is None or isinstance(target, Sharding):
        if assignment.is_abstract(target):
            raise ValueError(
                message(
                    "device_put",
                    "a sharding on an abstract mesh names no devices.",
                    got=str(target),
                    fix="use the same spec on a Mesh with devices",
                )
            )
        return target
    if isinstance(target, PartitionSpec):
        return contexts.resolve(target, "device_put")
    if hasattr(target, "device_kind"):
        return SingleDeviceSharding(target)
    raise ValueError(
        message(
            "device_put",
            "not a place for arrays.",
            got=f"{target!r} of type {type(target).__name__}",
            expected="a device, a sharding, a PartitionSpec under a mesh, or None",
        )
    )


class DevicePut(Primitive):
    """Places `x` as `sharding` says, or leaves it where it is for None.

    Shapes: x: T[s] -> T[s].  Linear in x.  Inside a compiled program it is a constraint where the
    sharding has several devices, and the identity where it has one.
    """

    name = "device_put"
    jvp = jvp_of_unary_linear
    hidden_params: ClassVar[frozenset[str]] = frozenset({"sharding"})
    sharding_param: ClassVar[str] = "sharding"
    keeps_unreduced = True
    # Its lowering does so.
    constrains_results: ClassVar[bool] = False
    changes_mesh: ClassVar[bool] = True

    def shard(self, avals: Sequence[Any], outs: Sequence[Any], *, sharding: Any) -> PartitionSpec:
        if isinstance(sharding, NamedSharding):
            return rules.given_spec(self, outs[0], sharding)
        return rules.spec_of(avals[0])

    def impl(self, x: Any, *, sharding: Any) -> Array:
        return put(x, sharding)

    def names_placement(self, *, sharding: Any) -> Any:
        return sharding if isinstance(sharding, NamedSharding) else None

    def abstract_eval(self, x: ShapedArray, *, sharding: Any) -> ShapedArray:
        kind = x.memory_kind if sharding is None else sharding.special_memory_kind
        return x if kind == x.memory_kind else x.update(memory_kind=kind)

    def lower(self, ctx: Any, x: Any, *, sharding: Any) -> Any:
        if not isinstance(sharding, NamedSharding):
            return x
        return ctx.module.partitioning.constrained(
            ctx, x, sharding, physical_aval(ctx.avals_in[0]).ndim
        )

    def transpose(self, ct: Any, x: Any, *, sharding: Any) -> tuple[Any]:
        return (ct,)

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any], *, sharding: Any
    ) -> tuple[Any, Any]:
        if isinstance(sharding, NamedSharding) and dims[0] is not None:
            sharding = sharding.with_spec(sharding.spec.inserted(dims[0]))
        return self.bind(args[0], sharding=sharding), dims[0]


device_put_p = DevicePut()


def put(x: Any, sharding: Any, *, force_copy: bool = False) -> Array:
    """One value placed as a sharding says; committed where one is given."""
    if type.__instancecheck__(Array, x):
        if sharding is None and not force_copy:
            return x  # type: ignore[no-any-return]
        sharding = sharding or x.sharding
        if x.sharding == sharding and x.committed:
            return x  # type: ignore[no-any-return]
        return resharding.placed(x, sharding)
    aval = aval_of(x)
    if aval.dtype == dtypes.float0:
        x, aval = np.zeros(aval.shape, np.bool_), aval.update(dtype=dtypes.bool_)
    target = native(sharding or SingleDeviceSharding(client.default_device()), aval.ndim)
    return array_from_host(x, aval, target=target, committed=sharding is not None)


def device_put(
    x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None
) -> Any:
    """The arrays of a tree on a device, or split over several.

    Source: mirrors jax.device_put (0.10).

    Args:
        x: a tree of arrays and numbers.
        device: a device, a sharding, a `PartitionSpec` for the mesh in force, or a tree prefix of
            such; None leaves values uncommitted on the default device.
        src: accepted for compatibility.
        donate: whether the memory of `x` may be taken: arrays given are deleted after the copy.
        may_alias: accepted for compatibility.

    Raises:
        TypeError: a leaf is no array and no number.
        ValueError: `device` is no place, or a dimension cannot be cut into equal parts.
        RuntimeError: `device` is a `PartitionSpec` and there is no mesh.
    """
    leaves, treedef = tree.flatten(x)
    if device is None or isinstance(device, (Sharding, PartitionSpec)) or _is_device(device):
        targets = [_target_of(device)] * len(leaves)
    else:
        prefix = tree.broadcast_prefix(device, x, is_leaf=_is_target)
        targets = list(map(_target_of, prefix))
    outs = []
    for leaf, target in zip(leaves, targets, strict=True):
        if not hasattr(leaf, "aval"):
            aval_of(leaf)
        if target is not None:
            target.shard_shape(leaf.shape if hasattr(leaf, "shape") else ())
        out = device_put_p.bind(leaf, sharding=target)
        if donate and type.__instancecheck__(Array, leaf) and out is not leaf:
            out.block_until_ready()
            leaf.delete()
        outs.append(out)
    return tree.unflatten(treedef, outs)


def _is_device(x: Any) -> bool:
    return hasattr(x, "device_kind")


def _is_target(x: Any) -> bool:
    return x is None or isinstance(x, PartitionSpec)


def device_get(x: Any) -> Any:
    """The arrays of a tree as NumPy arrays.  Mirrors jax.device_get (0.10)."""
    for leaf in tree.leaves(x):
        if type.__instancecheck__(Array, leaf) and not isinstance(leaf, ExtendedArray):
            leaf.copy_to_host_async()
    return tree.map(_to_host, x)


def _to_host(x: Any) -> Any:
    if isinstance(x, Tracer) or type.__instancecheck__(Array, x):
        return np.asarray(x)
    return x


def block_until_ready(x: Any) -> Any:
    """Waits until all arrays of a tree are computed, and returns the tree.

    Source: mirrors jax.block_until_ready (0.10).
    """
    for leaf in tree.leaves(x):
        if hasattr(leaf, "block_until_ready"):
            leaf.block_until_ready()
    return x


def copy_to_host_async(x: Any) -> Any:
    """Starts copying all arrays of a tree to the host.  Mirrors jax.copy_to_host_async."""
    for leaf in tree.leaves(x):
        if hasattr(leaf, "copy_to_host_async"):
            leaf.copy_to_host_async()
    return x
