"""Ragged and scaled matrix products: `ragged_dot`, `ragged_dot_general` and `scaled_dot`.

In a ragged product the rows of an array belong to groups, and each group is multiplied by a matrix
of its own.  Rows of a group are next to each other; how many there are is known when the program
runs.  The composition here masks one operand for each group: it takes as much memory and as many
products as there are groups.

In a scaled product the operands have few bits, and blocks of elements have scales of their own: as
in "OCP microscaling formats (MX) specification" (2023), numbers of four to eight bits share a scale
with their neighbours along the dimension that the product sums over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from minijax.core import dtypes, vma
from minijax.core.aval import AbstractValue, Shape, aval_of
from minijax.core.errors import error, message
from minijax.core.jaxpr import ClosedJaxpr
from minijax.interpreters import staging
from minijax.interpreters.structural import moveaxis
from minijax.lax import dots
from minijax.lax.binary import bitwise_and, le, lt, mul, select, sub
from minijax.lax.creation import broadcasted_iota, convert_element_type, full, full_like
from minijax.lax.dots import DotDimensionNumbers
from minijax.lax.families import Avals, Params, jvp_of_product, operand
from minijax.lax.foreign import Composed
from minijax.lax.shape import broadcast_in_dim, reshape
from minijax.lax.window_reduction import cumsum
from minijax.runtime.annotations import ArrayLike, DTypeLike, ShardingLike
from minijax.runtime.array import Array
from minijax.sharding import rules

_RAGGED_DOT = "lax.ragged_dot_general"


@dataclass(frozen=True, slots=True)
class RaggedDotDimensionNumbers:
    """Which dimensions a ragged product multiplies, sums over, and finds groups along.

    Attributes:
        dot_dimension_numbers: `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`.
        lhs_ragged_dimensions: the one dimension of the left operand that is cut into groups.
        rhs_group_dimensions: the dimension of the right operand that has an entry for each group,
            if the ragged one stays in the result.

    Example:
        >>> numbers = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
        >>> numbers.lhs_ragged_dimensions
        (0,)
    """

    dot_dimension_numbers: Any
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]

    def __post_init__(self) -> None:
        contracting, batch = (
            tuple(tuple(map(int, dims)) for dims in pair) for pair in self.dot_dimension_numbers
        )
        object.__setattr__(self, "dot_dimension_numbers", (contracting, batch))
        for name in ("lhs_ragged_dimensions", "rhs_group_dimensions"):
            object.__setattr__(self, name, tuple(map(int, getattr(self, name))))


class _Plan(NamedTuple):
    """How a ragged product is computed.

    Attributes:
        numbers: of the product without regard to groups.
        ragged: the ragged dimension of the left operand.
        group: the dimension of groups of the right operand; None if it has none.
        prefix: dimensions of the left operand whose every place may have groups of its own.
    """

    numbers: Any
    ragged: int
    group: int | None
    prefix: tuple[int, ...]

    @property
    def keeps_batch(self) -> bool:
        """Whether the ragged dimension is one of the batch: all groups are treated alike."""
        return self.ragged in self.numbers[1][0]

    @property
    def sums(self) -> bool:
        """Whether the product sums over the ragged dimension, for each group by itself."""
        return self.ragged in self.numbers[0][0]


class RaggedDotGeneral(Composed):
    """Multiplies and sums as `dot_general`, with the ragged dimension in groups.

    Shapes: lhs: L[b, m, k], rhs: R[b, g, k, n], sizes: int[g] -> T[b, m, n] with m ragged;
    lhs: L[b, m, k], rhs: R[b, k, n], sizes: int[g] -> T[g, b, m, n] with k ragged.
    Linear in lhs and rhs.
    """

    name = "ragged_dot_general"
    jvp = jvp_of_product

    def __init__(self) -> None:
        super().__init__()
        self._compositions: dict[Any, ClosedJaxpr] = {}

    def composition(self, avals: Avals, params: Params) -> ClosedJaxpr:
        key = (*avals, *params.values())
        found = self._compositions.get(key)
        if found is None:
            lhs, rhs, sizes = avals
            plan = _plan(lhs, rhs, sizes, params["ragged_dot_dimension_numbers"])
            options = {
                name: params[name]
                for name in ("precision", "preferred_element_type", "out_sharding")
            }
            found = self._compositions[key] = staging.stage_closed(
                lambda lhs, rhs, sizes: [_product(plan, lhs, rhs, sizes, options)], avals
            )
        return found


vma.linear_in.set(((0,), (1,)), RaggedDotGeneral)
rules.sharding_param.set("out_sharding", RaggedDotGeneral)


ragged_dot_general_p = RaggedDotGeneral()


def _product(plan: _Plan, lhs: Array, rhs: Array, sizes: object, options: Params) -> Any:
    if plan.keeps_batch:
        return dots.dot_general(lhs, rhs, plan.numbers, **options)
    masked = _one_group_each(plan, lhs, sizes)
    (x_sum, y_sum), (x_batch, y_batch) = plan.numbers
    x_sum, x_batch = (tuple(d + 1 for d in dims) for dims in (x_sum, x_batch))
    if plan.group is not None:
        # A row is not zero for one group only, so a sum over groups picks its matrix.
        numbers = ((0, *x_sum), (plan.group, *y_sum)), (x_batch, y_batch)
        return dots.dot_general(masked, rhs, numbers, **options)
    count, sharding = len(x_batch), options["out_sharding"]
    if sharding is not None:
        rank = 1 + aval_of(lhs).ndim + aval_of(rhs).ndim - 2 * len(x_sum) - count
        places = (*range(1, count + 1), 0, *range(count + 1, rank))
        sharding = sharding.with_spec(rules.permuted(sharding.spec.padded(rank), places))
    out = dots.dot_general(
        masked, rhs, ((x_sum, y_sum), (x_batch, y_batch)), **{**options, "out_sharding": sharding}
    )
    return moveaxis(out, count, 0)


def _one_group_each(plan: _Plan, lhs: Array, sizes: Any) -> Any:
    """T[g, lhs]: the left operand, with all but the rows of one group replaced by 0."""
    aval = aval_of(lhs)
    dims = (aval_of(sizes).shape[-1], *aval.shape)
    place = broadcasted_iota(aval_of(sizes).dtype, dims, plan.ragged + 1)
    ends = cumsum(sizes, aval_of(sizes).ndim - 1)
    places = (*(d + 1 for d in plan.prefix[: aval_of(sizes).ndim - 1]), 0)
    order = sorted(range(len(places)), key=places.__getitem__)

    def spread(x: Array) -> Any:
        x = moveaxis(x, len(places) - 1, 0) if len(places) > 1 else x
        return broadcast_in_dim(x, dims, [places[i] for i in order])

    inside = bitwise_and(le(spread(sub(ends, sizes)), place), lt(place, spread(ends)))
    repeated = broadcast_in_dim(lhs, dims, range(1, len(dims)))
    return select(inside, repeated, full_like(repeated, 0))


def _plan(
    lhs: AbstractValue, rhs: AbstractValue, sizes: AbstractValue, numbers: RaggedDotDimensionNumbers
) -> _Plan:
    """The dimensions of a ragged product.

    Raises:
        TypeError: they do not fit the operands.
    """
    (x_sum, y_sum), (x_batch, y_batch) = numbers.dot_dimension_numbers
    ragged, groups = numbers.lhs_ragged_dimensions, numbers.rhs_group_dimensions
    if len(ragged) != 1 or not 0 <= ragged[0] < lhs.ndim:
        raise _error("one dimension of lhs must be ragged.", lhs=lhs, ragged=ragged)
    (dim,) = ragged
    kept = [d for d in range(lhs.ndim) if d not in (*x_sum, *x_batch)]
    stays = dim in kept
    if len(groups) != stays:
        problem = (
            "where the ragged dimension stays, rhs needs one dimension of groups."
            if stays
            else "where the ragged dimension is summed over, or of the batch, rhs has no groups."
        )
        raise _error(problem, lhs=lhs, rhs=rhs, groups=groups)
    if stays and (not 0 <= groups[0] < rhs.ndim or groups[0] in (*y_sum, *y_batch)):
        raise _error("the dimension of groups must be one that rhs keeps.", rhs=rhs, groups=groups)
    _check_pairs(lhs, rhs, (*x_sum, *x_batch), (*y_sum, *y_batch))
    family = next(dims for dims in (x_batch, x_sum, kept) if dim in dims)
    before = tuple(family[: list(family).index(dim)])
    prefix = before if family is x_batch else (*x_batch, *before)
    _check_sizes(lhs, rhs, sizes, prefix, groups)
    return _Plan(numbers.dot_dimension_numbers, dim, groups[0] if stays else None, prefix)


def _check_pairs(
    lhs: AbstractValue, rhs: AbstractValue, of_lhs: Sequence[int], of_rhs: Sequence[int]
) -> None:
    pairs = list(zip(of_lhs, of_rhs, strict=False))
    exist = all(0 <= x < lhs.ndim and 0 <= y < rhs.ndim for x, y in pairs)
    if len(of_lhs) != len(of_rhs) or not exist:
        raise _error("there are no such pairs of dimensions.", lhs=lhs, rhs=rhs, pairs=pairs)
    if any(lhs.shape[x] != rhs.shape[y] for x, y in pairs):
        raise _error("the sizes of paired dimensions differ.", lhs=lhs, rhs=rhs, pairs=pairs)


def _check_sizes(
    lhs: AbstractValue,
    rhs: AbstractValue,
    sizes: AbstractValue,
    prefix: Sequence[int],
    groups: Sequence[int],
) -> None:
    if not dtypes.issubdtype(sizes.dtype, np.integer):
        raise _error("the sizes of groups must be integers.", group_sizes=sizes)
    count = sizes.shape[-1:]
    wanted = tuple(lhs.shape[d] for d in prefix) if sizes.ndim != 1 else ()
    if not count or sizes.shape != (*wanted, *count):
        raise _error(
            "the sizes of groups have a wrong shape.",
            group_sizes=sizes,
            lhs=lhs,
            expected_shape=(*(lhs.shape[d] for d in prefix), "groups"),
        )
    if groups and rhs.shape[groups[0]] != count[0]:
        raise _error("there must be as many groups in rhs as sizes.", rhs=rhs, group_sizes=sizes)


def _error(problem: str, **facts: Any) -> TypeError:
    return TypeError(message(_RAGGED_DOT, problem, got=facts))


def ragged_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: object = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Products of groups of rows, each with a matrix of its own.

    The ragged dimension of `lhs` is one that stays: row i of the result is row i of `lhs` times the
    matrix of its group, or 0 for rows behind the last group.  Or it is summed over: the result has
    a leading dimension of groups.  Or it is one of the batch, where groups make no difference.

    Shapes:     lhs: L[b, m, k], rhs: R[b, g, k, n] -> T[b, m, n] with m ragged;
                lhs: L[b, m, k], rhs: R[b, k, n] -> T[g, b, m, n] with k ragged.
    Dtypes:     numeric, of the operands; integers of the sizes.
    Derivative: by both operands; transposes to itself.
    Lowers to:  stablehlo.dot_general of masked operands.

    Args:
        lhs: the rows.
        rhs: the matrices.
        group_sizes: how many rows each group has: int[g], or with dimensions before, those of
            the batch and what precedes the ragged dimension.
        ragged_dot_dimension_numbers: which dimensions are which.
        precision: of the products.
        preferred_element_type: of the result.
        group_offset: of groups on another device; not built.
        out_sharding: how the result is split over a mesh.

    Raises:
        NotImplementedError: `group_offset` is given.
        TypeError: the dimension numbers do not fit the operands.

    Example:
        >>> numbers = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
        >>> x = jnp.arange(3.0).reshape(3, 1)
        >>> lax.ragged_dot_general(x, x, jnp.array([2, 1]), numbers).ravel()
        Array([1., 4.], dtype=float32)
    """
    if group_offset is not None:
        problem = "group_offset is not built."
        error(NotImplementedError, _RAGGED_DOT, problem, got={"group_offset": repr(group_offset)})
    lhs, rhs, sizes = (operand(x) for x in (lhs, rhs, group_sizes))
    return ragged_dot_general_p.bind(
        lhs,
        rhs,
        sizes,
        ragged_dot_dimension_numbers=ragged_dot_dimension_numbers,
        precision=dots.canonicalize_precision(precision, _RAGGED_DOT),
        preferred_element_type=dots.canonicalize_preferred_type(
            preferred_element_type, _RAGGED_DOT
        ),
        group_offset=None,
        out_sharding=rules.resolve(out_sharding, _RAGGED_DOT),
    )


