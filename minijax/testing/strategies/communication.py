"""Hypothesis strategies for what collectives are told: axes, permutations, groups, ragged sizes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies


@strategies.composite
def axis_subsets(draw: Any, names: Sequence[str], *, max_size: int = 3) -> tuple[str, ...]:
    """Some of these names, at least one, in any order; one alone is the simplest.

    Source: a strategy of Hypothesis.

    Args:
        draw: given by Hypothesis.
        names: the names to choose from.
        max_size: how many at most.

    Example:
        >>> from hypothesis import find
        >>> from minijax.testing import strategies
        >>> find(strategies.axis_subsets(["x", "y"]), lambda axes: len(axes) == 2)
        ('x', 'y')
    """
    first = draw(strategies.sampled_from(list(names)))
    if len(names) == 1 or max_size == 1 or not draw(strategies.booleans()):
        return (first,)
    order = draw(strategies.permutations(list(names)))
    count = draw(strategies.integers(2, min(len(names), max_size)))
    return tuple(order[:count])


@strategies.composite
def axis_index_groups(draw: Any, size: int, *, equal: bool = True) -> list[list[int]]:
    """Groups of the positions along an axis: each position in one group, in any order.

    Source: a strategy of Hypothesis.

    Args:
        draw: given by Hypothesis.
        size: how long the axis is.
        equal: whether all groups are of one size; otherwise they may be of any.

    Example:
        >>> from hypothesis import find
        >>> from minijax.testing import strategies
        >>> find(strategies.axis_index_groups(4), lambda groups: len(groups) == 2)
        [[0, 1], [2, 3]]
    """
    order = draw(strategies.permutations(range(size)))
    if equal:
        divisors = [d for d in range(1, size + 1) if size % d == 0]
        length = draw(strategies.sampled_from(divisors[::-1]))
        return [list(order[i : i + length]) for i in range(0, size, length)]
    cuts = sorted(draw(strategies.sets(strategies.integers(1, size - 1)))) if size > 1 else []
    bounds = [0, *cuts, size]
    return [list(order[a:b]) for a, b in itertools.pairwise(bounds)]


@strategies.composite
def permutations(draw: Any, size: int, *, partial: bool = True) -> list[tuple[int, int]]:
    """Pairs (source, destination) of positions, as `ppermute` takes them; a ring is the simplest.

    Source: a strategy of Hypothesis.

    Args:
        draw: given by Hypothesis.
        size: how long the axis is.
        partial: whether some positions may send, or receive, nothing.

    Example:
        >>> from hypothesis import find
        >>> from minijax.testing import strategies
        >>> find(strategies.permutations(3), lambda pairs: True)
        [(0, 1), (1, 2), (2, 0)]
    """
    ring = [(i, (i + 1) % size) for i in range(size)]
    if not draw(strategies.booleans()):
        pairs = ring
    else:
        order = draw(strategies.permutations(range(size)))
        pairs = list(enumerate(order))
    if partial and size > 1 and draw(strategies.booleans()):
        count = draw(strategies.integers(1, size - 1))
        pairs = pairs[:count]
    return pairs


class RaggedSizes(NamedTuple):
    """The arguments of `ragged_all_to_all`, device by device: arrays of shape (devices, devices).

    Source: of the project; JAX has nothing like it.

    Attributes:
        input_offsets: where a device's block for another one begins.
        send_sizes: how long it is.
        output_offsets: where it begins on the receiver.
        recv_sizes: how long the blocks are that a device receives.
        operand_size: how long operands must be at least.
        output_size: how long outputs must be at least.

    Example:
        >>> from minijax.testing import strategies
        >>> strategies.RaggedSizes._fields[:4]
        ('input_offsets', 'send_sizes', 'output_offsets', 'recv_sizes')
    """

    input_offsets: Any
    send_sizes: Any
    output_offsets: Any
    recv_sizes: Any
    operand_size: int
    output_size: int


@strategies.composite
def ragged_sizes(draw: Any, size: int, *, longest: int = 3) -> RaggedSizes:
    """Sizes and offsets of blocks that devices send each other; those that follow are disjoint.

    Source: a strategy of Hypothesis.

    Args:
        draw: given by Hypothesis.
        size: how many devices there are.
        longest: the size of a block at most.

    Example:
        >>> from hypothesis import find
        >>> from minijax.testing import strategies
        >>> find(strategies.ragged_sizes(2), lambda sizes: sizes.send_sizes.any()).recv_sizes
        array([[0, 0],
               [0, 1]], dtype=int32)
    """
    lengths = strategies.integers(0, longest)
    row = strategies.lists(lengths, min_size=size, max_size=size)
    send = np.array(draw(strategies.lists(row, min_size=size, max_size=size)), np.int32)
    starts = np.cumsum(send, 1, dtype=np.int32) - send
    # Receivers keep blocks in the order of the senders: column by column.
    places = np.cumsum(send, 0, dtype=np.int32) - send
    return RaggedSizes(
        input_offsets=starts,
        send_sizes=send,
        output_offsets=places,
        recv_sizes=send.T.copy(),
        operand_size=max(1, int(send.sum(1).max())),
        output_size=max(1, int(send.sum(0).max())),
    )
