"""Maps and parallel scans: `map` and `associative_scan`, made of other operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from minijax.core import tree
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.interpreters import batching, flattening
from minijax.interpreters.structural import to_batch_dim
from minijax.lax import shape, slicing
from minijax.lax.binary import add, bitwise_or
from minijax.lax.control_flow import bodies, scanning
from minijax.lax.families import canonicalize_axis, scalar_like
from minijax.lax.families import operand as as_operand
from minijax.lax.padding import pad
from minijax.lowering import eager

R = TypeVar("R")


def _map_step(function: Callable[[], Any]) -> Callable[..., Any]:
    def step(carry: tuple[()], x: Any) -> Any:
        return carry, function()(x)

    return step


def _batched_step(function: Callable[[], Any]) -> Callable[..., Any]:
    def step(carry: tuple[()], x: Any) -> Any:
        return carry, _over_batch(function(), x)

    return step


def _over_batch(function: Callable[[Any], Any], xs: Any) -> Any:
    """`function` applied to all slices of `xs` at once."""
    leaves, xs_tree = tree.flatten(xs)
    size = aval_of(leaves[0]).shape[0]
    flat = flattening.FlatFunction(
        function, bodies.call_tree(tree.treedef_tuple((xs_tree,))), "map"
    )
    outs, dims = batching.batch_flat(flat, size, leaves, [0] * len(leaves))
    placed = [to_batch_dim(x, d, 0, size) for x, d in zip(outs, dims, strict=True)]
    return tree.unflatten(flat.out_tree, placed)


def map(f: Callable[[Any], R], xs: Any, *, batch_size: int | None = None) -> R:
    """The results of `f` on each slice of `xs`, stacked; one slice after the other.

    Shapes:     xs: a tree of T_i[n, s_i] -> a tree of U_i[n, u_i].
    Derivative: that of scan.
    Lowers to:  stablehlo.while.
    Source:     mirrors jax.lax.map (0.10).

    Args:
        f: a function of one slice.
        xs: a tree of arrays, mapped over their first dimension.
        batch_size: how many slices to compute at once, as vmap does; None or 0 for one by one.

    Raises:
        ValueError: xs has no leaves, sizes disagree, or the batch size is not positive.

    Example:
        >>> lax.map(lambda x: x * x, jnp.arange(4))
        Array([0, 1, 4, 9], dtype=int32)
        >>> lax.map(lambda x: x * x, jnp.arange(4), batch_size=2)
        Array([0, 1, 4, 9], dtype=int32)
    """
    name = "lax.map"
    naming = bodies.Naming(name, "f", "init")
    eager.check_callable(name, f)
    leaves, xs_tree, avals = bodies.flatten_values(name, "xs", xs)
    length = scanning.scan_length(name, xs_tree, avals, None)
    if not batch_size:
        step = bodies.wrapped_once(_map_step, f)
        return scanning.scan_named(naming, step, (), xs, described=f)[1]
    if batch_size < 1:
        error(ValueError, name, "batch_size must be positive.", got=str(batch_size))
    count, rest = divmod(length, batch_size)
    whole = count * batch_size
    results = []
    if count:
        blocks = [
            shape.reshape(
                slicing.slice_in_dim(x, 0, whole) if rest else x,
                (count, batch_size, *aval.shape[1:]),
            )
            for x, aval in zip(leaves, avals, strict=True)
        ]
        step = bodies.wrapped_once(_batched_step, f)
        _, stacked = scanning.scan_named(
            naming, step, (), tree.unflatten(xs_tree, blocks), described=f
        )
        results.append(tree.map(_merged, stacked))
    if rest or not count:
        last = [slicing.slice_in_dim(x, whole, length) if count else x for x in leaves]
        results.append(_over_batch(f, tree.unflatten(xs_tree, last)))
    return tree.map(_joined, *results)


def _merged(x: Any) -> Any:
    """The first two dimensions as one."""
    dims = aval_of(x).shape
    return shape.reshape(x, (dims[0] * dims[1], *dims[2:]))


def _joined(*parts: Any) -> Any:
    return shape.concatenate(parts, 0) if len(parts) > 1 else parts[0]


def associative_scan(
    fn: Callable[[Any, Any], R], elems: Any, reverse: bool = False, axis: int = 0
) -> R:
    """Prefix sums for any associative `fn`, in logarithmic depth.

    Element i of the result is fn(… fn(fn(elems[0], elems[1]), elems[2]) …, elems[i]).

    Shapes:     elems: a tree of T_i[s_i] of one size n along `axis` -> the same.
    Derivative: that of `fn`.
    Lowers to:  slices, `fn` on them, and interleaving; no loop.
    Source:     mirrors jax.lax.associative_scan (0.10); Blelloch, "Prefix Sums and Their
        Applications" (1990).

    Args:
        fn: an associative function of two trees, applied to many elements at once.
        elems: a tree of arrays.
        reverse: whether to go from the last element to the first.
        axis: the dimension of the elements.

    Raises:
        TypeError: `fn` cannot be called.
        ValueError: sizes along the axis disagree, or the axis does not exist, or `fn` returns
            another structure than `elems`.

    Example:
        >>> lax.associative_scan(jnp.add, jnp.array([1, 2, 3, 4]))
        Array([ 1,  3,  6, 10], dtype=int32)
        >>> lax.associative_scan(jnp.maximum, jnp.array([1, 4, 2, 3]), reverse=True)
        Array([4, 4, 3, 3], dtype=int32)
    """
    name = "lax.associative_scan"
    eager.check_callable(name, fn)
    leaves, elems_tree, avals = bodies.flatten_values(name, "elems", elems)
    if not leaves:
        return elems
    axes = [canonicalize_axis(axis, a.ndim, name) for a in avals]
    sizes = {a.shape[d] for a, d in zip(avals, axes, strict=True)}
    if len(sizes) > 1:
        error(
            ValueError,
            name,
            "the sizes of elems along the axis disagree.",
            got=", ".join(a.str_short() for a in avals) + f"   axis: {axis}",
        )
    if reverse:
        leaves = [shape.rev(x, (d,)) for x, d in zip(leaves, axes, strict=True)]

    def combine(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        out = fn(tree.unflatten(elems_tree, a), tree.unflatten(elems_tree, b))
        flat, out_tree = tree.flatten(out)
        if out_tree.num_leaves != elems_tree.num_leaves:
            error(
                ValueError,
                name,
                "fn returns another structure than elems.",
                got=str(out_tree),
                expected=str(elems_tree),
            )
        return flat

    outs = _prefixes(combine, [as_operand(x) for x in leaves], axes)
    if reverse:
        outs = [shape.rev(x, (d,)) for x, d in zip(outs, axes, strict=True)]
    return tree.unflatten(elems_tree, outs)


def _prefixes(
    combine: Callable[[Sequence[Any], Sequence[Any]], list[Any]],
    elems: Sequence[Any],
    axes: Sequence[int],
) -> list[Any]:
    """Prefix sums of flat elements: pairs are summed, their prefixes found, and filled in."""
    size = aval_of(elems[0]).shape[axes[0]]
    if size < 2:
        return list(elems)

    def part(xs: Sequence[Any], start: int, stop: int, stride: int = 1) -> list[Any]:
        return [
            slicing.slice_in_dim(x, start, stop, stride=stride, axis=d)
            for x, d in zip(xs, axes, strict=True)
        ]

    pairs = combine(part(elems, 0, size - 1, 2), part(elems, 1, size, 2))
    odd = _prefixes(combine, pairs, axes)
    num_odd = size // 2
    before = part(odd, 0, num_odd - 1) if size % 2 == 0 else odd
    even = combine(before, part(elems, 2, size, 2))
    even = [
        shape.concatenate([first, x], d)
        for first, x, d in zip(part(elems, 0, 1), even, axes, strict=True)
    ]
    return [_interleaved(a, b, d) for a, b, d in zip(even, odd, axes, strict=True)]


def _interleaved(even: Any, odd: Any, axis: int) -> Any:
    """Elements of two arrays in turn; the first may have one more."""
    first, second = aval_of(even), aval_of(odd)
    longer = int(first.shape[axis] > second.shape[axis])
    zero = scalar_like(0, even) if first.dtype != bool else False

    def spread(x: Any, before: int, after: int) -> Any:
        config = [(0, 0, 0)] * first.ndim
        config[axis] = (before, after, 1)
        return pad(x, zero, config)

    a, b = spread(even, 0, 1 - longer), spread(odd, 1, longer)
    return bitwise_or(a, b) if first.dtype == bool else add(a, b)
