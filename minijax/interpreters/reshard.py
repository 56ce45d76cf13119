"""`reshard`, the operation that changes how a value is split, and what the interpreters need of it.

Its results are of the type that it is told.  Inside a program it lowers to a constraint, from
which the partitioner makes the communication.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.core import dtypes, printing
from minijax.core.aval import ShapedArray, aval_of
from minijax.core.meshes import PartitionSpec
from minijax.core.operators import Avals, Value, Values
from minijax.core.primitive import Batched, Cotangents, LoweringContext, Primitive
from minijax.interpreters.jvp import jvp_of_linear
from minijax.sharding import rules
from minijax.sharding.named import NamedSharding


class Reshard(Primitive):
    """Splits `x` as `dst_sharding` says, a placement on an abstract mesh.

    Shapes: x: T[s] -> T[s].  Linear in x.
    """

    name = "reshard"
    jvp = jvp_of_linear

    def abstract_eval(self, x: ShapedArray, *, dst_sharding: NamedSharding) -> ShapedArray:
        return x

    def shard(self, avals: Avals, outs: Avals, *, dst_sharding: NamedSharding) -> PartitionSpec:
        return rules.given_spec(self, outs[0], dst_sharding)

    def lower(self, ctx: LoweringContext, x: Any, *, dst_sharding: NamedSharding) -> Any:
        return x

    def transpose(self, ct: Value, x: Any, *, dst_sharding: NamedSharding) -> Cotangents:
        back = rules.of_cotangent(x.aval, dst_sharding.mesh)
        return (reshard_to(ct, back),)

    def batch(
        self, size: int, args: Values, dims: Sequence[int], *, dst_sharding: NamedSharding
    ) -> Batched:
        (x,), (dim,) = args, dims
        entry = rules.free_entry(dst_sharding, aval_of(x), dim)
        return self.bind(x, dst_sharding=rules.batched(dst_sharding, dim, entry)), dim


printing.hidden_params.set(frozenset({"dst_sharding"}), Reshard)
dtypes.knows_extended.set(True, Reshard)
rules.sharding_param.set("dst_sharding", Reshard)
rules.knows_sums.set(True, Reshard)
rules.changes_mesh.set(True, Reshard)


reshard_p = Reshard()


def reshard_to(x: Value, sharding: NamedSharding | None) -> Any:
    """`x` split as a placement on an abstract mesh says; as it is for None."""
    if sharding is None:
        return x
    return reshard_p.bind(x, dst_sharding=sharding)


def settled(ct: Any, primal: Any) -> Any:
    """A cotangent of a value of type `primal`; split as that is, where their types differ in it."""
    return ct if aval_of(ct).split is primal.split else like_primal(ct, primal)


def like_primal(ct: Any, primal: Any) -> Any:
    """A cotangent split as the value of type `primal` that it belongs to."""
    given = aval_of(ct).split
    wanted = rules.of_cotangent(primal, None if given is None else given.mesh)
    if wanted is None or wanted == given or primal.is_extended:
        return ct
    return reshard_p.bind(ct, dst_sharding=wanted)
