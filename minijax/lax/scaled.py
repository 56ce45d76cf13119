"""Products of arrays of few bits, whose blocks have scales of their own.

"OCP microscaling formats (MX) specification" (2023): numbers of four to eight bits share a scale
with their neighbours along the dimension that a product sums over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from minijax.core.aval import Shape, aval_of
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr
from minijax.interpreters import staging
from minijax.lax.binary import mul
from minijax.lax.compositions import Composed
from minijax.lax.convert import convert_element_type
from minijax.lax.creation import full
from minijax.lax.dots import DotDimensionNumbers, canonicalize_preferred_type, dot_general
from minijax.lax.families import operand
from minijax.lax.shape import broadcast_in_dim, reshape
from minijax.runtime.annotations import ArrayLike, DTypeLike
from minijax.runtime.array import Array

_NAME = "lax.scaled_dot"
_BFLOAT16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
_SCALE: np.dtype[Any] = np.dtype(ml_dtypes.float8_e8m0fnu)


class ScaledDot(Composed):
    """The product of two arrays, each times its scales repeated over blocks.

    Shapes: lhs: L[b, m, k], rhs: R[b, n, k], lhs_scale: S[b, m, k / p], rhs_scale: T[b, n, k / q]
    -> U[b, m, n], each group of dimensions being any number of them at any places.
    """

    name = "scaled_dot"

    def composition(self, avals: Sequence[Any], params: Mapping[str, Any]) -> ClosedJaxpr:
        def product(lhs: Any, rhs: Any, lhs_scale: Any, rhs_scale: Any) -> list[Any]:
            x, y = _scaled(lhs, lhs_scale), _scaled(rhs, rhs_scale)
            return [dot_general(x, y, **params)]

        return staging.stage_closed(product, avals)


scaled_dot_p = ScaledDot()


def _scaled(x: Any, scale: Any) -> Any:
    """bfloat16: an array times its scales."""
    x = convert_element_type(x, _BFLOAT16)
    return mul(x, convert_element_type(_repeated(scale, aval_of(x).shape), _BFLOAT16))


def _repeated(scale: Any, dims: Shape) -> Any:
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
    preferred = canonicalize_preferred_type(preferred_element_type, _NAME)
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
        error(TypeError, _NAME, "operands of this rank need dimension_numbers.", got={"rank": rank})
    batch = (0,) * (rank - 2)
    return ((rank - 1,), (rank - 2,)), (batch, batch)


def _check_scale(name: str, x: Any, scale: Any, contracting: Sequence[int]) -> None:
    got = {name: x, f"{name}_scale": scale}
    if x.ndim != scale.ndim:
        error(TypeError, _NAME, "an operand and its scale differ in rank.", got=got)
    for dim, (size, count) in enumerate(zip(x.shape, scale.shape, strict=True)):
        if dim not in contracting and size != count:
            problem = f"sizes of dimension {dim} differ, over which the product does not sum."
        elif count == 0 or size % count:
            problem = f"the scales of dimension {dim} do not divide it into blocks."
        elif dim in contracting and size < 2 * count:
            problem = f"blocks of dimension {dim} must have two elements at least."
        else:
            continue
        error(TypeError, _NAME, problem, got=got)
