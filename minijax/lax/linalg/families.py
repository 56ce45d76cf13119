"""What all operations on matrices share: leading dimensions are a batch.

`BatchedPrimitive` batches by moving the mapped dimensions to the front, and keeps the shardings
of batch dimensions in types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from minijax.core.errors import IncompatibleShapesError, error
from minijax.core.primitive import Primitive
from minijax.core.specs import PartitionSpec
from minijax.interpreters.structural import to_batch_dim
from minijax.interpreters.tangents import Zero
from minijax.lax.families import check_same_dtype
from minijax.sharding import rules


class BatchedPrimitive(Primitive):
    """Computes on the last dimensions of its operands, for each entry of the leading ones.

    All operands have the same leading dimensions.

    Attributes:
        core_ndims: for each operand, how many of its last dimensions one computation takes; a
            single number is for all operands.
    """

    core_ndims: ClassVar[tuple[int, ...]] = (2,)

    def batch_shape(self, avals: Sequence[Any]) -> tuple[int, ...]:
        """The leading dimensions, which are those of the first operand."""
        shape: tuple[int, ...] = avals[0].shape
        return shape[: len(shape) - self.core_ndims[0]]

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        fronted = [to_batch_dim(x, d, 0, size) for x, d in zip(args, dims, strict=True)]
        outs = self.bind(*fronted, **params)
        return outs, [0] * len(outs) if self.multiple_results else 0

    def shard(
        self, avals: Sequence[Any], outs: Sequence[Any], **params: Any
    ) -> PartitionSpec | list[PartitionSpec]:
        cores = self.core_ndims * (len(avals) if len(self.core_ndims) == 1 else 1)
        for aval, core in zip(avals, cores, strict=True):
            rules.check_unsharded(self, [aval], range(aval.ndim - core, aval.ndim))
        batch = avals[0].ndim - cores[0]
        entries = rules.join_leading(self, avals, batch)
        specs = [PartitionSpec(*entries, *[None] * (out.ndim - batch)) for out in outs]
        return specs if self.multiple_results else specs[0]


def check_matrices(name: str, argument: str, aval: Any, *, square: bool = False) -> None:
    """Refuses what is no matrix, or batch of matrices.

    Raises:
        TypeError: it has fewer than two dimensions.
        IncompatibleShapesError: the last two differ and must not.
    """
    if aval.ndim < 2:
        error(
            TypeError,
            f"lax.linalg.{name}",
            f"{argument} is no matrix, nor a batch of matrices.",
            got={argument: aval},
            expected="two dimensions or more: T[..., m, n]",
        )
    if square and aval.shape[-1] != aval.shape[-2]:
        error(
            IncompatibleShapesError,
            f"lax.linalg.{name}",
            f"the matrices in {argument} are not square.",
            got={argument: aval},
            expected="T[..., n, n]",
        )


def check_together(name: str, cores: Sequence[int], **avals: Any) -> None:
    """Refuses operands of different dtypes, or with different leading dimensions.

    Args:
        name: the public function.
        cores: how many of the last dimensions of each operand are no batch.
        avals: the operands' types, by the names of the arguments.

    Raises:
        TypeError: their dtypes differ, or how many leading dimensions they have.
        ValueError: the sizes of leading dimensions differ.
    """
    check_same_dtype(f"linalg.{name}", **avals)
    ranks = [aval.ndim - core for aval, core in zip(avals.values(), cores, strict=True)]
    batches = {
        aval.shape[:rank] for aval, rank in zip(avals.values(), ranks, strict=True) if rank >= 0
    }
    if min(ranks) >= 0 and len(batches) == 1:
        return
    of_one_rank = min(ranks) == max(ranks) >= 0
    own = [f"{core} of {argument}" for argument, core in zip(avals, cores, strict=True)]
    error(
        ValueError if of_one_rank else TypeError,
        f"lax.linalg.{name}",
        "the operands are not batches of one shape.",
        got=avals,
        expected=f"equal dimensions before the last {' and '.join(own)}",
    )


def weak_if_all(*avals: Any) -> bool:
    """Whether results of operands of these types are weakly typed."""
    return all(aval.weak_type for aval in avals)


def without_tangents(outs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """What a jvp returns where no operand has a tangent."""
    return list(outs), [Zero.like(x) for x in outs]
