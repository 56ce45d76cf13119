"""How variables vary together: covariances and coefficients of correlation."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.lax import binary, power, shape, unary
from minijax.lax.convert import convert_to_type
from minijax.numpy import contraction, matrices, reductions, shaping
from minijax.numpy.arithmetic import is_kind
from minijax.numpy.elementary import conjugate, real
from minijax.numpy.joining import concatenate
from minijax.numpy.one_program import one_program
from minijax.numpy.promotion import check_array, inexact
from minijax.numpy.statistics import average
from minijax.runtime.annotations import ArrayLike, DTypeLike
from minijax.runtime.array import Array


@one_program(static=("rowvar", "bias", "ddof", "dtype"))
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """The covariances of variables, from observations of them.

    Args:
        m: a variable in each row, an observation in each column; or one variable.
        y: more variables, with as many observations.
        rowvar: False if observations are in rows.
        bias: whether to divide by the number of observations, rather than by one less.
        ddof: what is taken off the number of observations, in place of what `bias` says.
        fweights: how often each observation was made.
        aweights: how much each observation counts.
        dtype: the dtype of the result.

    Shapes:     m: T[n, k] -> T[n, n], or T[] for one variable.
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.numpy.cov.

    Raises:
        ValueError: an array has more than two dimensions, or weights do not fit.
        TypeError: `fweights` are no integers.

    Example:
        >>> jnp.cov(jnp.array([[0.0, 1.0, 2.0], [4.0, 2.0, 0.0]]))
        Array([[ 1., -2.],
               [-2.,  4.]], dtype=float32)
    """
    rows = _variables("cov", m, y, rowvar)
    if dtype is not None:
        rows = convert_to_type(
            rows, dtypes.canonicalize_user_dtype(dtype, "numpy.cov"), weak_type=False
        )
    count = aval_of(rows).shape[1]
    weights = _observation_weights(rows, fweights, aweights)
    if weights is not None:
        wide, _ = dtypes.lattice_result_type(rows, weights)
        rows = convert_to_type(rows, wide, weak_type=False)
    # Without observations the mean is 0 / 0, and so is what is computed from it.
    off = 0 if not count else (0 if bias else 1) if ddof is None else ddof
    mean, total = average(rows, 1, weights, returned=True)
    whole: Any = reductions.max(real(total)) if aval_of(total).size else float(count)
    norm = binary.sub(whole, float(off))
    if aweights is not None and off:
        squares = reductions.sum(binary.mul(weights, _aweights_as(weights, aweights)))
        norm = binary.sub(whole, binary.div(binary.mul(squares, float(off)), whole))
    centred = binary.sub(rows, shape.broadcast_in_dim(mean, aval_of(rows).shape, (0,)))
    weighted = centred
    if weights is not None:
        weights = convert_to_type(weights, aval_of(rows).dtype, weak_type=False)
        weighted = binary.mul(centred, shape.expand_dims(weights, (0,)))
    products = contraction.matmul(weighted, conjugate(shape.transpose(centred, (1, 0))))
    norm = convert_to_type(norm, aval_of(products).dtype, weak_type=False)
    return shaping.squeeze(binary.div(products, norm))


def _variables(name: str, m: Any, y: Any, rowvar: bool) -> Any:
    """A matrix with a variable in each row."""
    arrays = [inexact(name, x) for x in (m, y) if x is not None]
    if any(aval_of(x).ndim > 2 for x in arrays):
        error(
            ValueError,
            f"numpy.{name}",
            "variables are given as a vector or a matrix.",
            got=" ".join(str(aval_of(x)) for x in arrays),
        )
    rows = []
    for x in arrays:
        if aval_of(x).ndim < 2:
            rows.append(shape.reshape(x, (1, aval_of(x).size)))
        elif rowvar or aval_of(x).shape[0] == 1:
            rows.append(x)
        else:
            rows.append(shape.transpose(x, (1, 0)))
    return rows[0] if len(rows) == 1 else concatenate(rows, 0)


def _observation_weights(rows: Any, fweights: Any, aweights: Any) -> Any:
    """One weight for each observation, or None."""
    given = [check_array("cov", x) for x in (fweights, aweights) if x is not None]
    if fweights is not None and not is_kind(given[0], np.integer):
        error(
            TypeError,
            "numpy.cov",
            "observations are counted by integers.",
            got={"fweights": aval_of(given[0])},
            fix="aweights, for what they are worth",
        )
    for x in given:
        if aval_of(x).shape != (aval_of(rows).shape[1],):
            error(
                ValueError,
                "numpy.cov",
                "there must be one weight for each observation.",
                got={"weights": aval_of(x), "observations": aval_of(rows).shape[1]},
            )
    if not given:
        return None
    real_dtype = dtypes.real_dtype_of(aval_of(rows).dtype)
    if aweights is not None:
        real_dtype, _ = dtypes.lattice_result_type(real_dtype, given[-1])
    given = [convert_to_type(x, real_dtype, weak_type=False) for x in given]
    return given[0] if len(given) == 1 else binary.mul(*given)


def _aweights_as(like: Any, aweights: Any) -> Any:
    return convert_to_type(aweights, aval_of(like).dtype, weak_type=False)


@one_program(static=("rowvar", "dtype"))
def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None
) -> Array:
    """The correlation coefficients of variables, from observations of them; see `cov`.

    Shapes:     x: T[n, k] -> T[n, n], or T[] for one variable.
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.numpy.corrcoef.

    Raises:
        ValueError: an array has more than two dimensions.

    Example:
        >>> jnp.corrcoef(jnp.array([[0.0, 2.0], [4.0, 0.0]])).round()
        Array([[ 1., -1.],
               [-1.,  1.]], dtype=float32)
    """
    found = cov(x, y, rowvar, dtype=dtype)
    if aval_of(found).ndim == 0:
        return binary.div(found, found)
    spread = power.sqrt(real(matrices.diagonal(found)))
    dims = aval_of(found).shape
    spread = convert_to_type(spread, aval_of(found).dtype, weak_type=False)
    found = binary.div(found, shape.broadcast_in_dim(spread, dims, (0,)))
    found = binary.div(found, shape.broadcast_in_dim(spread, dims, (1,)))
    if is_kind(found, np.complexfloating):
        return unary.complex(*(_clipped(part) for part in (unary.real(found), unary.imag(found))))
    return _clipped(found)


def _clipped(coefficients: Any) -> Any:
    """Coefficients within [-1, 1], whatever was lost by rounding."""
    return binary.max(binary.min(coefficients, 1.0), -1.0)
