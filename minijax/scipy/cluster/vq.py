"""Vector quantization.  Mirrors jax.scipy.cluster.vq."""

from __future__ import annotations

import numpy as np

from minijax.core import dtypes, source
from minijax.core.errors import error
from minijax.numpy.elementary import absolute, sqrt
from minijax.numpy.promotion import one_program, promote_dtypes
from minijax.numpy.shaping import array_argument
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array

__all__ = ["vq"]


@one_program(static=("check_finite",))
def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Assigns codes from a code book to observations, with the distances to the codes.

    Args:
        obs: the observations, one a row; or numbers.
        code_book: the codes, one a row; or numbers.
        check_finite: of no effect; it is SciPy's.

    Shapes:     obs: T[m, n], code_book: U[k, n] -> int32[m], V[m]; or without n.
    Dtypes:     promoted to inexact; distances are real.
    Derivative: the distances'.
    Source:     mirrors jax.scipy.cluster.vq.vq (0.10).

    Raises:
        ValueError: the ranks differ or are not 1 or 2, or there is no code.
        TypeError: an argument is not an array, or the rows' lengths differ.

    Example:
        >>> code, distance = minijax.scipy.cluster.vq.vq(np.float32([1, 7]), np.float32([0, 5]))
        >>> code, distance
        (Array([0, 1], dtype=int32), Array([1., 2.], dtype=float32))
    """
    name = "scipy.cluster.vq.vq"
    obs, code_book = (array_argument(name, x) for x in promote_dtypes(name, obs, code_book))
    dtype = dtypes.to_inexact_dtype(obs.dtype)
    obs, code_book = obs.astype(dtype), code_book.astype(dtype)
    given = {"obs": obs.aval, "code_book": code_book.aval}
    if obs.ndim != code_book.ndim or obs.ndim not in (1, 2):
        error(ValueError, name, "both must be vectors, or both matrices.", got=given)
    if obs.ndim == 1:
        obs, code_book = obs[:, None], code_book[:, None]
    if obs.shape[1] != code_book.shape[1]:
        error(TypeError, name, "rows must have one length.", got=given)
    if code_book.shape[0] == 0:
        error(ValueError, name, "there is no code.", got=given)
    apart = obs[:, None, :] - code_book[None, :, :]
    if dtypes.issubdtype(dtype, np.complexfloating):
        apart = absolute(apart)
    squares = (apart * apart).sum(-1)
    return squares.argmin(1), sqrt(squares.min(1))


__dir__ = source.shown(globals())
