"""Moving values to devices and back: `device_put`, `device_get`, `block_until_ready`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from minijax.core import dtypes, tree
from minijax.core.aval import ShapedArray, aval_of
from minijax.core.errors import message
from minijax.core.primitive import Primitive
from minijax.core.trace import Tracer
from minijax.interpreters.tangents import jvp_of_unary_linear
from minijax.runtime.array import Array, ExtendedArray, array_from_host
from minijax.runtime.execute import buffer_on
from minijax.runtime.placement import native_sharding
from minijax.sharding.single_device import SingleDeviceSharding


def _device_of(target: Any) -> Any:
    """The device that a target of `device_put` names, or None for no particular one.

    Raises:
        ValueError: the target is neither a device nor a sharding on one device.
    """
    if target is None:
        return None
    if isinstance(target, SingleDeviceSharding):
        return target.device
    if hasattr(target, "device_kind"):
        return target
    raise ValueError(
        message(
            "device_put",
            "not a place for arrays.",
            got=f"{target!r} of type {type(target).__name__}",
            expected="a device, a SingleDeviceSharding, or None",
        )
    )


class DevicePut(Primitive):
    """Places `x` on a device, or leaves it where it is for None.

    Shapes: x: T[s] -> T[s].  Linear in x; inside one compiled program it is the identity.
    """

    name = "device_put"
    jvp = jvp_of_unary_linear
    hidden_params: ClassVar[frozenset[str]] = frozenset({"device"})

    def impl(self, x: Any, *, device: Any) -> Array:
        return put(x, device)

    def abstract_eval(self, x: ShapedArray, *, device: Any) -> ShapedArray:
        return x

    def lower(self, ctx: Any, x: Any, *, device: Any) -> Any:
        return x

    def transpose(self, ct: Any, x: Any, *, device: Any) -> tuple[Any]:
        return (ct,)

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any], *, device: Any
    ) -> tuple[Any, Any]:
        return self.bind(args[0], device=device), dims[0]


device_put_p = DevicePut()


def put(x: Any, device: Any, *, force_copy: bool = False) -> Array:
    """One value on a device; committed where a device is named."""
    if type.__instancecheck__(Array, x):
        if device is None and not force_copy:
            return x  # type: ignore[no-any-return]
        target = device or x.device
        buffer = buffer_on(x, x.aval, target)
        if not buffer._committed and device is not None:
            buffer = buffer._rewrap_with_aval_and_sharding(buffer.aval, native_sharding(target))
        if isinstance(x, ExtendedArray):
            return ExtendedArray(buffer, x.dtype)
        return Array(buffer)
    aval = aval_of(x)
    if aval.dtype == dtypes.float0:
        x, aval = np.zeros(aval.shape, np.bool_), aval.update(dtype=dtypes.bool_)
    return array_from_host(x, aval, device=device, committed=device is not None)


def device_put(
    x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None
) -> Any:
    """The arrays of a tree on a device.

    Source: mirrors jax.device_put (0.10).

    Args:
        x: a tree of arrays and numbers.
        device: a device or a sharding, or a tree prefix of them; None leaves values uncommitted
            on the default device.
        src: accepted for compatibility.
        donate: whether the memory of `x` may be taken: arrays given are deleted after the copy.
        may_alias: accepted for compatibility.

    Raises:
        TypeError: a leaf is no array and no number.
        ValueError: `device` is no device and no sharding on one.
    """
    leaves, treedef = tree.flatten(x)
    if device is None or hasattr(device, "device_kind") or isinstance(device, SingleDeviceSharding):
        targets = [_device_of(device)] * len(leaves)
    else:
        prefix = tree.broadcast_prefix(device, x, is_leaf=lambda d: d is None)
        targets = list(map(_device_of, prefix))
    outs = []
    for leaf, target in zip(leaves, targets, strict=True):
        if not hasattr(leaf, "aval"):
            aval_of(leaf)
        out = device_put_p.bind(leaf, device=target)
        if donate and type.__instancecheck__(Array, leaf) and out is not leaf:
            out.block_until_ready()
            leaf.delete()
        outs.append(out)
    return tree.unflatten(treedef, outs)


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
