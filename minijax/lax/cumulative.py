"""Cumulative sums, products, extrema and log-sum-exps.

An array is cut into short blocks.  Reductions over windows as long as a block find the results
within blocks; the same over the blocks' totals finds what each block starts from.  On a CPU this
is two to seven times as fast as one reduction over windows as long as the array.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from minijax.core import vma
from minijax.core.aval import ShapedArray
from minijax.core.errors import error
from minijax.core.meshes import PartitionSpec
from minijax.core.primitive import Primitive
from minijax.interpreters.jvp import Zero, jvp_flat
from minijax.interpreters.structural import broadcast_in_dim, full, instantiate
from minijax.lax.binary import add, div, max, min, mul, ne, sub
from minijax.lax.choice import select
from minijax.lax.families import INEXACT, NUMERIC, Kinds, check_dtype
from minijax.lax.families import operand as as_operand
from minijax.lax.padding import pad
from minijax.lax.reduction import Identity, highest, lowest, one, scan, zero
from minijax.lax.shape import reshape, rev, split
from minijax.lax.unary import ceil, complex, exp, imag, log1p, real
from minijax.lax.window_reduction import reduce_window
from minijax.lowering.module import lower_function
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.sharding import rules

# The fastest of 8, 16, 32 and 64 on a CPU, for vectors as for matrices.
_BLOCK = 8


class Cumulative(Primitive):
    """Combines each element with all before it along `axis`, or after it where `reverse`.

    Shapes: operand: T[s] -> T[s].

    Args:
        name: the primitive's name.
        combine: the function of `lax` that combines two elements.
        identity: the result of combining nothing.
        accepts: kinds of dtypes it takes.
        linear: whether the operation is linear.
    """

    def __init__(
        self,
        name: str,
        combine: Callable[[Any, Any], Any],
        identity: Identity,
        *,
        accepts: Kinds = NUMERIC,
        linear: bool = False,
    ) -> None:
        super().__init__(name)
        self.combine = combine
        self.identity = identity
        self.accepts = accepts
        self.linear = linear

    def abstract_eval(self, x: ShapedArray, *, axis: int, reverse: bool) -> ShapedArray:
        check_dtype(self.name, "operand", x, self.accepts)
        if not 0 <= axis < x.ndim:
            error(
                ValueError,
                f"lax.{self.name}",
                f"axis {axis} is out of range.",
                got={"operand": x},
                expected=f"an axis from 0 to {x.ndim - 1}",
            )
        return x

    def shard(
        self, avals: Sequence[Any], outs: Sequence[Any], *, axis: int, reverse: bool
    ) -> PartitionSpec:
        rules.check_unsharded(self, avals, (axis,))
        return rules.spec_of(avals[0])

    def lower(self, ctx: Any, x: Any, *, axis: int, reverse: bool) -> Any:
        if ctx.avals_in[0].size == 0:
            return x
        return lower_function(ctx, lambda x: [self._in_blocks(x, axis, reverse)], x)[0]

    def _in_blocks(self, x: Any, axis: int, reverse: bool) -> Any:
        shape = x.shape
        length = shape[axis]
        if length <= _BLOCK:
            return self._over_windows(x, axis, reverse)
        blocks = -(-length // _BLOCK)
        missing = blocks * _BLOCK - length
        edges = [(0, 0, 0)] * len(shape)
        edges[axis] = (missing, 0, 0) if reverse else (0, missing, 0)
        identity = self.identity(x.dtype)
        before, after = shape[:axis], shape[axis + 1 :]
        cut = reshape(pad(x, identity, edges), (*before, blocks, _BLOCK, *after))
        inside = self._over_windows(cut, axis + 1, reverse)
        # The total of a block is where its results end; a block starts from the one before.
        last = 0 if reverse else _BLOCK - 1
        total = split(inside, (last, 1, _BLOCK - 1 - last), axis + 1)[1]
        totals = self._in_blocks(reshape(total, (*before, blocks, *after)), axis, reverse)
        edges[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
        start = pad(totals, identity, edges)
        kept = [d for d in range(len(shape) + 1) if d != axis + 1]
        whole = self.combine(broadcast_in_dim(start, inside.shape, kept), inside)
        whole = reshape(whole, (*before, blocks * _BLOCK, *after))
        edges[axis] = (-missing, 0, 0) if reverse else (0, -missing, 0)
        return pad(whole, identity, edges)

    def _over_windows(self, x: Any, axis: int, reverse: bool) -> Any:
        rank, length = x.ndim, x.shape[axis]
        window, padding = [1] * rank, [(0, 0)] * rank
        window[axis] = length
        padding[axis] = (0, length - 1) if reverse else (length - 1, 0)
        return reduce_window(x, self.identity(x.dtype), self.combine, tuple(window), None, padding)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, axis: int, reverse: bool
    ) -> tuple[Any, Any]:
        (x,), (x_dot,) = primals, tangents
        out = self.bind(x, axis=axis, reverse=reverse)
        if type(x_dot) is Zero:
            return out, Zero.like(out)
        if self.linear:
            return out, self.bind(x_dot, axis=axis, reverse=reverse)

        def composed(x: Any) -> list[Any]:
            x = rev(x, (axis,)) if reverse else x
            (y,) = scan(lambda a, b: [self.combine(a, b)], [x], axis)
            return [rev(y, (axis,)) if reverse else y]

        _, (out_dot,) = jvp_flat(composed, [x], [x_dot])
        return out, instantiate(out_dot)

    def transpose(self, ct: Any, x: Any, *, axis: int, reverse: bool) -> tuple[Any]:
        if not self.linear:
            self._missing("transposition: it is not linear (transpose)")
        return (self.bind(ct, axis=axis, reverse=not reverse),)

    def batch(
        self,
        size: int,
        args: Sequence[Any],
        dims: Sequence[Any],
        *,
        axis: int,
        reverse: bool,
    ) -> tuple[Any, int]:
        dim = dims[0]
        return self.bind(args[0], axis=axis + (axis >= dim), reverse=reverse), dim


def _logaddexp(x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y)) without overflow."""
    larger = max(x, y)
    difference = sub(min(x, y), larger)
    # Of equal infinities the difference is undefined; any finite one gives the right sum.
    undefined = ne(difference, difference)
    difference = select(undefined, full(difference.shape, 0, difference.dtype), difference)
    return add(larger, log1p(exp(difference)))