def ragged_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: object = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Each row of `lhs` times the matrix of its group: rows of a group are next to each other.

    Shapes:     lhs: L[m, k], rhs: R[g, k, n], group_sizes: int[g] -> T[m, n].
    Dtypes:     numeric, of the operands.
    Derivative: by both operands.
    Lowers to:  stablehlo.dot_general of a masked operand.
    Source:     mirrors jax.lax.ragged_dot (0.10); of use for mixtures of experts.

    Raises:
        NotImplementedError: `group_offset` is given.
        TypeError: the shapes do not fit.

    Example:
        >>> matrices = jnp.array([[[1.0]], [[10.0]]])
        >>> lax.ragged_dot(jnp.ones((3, 1)), matrices, jnp.array([1, 2])).ravel()
        Array([ 1., 10., 10.], dtype=float32)
    """
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    return ragged_dot_general(
        lhs,
        rhs,
        group_sizes,
        numbers,
        precision,
        preferred_element_type,
        group_offset,
        out_sharding,
    )


_SCALED_DOT = "lax.scaled_dot"
_BFLOAT16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
_SCALE: np.dtype[Any] = np.dtype(ml_dtypes.float8_e8m0fnu)


class ScaledDot(Composed):
    """The product of two arrays, each times its scales repeated over blocks.

    Shapes: lhs: L[b, m, k], rhs: R[b, n, k], lhs_scale: S[b, m, k / p], rhs_scale: T[b, n, k / q]
    -> U[b, m, n], each group of dimensions being any number of them at any places.
    """

    name = "scaled_dot"

    def composition(self, avals: Avals, params: Params) -> ClosedJaxpr:
        def product(lhs: Array, rhs: Array, lhs_scale: Array, rhs_scale: Array) -> list[Any]:
            x, y = _scaled(lhs, lhs_scale), _scaled(rhs, rhs_scale)
            return [dots.dot_general(x, y, **params)]

        return staging.stage_closed(product, avals)


scaled_dot_p = ScaledDot()


def _scaled(x: Array, scale: Array) -> Any:
    """bfloat16: an array times its scales."""
    x = convert_element_type(x, _BFLOAT16)
    return mul(x, convert_element_type(_repeated(scale, aval_of(x).shape), _BFLOAT16))


def _repeated(scale: Array, dims: Shape) -> Any:
    """Scales, each repeated over its block."""
    own = aval_of(scale).shape
    blocks: list[int] = []
    places = []
    for size, count in zip(dims, own, strict=True):
        places.append(len(blocks))
        blocks += [size] if size == count else [count, size // count]
    return reshape(broadcast_in_dim(scale, tuple(blocks), places), dims)


def scaled_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    lhs_scale: ArrayLike | None = None,
    rhs_scale: ArrayLike | None = None,
    dimension_numbers: DotDimensionNumbers | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The product of two arrays that are scaled block by block along the contracting dimensions.

    Shapes:     lhs: L[m, k], rhs: R[k, n] -> U[m, n], or as `dimension_numbers` say; a scale has
                the shape of its operand, with contracting dimensions divided by the size of blocks.
    Dtypes:     any; operands and scales are computed with as bfloat16, which is also the dtype of
                the result where none is preferred.
    Derivative: by all four.
    Lowers to:  stablehlo.dot_general of scaled operands.
    Source:     mirrors jax.lax.scaled_dot (0.10); "OCP microscaling formats (MX) specification".

    Args:
        lhs: the left operand.
        rhs: the right operand.
        lhs_scale: scales of the left operand; 1 where None.
        rhs_scale: scales of the right operand; 1 where None.
        dimension_numbers: `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`; by
            default the product of matrices, or of batches of them.
        preferred_element_type: of the result.

    Raises:
        TypeError: the shapes do not fit.

    Example:
        >>> x, scale = jnp.ones((1, 4)), jnp.array([[2.0, 3.0]])
        >>> lax.scaled_dot(x, x.T, lhs_scale=scale)
        Array([[10]], dtype=bfloat16)
    """
    lhs, rhs = operand(lhs), operand(rhs)
    numbers = _numbers(aval_of(lhs).ndim) if dimension_numbers is None else dimension_numbers
    contracting, batch = (tuple(tuple(int(d) for d in dims) for dims in pair) for pair in numbers)
    scales = []
    for name, x, scale, dims in (
        ("lhs", lhs, lhs_scale, contracting[0]),
        ("rhs", rhs, rhs_scale, contracting[1]),
    ):
        shape = aval_of(x).shape
        if scale is None:
            ones = tuple(1 if d in dims else n for d, n in enumerate(shape))
            scale = full(ones, 1, _SCALE)  # noqa: PLW2901  the argument's default
        _check_scale(name, aval_of(x), aval_of(scale), dims)
        scales.append(operand(scale))
    preferred = dots.canonicalize_preferred_type(preferred_element_type, _SCALED_DOT)
    return scaled_dot_p.bind(
        lhs,
        rhs,
        *scales,
        dimension_numbers=(contracting, batch),
        preferred_element_type=_BFLOAT16 if preferred is None else preferred,
    )


def _numbers(rank: int) -> DotDimensionNumbers:
    """Those of a product of matrices, or of batches of them.

    Raises:
        TypeError: the operands are neither.
    """
    if rank not in (2, 3):
        problem = "operands of this rank need dimension_numbers."
        error(TypeError, _SCALED_DOT, problem, got={"rank": rank})
    batch = (0,) * (rank - 2)
    return ((rank - 1,), (rank - 2,)), (batch, batch)


def _check_scale(
    name: str, x: AbstractValue, scale: AbstractValue, contracting: Sequence[int]
) -> None:
    got = {name: x, f"{name}_scale": scale}
    if x.ndim != scale.ndim:
        error(TypeError, _SCALED_DOT, "an operand and its scale differ in rank.", got=got)
    for dim, (size, count) in enumerate(zip(x.shape, scale.shape, strict=True)):
        if dim not in contracting and size != count:
            problem = f"sizes of dimension {dim} differ, over which the product does not sum."
        elif count == 0 or size % count:
            problem = f"the scales of dimension {dim} do not divide it into blocks."
        elif dim in contracting and size < 2 * count:
            problem = f"blocks of dimension {dim} must have two elements at least."
        else:
            continue
        error(TypeError, _SCALED_DOT, problem, got=got)
