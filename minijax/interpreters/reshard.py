"""`reshard`, the operation that changes how a value is split, and what the interpreters need of it.

Its results are of the type that it is told.  Inside a program it lowers to a constraint, from
which the partitioner makes the communication.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from minijax.core.aval import ShapedArray, aval_of
from minijax.core.primitive import Primitive
from minijax.core.specs import PartitionSpec, names_of
from minijax.interpreters.tangents import jvp_of_unary_linear
from minijax.sharding import rules
from minijax.sharding.named import NamedSharding, named


class Reshard(Primitive):
    """Splits `x` as `dst_sharding` says, a placement on an abstract mesh.

    Shapes: x: T[s] -> T[s].  Linear in x.
    """

    name = "reshard"
    fault_flow = "moves"
    jvp = jvp_of_unary_linear
    hidden_params: ClassVar[frozenset[str]] = frozenset({"dst_sharding"})
    sharding_param: ClassVar[str] = "dst_sharding"
    knows_extended: ClassVar[bool] = True
    knows_sums: ClassVar[bool] = True
    changes_mesh: ClassVar[bool] = True

    def abstract_eval(self, x: ShapedArray, *, dst_sharding: NamedSharding) -> ShapedArray:
        return x

    def shard(
        self, avals: Sequence[Any], outs: Sequence[Any], *, dst_sharding: NamedSharding
    ) -> PartitionSpec:
        return rules.given_spec(self, outs[0], dst_sharding)

    def lower(self, ctx: Any, x: Any, *, dst_sharding: NamedSharding) -> Any:
        return x

    def transpose(self, ct: Any, x: Any, *, dst_sharding: NamedSharding) -> tuple[Any]:
        return (reshard_like_cotangent(ct, x.aval, dst_sharding.mesh),)

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any], *, dst_sharding: NamedSharding
    ) -> tuple[Any, Any]:
        (x,), (dim,) = args, dims
        used = set(dst_sharding.spec.names())
        entry = rules.spec_of(aval_of(x))[dim]
        entry = tuple(name for name in names_of(entry) if name not in used)
        target = rules.padded(dst_sharding, aval_of(x).ndim - 1)
        return self.bind(x, dst_sharding=rules.batched(target, dim, entry)), dim


reshard_p = Reshard()


def reshard_to(x: Any, sharding: NamedSharding) -> Any:
    """`x` split as a placement on an abstract mesh says; `x` itself where it is so already."""
    aval = aval_of(x)
    if rules.canonical(sharding, aval.ndim) is aval.sharding and aval.sharding is not None:
        return x
    return reshard_p.bind(x, dst_sharding=sharding)


def reshard_like_cotangent(ct: Any, primal: Any, mesh: Any = None) -> Any:
    """A cotangent split as the value that it belongs to."""
    aval = aval_of(ct)
    wanted = rules.cotangent_spec(rules.spec_of(primal))
    if rules.spec_of(aval) == wanted:
        return ct
    if primal.sharding is not None:
        mesh = primal.sharding.mesh
    elif aval.sharding is not None:
        mesh = aval.sharding.mesh
    return ct if mesh is None else reshard_p.bind(ct, dst_sharding=named(mesh, wanted))