cumsum_p = Cumulative("cumsum", add, zero, linear=True)
vma.linear_in.set(((0,),), cumsum_p)
cumprod_p = Cumulative("cumprod", mul, one)
cummax_p = Cumulative("cummax", max, lowest)
cummin_p = Cumulative("cummin", min, highest)
cumlogsumexp_p = Cumulative("cumlogsumexp", _logaddexp, lowest, accepts=INEXACT)


def _accumulated(primitive: Cumulative, operand: Any, axis: int, reverse: bool) -> Any:
    x = as_operand(operand)
    return primitive.bind(x, axis=operator.index(axis), reverse=bool(reverse))


def cumsum(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The sums of the elements up to each one along `axis`; from each one on where `reverse`.

    Shapes:     operand: T[s] -> T[s].
    Dtypes:     numeric.
    Derivative: transposes to the sum in the other direction.
    Lowers to:  stablehlo.reduce_window over blocks.
    Source:     mirrors jax.lax.cumsum.

    Raises:
        ValueError: the axis is out of range.
        TypeError: the dtype is not numeric.

    Example:
        >>> lax.cumsum(jnp.array([1, 2, 3]))
        Array([1, 3, 6], dtype=int32)
        >>> lax.cumsum(jnp.array([1, 2, 3]), reverse=True)
        Array([6, 5, 3], dtype=int32)
    """
    return _accumulated(cumsum_p, operand, axis, reverse)


def cumprod(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The products of the elements up to each one along `axis`; from each on where `reverse`.

    Shapes:     operand: T[s] -> T[s].
    Dtypes:     numeric.
    Derivative: exact also where elements are zero.
    Lowers to:  stablehlo.reduce_window over blocks.
    Source:     mirrors jax.lax.cumprod.

    Raises:
        ValueError: the axis is out of range.
        TypeError: the dtype is not numeric.

    Example:
        >>> lax.cumprod(jnp.array([[1, 2], [3, 4]]), axis=1)
        Array([[ 1,  2],
               [ 3, 12]], dtype=int32)
    """
    return _accumulated(cumprod_p, operand, axis, reverse)


def cummax(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The maxima of the elements up to each one along `axis`; from each on where `reverse`.

    Shapes:     operand: T[s] -> T[s].
    Dtypes:     numeric.
    Derivative: equal elements share it.
    Lowers to:  stablehlo.reduce_window over blocks.
    Source:     mirrors jax.lax.cummax.

    Raises:
        ValueError: the axis is out of range.
        TypeError: the dtype is not numeric.

    Example:
        >>> lax.cummax(jnp.array([1, 5, 3, 7]))
        Array([1, 5, 5, 7], dtype=int32)
    """
    return _accumulated(cummax_p, operand, axis, reverse)


def cummin(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The minima of the elements up to each one along `axis`; from each on where `reverse`.

    Shapes:     operand: T[s] -> T[s].
    Dtypes:     numeric.
    Derivative: equal elements share it.
    Lowers to:  stablehlo.reduce_window over blocks.
    Source:     mirrors jax.lax.cummin.

    Raises:
        ValueError: the axis is out of range.
        TypeError: the dtype is not numeric.

    Example:
        >>> lax.cummin(jnp.array([5, 7, 3, 4]))
        Array([5, 5, 3, 3], dtype=int32)
    """
    return _accumulated(cummin_p, operand, axis, reverse)


def cumlogsumexp(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Log of the cumulative sums of exp, without overflow.

    Shapes:     operand: T[s] -> T[s].
    Dtypes:     inexact.
    Derivative: the softmax of the elements up to each one.
    Lowers to:  stablehlo.reduce_window over blocks.
    Source:     mirrors jax.lax.cumlogsumexp.

    Raises:
        ValueError: the axis is out of range.
        TypeError: the dtype is not inexact.

    Example:
        >>> lax.cumlogsumexp(jnp.array([1000.0, 0.0]))
        Array([1000., 1000.], dtype=float32)
    """
    out = _accumulated(cumlogsumexp_p, operand, axis, reverse)
    return _principal(out) if out.dtype.kind == "c" else out


def _principal(x: Any) -> Any:
    """The logarithm of the same number whose imaginary part, an angle, lies in (-π, π]."""
    angle = imag(x)
    turns = ceil(div(sub(angle, math.pi), 2 * math.pi))
    return complex(real(x), sub(angle, mul(turns, 2 * math.pi)))
