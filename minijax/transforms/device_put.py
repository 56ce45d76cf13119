"""Moving values to devices and back: `device_put`, `device_get`, `block_until_ready`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from minijax.core import dtypes, guards, printing, tree, tree_errors, vma
from minijax.core.aval import ShapedArray, aval_of
from minijax.core.errors import error
from minijax.core.meshes import UNCONSTRAINED, PartitionSpec, Space
from minijax.core.operators import Avals, BatchDims, Values
from minijax.core.primitive import Batched, Cotangents, Dual, Primitive, Tangents
from minijax.core.trace import Tracer, current
from minijax.interpreters import remat
from minijax.interpreters.jvp import jvp_of_linear
from minijax.lax import shardings
from minijax.lowering import device_assignment, eager, relocation
from minijax.runtime import agreement, client, in_flight, transfer
from minijax.runtime.array import (
    Array,
    ExtendedArray,
    array_from_host,
    handed_over,
    is_array,
    physical_aval,
    rewrapped,
)
from minijax.runtime.placement import native
from minijax.sharding import contexts, rules
from minijax.sharding.base import Format, Layout, Sharding
from minijax.sharding.named import NamedSharding, SingleDeviceSharding, is_abstract

if TYPE_CHECKING:
    from minijax.lowering.stablehlo import LoweringContext

T = TypeVar("T")


def _target_of(target: object) -> Any:
    """The placement that a target of `device_put` names, or None for no particular one.

    Raises:
        ValueError: the target is neither a device nor a sharding on devices.
    """
    if isinstance(target, Format):
        return _target_of(target.sharding)
    if isinstance(target, Space) and target is not Space.Any:
        return target
    if target is None or isinstance(target, Sharding):
        if is_abstract(target):
            problem = "a sharding on an abstract mesh names no devices."
            fix = "use the same spec on a Mesh with devices"
            error(ValueError, "device_put", problem, got=str(target), fix=fix)
        return target
    if isinstance(target, PartitionSpec):
        return contexts.resolve(target, "device_put")
    if hasattr(target, "device_kind"):
        return SingleDeviceSharding(target)
    got = f"{target!r} of type {type(target).__name__}"
    expected = "a device, a sharding, a PartitionSpec under a mesh, or None"
    error(ValueError, "device_put", "not a place for arrays.", got=got, expected=expected)


class DevicePut(Primitive):
    """Places `x` as `sharding` says, or leaves it where it is for None.

    Shapes: x: T[s] -> T[s].  Linear in x.  Inside a compiled program it is a constraint where the
    sharding has several devices, and the identity where it has one.

    Args:
        sharding: the placement.
        back: where the value has been, if that is known: the place of its cotangent.
        is_binding: whether a program that places a value on one device so must run there.
    """

    name = "device_put"

    def jvp(self, primals: Values, tangents: Tangents, *, back: object, **params: Any) -> Dual:
        (x,) = primals
        # The cotangent returns to where the value has come from.
        back = x.sharding if is_array(x) else back
        return jvp_of_linear(self, primals, tangents, back=back, **params)

    def shard(self, avals: Avals, outs: Avals, *, sharding: Any, **_: Any) -> PartitionSpec:
        if isinstance(sharding, NamedSharding):
            return rules.given_spec(self, outs[0], sharding)
        return rules.spec_of(avals[0])

    def impl(self, x: object, *, sharding: object, **_: Any) -> Array:
        return put(x, _there(x, sharding))

    def abstract_eval(self, x: ShapedArray, *, sharding: Any, **_: Any) -> ShapedArray:
        kind = x.memory_kind if sharding is None else sharding.special_memory_kind
        return x if kind == x.memory_kind else x.update(memory_kind=kind)

    def lower(self, ctx: LoweringContext, x: Any, *, sharding: object, **_: Any) -> Any:
        if isinstance(sharding, Space):
            return remat.move_to_memory_p.lower(
                ctx, x, kind=sharding.special_memory_kind or "device"
            )
        if not isinstance(sharding, NamedSharding):
            return x
        return ctx.module.partitioning.constrained(
            ctx, x, sharding, physical_aval(ctx.avals_in[0]).ndim
        )

    def transpose(self, ct: Any, x: Any, *, sharding: Any, back: Any, **_: Any) -> Cotangents:
        if isinstance(sharding, Space):
            back = Space.Host if x.aval.memory_kind else Space.Device
        if back is None:
            return (ct,)
        return (self.bind(ct, sharding=back, back=None, is_binding=False),)

    def batch(
        self, size: int, args: Values, dims: BatchDims, *, sharding: object, **params: Any
    ) -> Batched:
        if isinstance(sharding, NamedSharding) and dims[0] is not None:
            sharding = shardings.with_batch_dim(self.name, sharding, dims[0])
        return self.bind(args[0], sharding=sharding, **params), dims[0]


printing.hidden_params.set(frozenset({"sharding", "back", "is_binding"}), DevicePut)
rules.constrains_results.set(False, DevicePut)
rules.tells_memory.set(True, DevicePut)


@device_assignment.names_placement.rule(DevicePut)
def _names_placement_of_device_put(
    primitive: DevicePut, *, sharding: object, is_binding: bool, **_: Any
) -> Any:
    is_named = isinstance(sharding, NamedSharding)
    is_one = isinstance(sharding, SingleDeviceSharding)
    return sharding if is_named or (is_one and is_binding) else None


rules.sharding_param.set("sharding", DevicePut)
vma.keeps_unreduced.set(True, DevicePut)
rules.changes_mesh.set(True, DevicePut)


device_put_p = DevicePut()


def put(x: Any, sharding: Sharding | None, *, may_alias: bool | None = None) -> Array:
    """One value placed as a sharding says; committed where one is given.

    Args:
        x: an array, or a value of the host.
        sharding: where it is to be; None leaves arrays where they are.
        may_alias: False for an array that has no memory in common with `x`, True for one that
            takes that of a NumPy array, if it is aligned, though others may write to it.
    """
    if is_array(x):
        if may_alias is not False and (
            sharding is None or (x.sharding == sharding and x.committed)
        ):
            in_flight.check_alive(x.buffer)
            return x
        if sharding is None:
            return rewrapped(transfer.copied(x.buffer), x)
        return relocation.placed(x, sharding, may_alias=may_alias is not False)
    aval = aval_of(x)
    target = native(sharding or SingleDeviceSharding(client.default_device()), aval.ndim)
    if sharding is not None and client.peers() and not sharding.is_fully_addressable:
        agreement.check_same("device_put", np.asarray(x), sharding)
    committed = sharding is not None
    return array_from_host(x, aval, target=target, committed=committed, may_alias=may_alias)


def device_put(
    x: object,
    device: object = None,
    *,
    src: object = None,
    donate: object = False,
    may_alias: object = None,
) -> Any:
    """The arrays of a tree on a device, or split over several.

    Nothing is moved before all of it is known to be possible.

    Args:
        x: a tree of arrays and numbers.
        device: a device, a sharding, a `PartitionSpec` for the mesh in force, or a tree prefix of
            such; None leaves arrays where they are, and values of the host uncommitted on the
            default device.
        src: where `x` comes from, as a tree prefix of devices and shardings; not needed.
        donate: whether the memory of `x` may be taken, as a tree prefix: arrays given are deleted,
            also where their memory lives on in the results.
        may_alias: whether results may have memory in common with `x`, as a tree prefix; by
            default they do where that saves a copy, and nobody can write to the memory: that of
            a NumPy array only where it is large, aligned and read-only.

    Raises:
        TypeError: a leaf is neither an array nor a number.
        ValueError: `device` is not a device or a sharding, a dimension cannot be cut into equal
            parts, or an array is to be donated and not.
        RuntimeError: `device` is a `PartitionSpec` and there is no mesh.
        NotImplementedError: other processes hold what would have to be moved.

    Example:
        >>> x = jax.device_put(np.arange(8), jax.devices()[3])
        >>> x.devices()
        {CpuDevice(id=3)}
        >>> spread = jax.NamedSharding(jax.make_mesh((8,), ("x",)), jax.P("x"))
        >>> tree = jax.device_put({"a": np.arange(8), "b": np.ones((16, 3))}, spread)
        >>> tree["b"].addressable_shards[0].data.shape
        (2, 3)
    """
    leaves, treedef = tree.flatten(x)
    places = _spread(device, x, len(leaves), "device")
    targets = list(map(_target_of, places))
    donations = _spread(donate, x, len(leaves), "donate")
    aliases = _spread(may_alias, x, len(leaves), "may_alias")
    for source in _spread(src, x, len(leaves), "src"):
        _target_of(source)
    facts = zip(leaves, targets, donations, aliases, strict=True)
    for i, (leaf, target, is_given, shared) in enumerate(facts):
        what = functools.partial(tree_errors.leaf_name, "device_put", "x", treedef, i)
        _check_put(leaf, target, what)
        if is_given and shared:
            problem = "an array cannot be donated and shared."
            fix = "leave one of them away"
            error(ValueError, "device_put", problem, got="donate and may_alias", fix=fix)
    bindings = [not _is_device(place) for place in places]
    given = zip(leaves, targets, donations, aliases, bindings, strict=True)
    with guards.explicitly("explicit_device_put"):
        outs = [_put_leaf(*fact) for fact in given]
        outs = [_laid_out(out, place) for out, place in zip(outs, places, strict=True)]
    return tree.unflatten(treedef, outs)


def _spread(given: object, x: object, count: int, argument: str) -> Sequence[Any]:
    """One entry of a tree prefix for each leaf of `x`.

    Raises:
        ValueError: `given` is not a tree prefix.
    """
    if (
        given is None
        or isinstance(given, (bool, Sharding, Format, Space, PartitionSpec))
        or _is_device(given)
    ):
        return [given] * count
    return tree.broadcast_prefix(
        given, x, is_leaf=tree.is_none, user="device_put", first=argument, second="x"
    )


def _check_put(leaf: object, target: Sharding | None, what: Callable[[], str]) -> None:
    aval = leaf.aval if hasattr(leaf, "aval") else aval_of(leaf)
    if target is None or isinstance(target, Space):
        return
    target.check_fits(aval.shape, what)
    if isinstance(target, NamedSharding) and UNCONSTRAINED in tuple(target.spec):
        problem = "only inside programs may a dimension be left to the compiler."
        fix = "None for a dimension that is not split"
        error(ValueError, "device_put", problem, got=str(target), fix=fix)


def _put_leaf(
    leaf: Any, target: Sharding | None, donate: bool, may_alias: bool | None, is_binding: bool
) -> Any:
    if isinstance(leaf, np.ndarray) and leaf.dtype == dtypes.float0:
        return leaf
    if current.value is not eager.EAGER or not (is_array(leaf) or isinstance(leaf, np.ndarray)):
        return device_put_p.bind(leaf, sharding=target, back=None, is_binding=is_binding)
    out = put(leaf, _there(leaf, target), may_alias=may_alias)
    if donate and is_array(leaf):
        if out is leaf:
            out = handed_over(leaf)
        else:
            out.block_until_ready()
            leaf.delete()
    return out


def _there(x: Any, target: Any) -> Sharding | None:
    """A target as a sharding; a `Space` is a memory of the devices that hold the value."""
    if not isinstance(target, Space):
        return target
    own = x.sharding if is_array(x) else SingleDeviceSharding(client.default_device())
    return own.with_memory_kind(target.special_memory_kind)


def _laid_out(x: object, place: object) -> Any:
    """An array that has been put, in the layout of the `Format` that was asked for."""
    if not (isinstance(place, Format) and is_array(x)):
        return x
    if place.layout is None:
        return x
    if not isinstance(place.layout, Layout):
        problem = "the layout must be given: only compiled programs choose one."
        error(ValueError, "device_put", problem, got=str(place), fix="compiled.input_formats")
    place.layout.check_compatible_aval(x.shape)
    target = native(x.sharding, x.buffer.aval.ndim, place.layout)
    return rewrapped(transfer.moved(x.buffer, target), x)


def _is_device(x: object) -> bool:
    return hasattr(x, "device_kind")


def device_get(x: object) -> Any:
    """The arrays of a tree as NumPy arrays.

    Example:
        >>> jax.device_get({"a": jnp.arange(3), "b": 5})
        {'a': array([0, 1, 2], dtype=int32), 'b': 5}
    """
    for leaf in tree.leaves(x):
        if is_array(leaf) and not isinstance(leaf, ExtendedArray):
            leaf.copy_to_host_async()
    with guards.explicitly("explicit_device_get"):
        return tree.map(_to_host, x)


def _to_host(x: object) -> Any:
    if isinstance(x, ExtendedArray):
        return x
    if isinstance(x, Tracer) or is_array(x):
        return np.asarray(x)
    return x


def block_until_ready(x: T) -> T:
    """Waits until all arrays of a tree are computed, and returns the tree.

    Example:
        >>> jax.block_until_ready((jnp.arange(3), "done"))
        (Array([0, 1, 2], dtype=int32), 'done')
    """
    for leaf in tree.leaves(x):
        if hasattr(leaf, "block_until_ready"):
            leaf.block_until_ready()
    return x


def copy_to_host_async(x: T) -> T:
    """Starts copying all arrays of a tree to the host.

    Example:
        >>> x = jnp.arange(3)
        >>> _ = jax.copy_to_host_async(x)
        >>> np.asarray(x)
        array([0, 1, 2], dtype=int32)
    """
    for leaf in tree.leaves(x):
        if hasattr(leaf, "copy_to_host_async"):
            leaf.copy_to_host_async()
    return x
