"""Laws of single collectives and of pairs of them: numbers 1 to 11, and 21 to 24.

Each law is a function of a `Case`; its docstring states it.  A `block` is what one device holds, n
the number of devices along the axes of the case.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.runtime.array import Array
from minijax.testing.laws.cases import Case, Collective, linear_operations


def psum_gathers_scatter(case: Case) -> None:
    """psum(x) = all_gather(psum_scatter(x)) along one dimension, tiled or not.

    And psum_scatter(x) is the slice of psum(x) at axis_index.

    Source: law 1 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.psum_gathers_scatter(laws.Case({"x": 4}, ("x",)))
    """
    size = 2 * case.n if case.tiled else case.n
    dim = int(case.random.integers(2))
    block = size // case.n

    def scattered(x: Array) -> Any:
        return case.lax.psum_scatter(x, case.axes, scatter_dimension=dim, tiled=case.tiled)

    def own_slice(x: Array) -> Any:
        total = case.lax.psum(x, case.axes)
        start = case.lax.axis_index(case.axes) * block
        found = lax.dynamic_slice_in_dim(total, start, block, dim)
        return found if case.tiled else lax.squeeze(found, (dim,))

    x = case.blocks(*((size, 3) if dim == 0 else (3, size)))
    case.check(
        psum_gathers_scatter,
        lambda x: (case.lax.psum(x, case.axes), scattered(x)),
        lambda x: (
            case.lax.all_gather(scattered(x), case.axes, axis=dim, tiled=case.tiled),
            own_slice(x),
        ),
        x,
    )


def collectives_are_linear(case: Case) -> None:
    """f(a·x + b·y) = a·f(x) + b·f(y) for every linear collective f.

    Source: law 2 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.collectives_are_linear(laws.Case({"x": 4}, ("x",)))
    """
    a, b = np.asarray(3, case.dtype)[()], np.asarray(-2, case.dtype)[()]
    for operation in linear_operations(case):

        def left(x: Array, y: Array, f: Collective = operation.apply) -> Any:
            return f(x * a + y * b, case.axes)

        def right(x: Array, y: Array, f: Collective = operation.apply) -> Any:
            return f(x, case.axes) * a + f(y, case.axes) * b

        inputs = case.blocks(*operation.shape), case.blocks(*operation.shape)
        case.check(collectives_are_linear, left, right, *inputs)


def reductions_go_axis_by_axis(case: Case) -> None:
    """A reduction over several axes is one over each of them in turn, in any order.

    The same for psum, pmax and pmin.

    Source: law 3 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.reductions_go_axis_by_axis(laws.Case({"x": 4}, ("x",)))
    """

    def in_turn(reduce: Collective, x: Array, axes: Sequence[str]) -> Any:
        for axis in axes:
            x = reduce(x, axis)
        return x

    def reductions() -> list[Any]:
        return [case.lax.psum, case.lax.pmax, case.lax.pmin]

    case.check(
        reductions_go_axis_by_axis,
        lambda x: [r(x, case.axes) for r in reductions()] * 2,
        lambda x: [
            in_turn(r, x, axes) for axes in (case.axes, case.axes[::-1]) for r in reductions()
        ],
        case.blocks(2, 3),
    )


def mean_is_sum_by_size(case: Case) -> None:
    """pmean(x) = psum(x) / n; psum of a constant is n times it, so that psum(1) = axis_size.

    Source: law 4 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.mean_is_sum_by_size(laws.Case({"x": 4}, ("x",)))
    """
    constant = np.arange(4, dtype=case.dtype)

    def left(x: Array) -> Any:
        return (
            case.lax.pmean(x, case.axes),
            case.lax.psum(constant, case.axes),
            np.int32(case.lax.psum(1, case.axes)),
        )

    def right(x: Array) -> Any:
        return (
            case.lax.psum(x, case.axes) / case.n,
            constant * np.asarray(case.n, case.dtype),
            np.int32(case.lax.axis_size(case.axes)),
        )

    case.check(mean_is_sum_by_size, left, right, case.blocks(2, 3))


def extremes_mirror(case: Case) -> None:
    """pmax(x) = -pmin(-x); pmax(pmax(x)) = pmax(x); pmax(x) ≥ x ≥ pmin(x).

    Source: law 5 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.extremes_mirror(laws.Case({"x": 4}, ("x",)))
    """

    def left(x: Array) -> Any:
        most, least = case.lax.pmax(x, case.axes), case.lax.pmin(x, case.axes)
        bounds = lax.bitwise_and(lax.ge(most, x), lax.ge(x, least))
        return most, case.lax.pmax(most, case.axes), bounds

    def right(x: Array) -> Any:
        most = case.lax.pmax(x, case.axes)
        return -case.lax.pmin(-x, case.axes), most, lax.full_like(x, True, dtype=np.bool_)

    case.check(extremes_mirror, left, right, case.blocks(2, 3))


def positions_of_extremes(case: Case) -> None:
    """The block at pargmax(x) is pmax(x), element by element.

    No earlier position has it; the same for pargmin and pmin.

    Source: law 6 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.positions_of_extremes(laws.Case({"x": 4}, ("x",)))
    """
    axis = case.axes[0]

    def left(x: Array) -> Any:
        return [case.lax.pargmax(x, axis), case.lax.pargmin(x, axis)]

    def right(x: Array) -> Any:
        all_blocks = lax.all_gather(x, axis)
        return [lax.argmax(all_blocks, 0, np.int32), lax.argmin(all_blocks, 0, np.int32)]

    case.check(positions_of_extremes, left, right, case.blocks(4, 3) // 2)


def gather_holds_own_block(case: Case) -> None:
    """all_gather(x)[axis_index] = x.

    Over several axes it is, reshaped, the gather over the last of them, then over those before it.

    Source: law 7 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.gather_holds_own_block(laws.Case({"x": 4}, ("x",)))
    """

    def left(x: Array) -> Any:
        gathered = case.lax.all_gather(x, case.axes)
        at = case.lax.axis_index(case.axes)
        return lax.dynamic_index_in_dim(gathered, at, 0, keepdims=False), gathered

    def right(x: Array) -> Any:
        gathered = x
        for axis in reversed(case.axes):
            gathered = case.lax.all_gather(gathered, axis)
        return x, lax.reshape(gathered, (case.n, *x.shape))

    case.check(gather_holds_own_block, left, right, case.blocks(2, 3))


def exchange_inverts(case: Case) -> None:
    """all_to_all(s, c) then all_to_all(c, s) gives x back, tiled or not.

    So does pswapaxes twice; and all_gather(x) is the all_to_all of n copies of x.

    Source: law 8 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.exchange_inverts(laws.Case({"x": 4}, ("x",)))
    """
    size = 2 * case.n if case.tiled else case.n

    def left(x: Array, y: Array) -> Any:
        there = case.lax.all_to_all(x, case.axes, 0, 1, tiled=case.tiled)
        back = case.lax.all_to_all(there, case.axes, 1, 0, tiled=case.tiled)
        swapped = case.lax.pswapaxes(y, case.axes, 1)
        return back, case.lax.pswapaxes(swapped, case.axes, 1), case.lax.all_gather(x, case.axes)

    def right(x: Array, y: Array) -> Any:
        copies = lax.broadcast(x, (case.n,))
        return x, y, case.lax.all_to_all(copies, case.axes, 0, 0)

    case.check(exchange_inverts, left, right, case.blocks(size, 3), case.blocks(2, case.n))


def permutations_compose(case: Case) -> None:
    """ppermute by p then by q is ppermute by their composition.

    The inverse of p undoes it; the identity changes nothing; after a partial one, the sum over
    devices is that of what was sent.

    Source: law 9 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.permutations_compose(laws.Case({"x": 4}, ("x",)))
    """
    p, q = case.permutation(), case.permutation()
    there = [(i, p[i]) for i in range(case.n)]
    some = there[: max(1, case.n // 2)]
    # Positions along several axes are counted in the order of the mesh.
    axes = tuple(a for a in case.sizes if a in case.axes)

    def left(x: Array) -> Any:
        moved = case.lax.ppermute(x, axes, there)
        return (
            case.lax.ppermute(moved, axes, list(enumerate(q))),
            case.lax.ppermute(moved, axes, [(d, s) for s, d in there]),
            case.lax.ppermute(x, axes, [(i, i) for i in range(case.n)]),
            lax.psum(case.lax.ppermute(x, axes, some), axes),
        )

    def right(x: Array) -> Any:
        sends = np.isin(np.arange(case.n), [s for s, _ in some]).astype(case.dtype)
        own = lax.dynamic_index_in_dim(sends, lax.axis_index(axes), 0, keepdims=False)
        return (
            case.lax.ppermute(x, axes, [(i, q[p[i]]) for i in range(case.n)]),
            x,
            x,
            lax.psum(x * own, axes),
        )

    case.check(permutations_compose, left, right, case.blocks(2, 3))


def shuffles_compose(case: Case) -> None:
    """pshuffle by p then by q is pshuffle by i ↦ p[q[i]].

    pbroadcast is the sum of what is zero elsewhere, and doing it twice changes nothing.

    Source: law 10 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.shuffles_compose(laws.Case({"x": 4}, ("x",)))
    """
    p, q = case.permutation(), case.permutation()
    source = int(case.random.integers(case.n))

    def left(x: Array) -> Any:
        sent = case.lax.pbroadcast(x, case.axes, source)
        shuffled = case.lax.pshuffle(case.lax.pshuffle(x, case.axes, p), case.axes, q)
        return shuffled, sent, case.lax.pbroadcast(sent, case.axes, source)

    def right(x: Array) -> Any:
        is_source = lax.eq(case.lax.axis_index(case.axes), np.int32(source))
        kept = lax.select(lax.broadcast(is_source, x.shape), x, lax.full_like(x, 0))
        total = case.lax.psum(kept, case.axes)
        both = [p[i] for i in q]
        return case.lax.pshuffle(x, case.axes, both), total, total

    case.check(shuffles_compose, left, right, case.blocks(2, 3))


def ragged_generalizes_exchange(case: Case) -> None:
    """ragged_all_to_all with blocks of one size is the tiled all_to_all of dimension 0.

    Source: law 11 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.ragged_generalizes_exchange(laws.Case({"x": 4}, ("x",)))
    """
    axis = case.axes[0]
    n = case.sizes[axis]
    length = 2

    def left(x: Array) -> Any:
        offsets = np.arange(n, dtype=np.int32) * np.int32(length)
        sizes = np.full(n, length, np.int32)
        own = case.lax.axis_index(axis) * np.int32(length)
        places = lax.broadcast(own, (n,))
        return case.lax.ragged_all_to_all(
            x, lax.full_like(x, 0), offsets, sizes, places, sizes, axis_name=axis
        )

    def right(x: Array) -> Any:
        return case.lax.all_to_all(x, axis, 0, 0, tiled=True)

    case.check(ragged_generalizes_exchange, left, right, case.blocks(n * length, 3))


def start_and_done_are_one(case: Case) -> None:
    """A collective that is started and done later equals the one that is not.

    Whatever is computed in between.

    Source: law 21 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.start_and_done_are_one(laws.Case({"x": 4}, ("x",)))
    """
    size = 2 * case.n
    ring = [(i, (i + 1) % case.n) for i in range(case.n)]

    def left(x: Array) -> Any:
        todos = [
            case.lax.psum_start(x, case.axes),
            case.lax.all_gather_start(x, case.axes, axis=0, tiled=True),
            case.lax.psum_scatter_start(x, case.axes, scatter_dimension=0, tiled=True),
            case.lax.all_to_all_start(x, case.axes, 0, 0, tiled=True),
            case.lax.ppermute_start(x, case.axes, ring),
        ]
        between = x * x
        return [between, *(todo.done() for todo in todos)]

    def right(x: Array) -> Any:
        return [
            x * x,
            case.lax.psum(x, case.axes),
            case.lax.all_gather(x, case.axes, axis=0, tiled=True),
            case.lax.psum_scatter(x, case.axes, scatter_dimension=0, tiled=True),
            case.lax.all_to_all(x, case.axes, 0, 0, tiled=True),
            case.lax.ppermute(x, case.axes, ring),
        ]

    case.check(start_and_done_are_one, left, right, case.blocks(size, 3))


def summands_are_sums(case: Case) -> None:
    """A program with unreduced and reduced values equals the one that adds up at once.

    Source: law 22 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.summands_are_sums(laws.Case({"x": 4}, ("x",)))
    """
    size = 2 * case.n

    def left(x: Array) -> Any:
        parts = case.lax.pcast(x, case.axes, to="unreduced")
        whole = case.lax.pcast(
            case.lax.all_gather_reduced(x, case.axes, axis=0, tiled=True), case.axes, to="varying"
        )
        return (
            case.lax.unreduced_psum(parts + parts, case.axes),
            case.lax.unreduced_psum_scatter(parts, case.axes, scatter_dimension=0, tiled=True),
            whole,
        )

    def right(x: Array) -> Any:
        return (
            case.lax.psum(x, case.axes) + case.lax.psum(x, case.axes),
            case.lax.psum_scatter(x, case.axes, scatter_dimension=0, tiled=True),
            case.lax.all_gather(x, case.axes, axis=0, tiled=True),
        )

    case.check(summands_are_sums, left, right, case.blocks(size, 3))


def axis_of_one_changes_nothing(case: Case) -> None:
    """A collective over an axis of one device is the identity, for other dtypes than bool.

    Source: law 23 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.axis_of_one_changes_nothing(laws.Case({"x": 4}, ("x",)))
    """
    alone = case.changed(sizes={**case.sizes, "one": 1}, axes=("one",))

    def left(x: Array) -> Any:
        return (
            case.lax.psum(x, "one"),
            case.lax.pmax(x, "one"),
            case.lax.all_gather(x, "one", axis=0, tiled=True),
            case.lax.psum_scatter(x, "one", scatter_dimension=0, tiled=True),
            case.lax.all_to_all(x, "one", 0, 1, tiled=True),
            case.lax.ppermute(x, "one", [(0, 0)]),
        )

    def right(x: Array) -> Any:
        return [x] * 6

    alone.check(axis_of_one_changes_nothing, left, right, alone.blocks(2, 3))


def index_is_mixed_radix(case: Case) -> None:
    """axis_index of several axes is the number with those of each as its digits.

    The first is the most significant; the sum of all is n(n - 1) / 2.

    Source: law 24 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.index_is_mixed_radix(laws.Case({"x": 4}, ("x",)))
    """

    def left(x: Array) -> Any:
        index = case.lax.axis_index(case.axes)
        return index, case.lax.psum(index, case.axes)

    def right(x: Array) -> Any:
        number = np.int32(0)
        for axis in case.axes:
            number = number * np.int32(case.sizes[axis]) + case.lax.axis_index(axis)
        return number, np.int32(case.n * (case.n - 1) // 2)

    case.check(index_is_mixed_radix, left, right, case.blocks(1))
