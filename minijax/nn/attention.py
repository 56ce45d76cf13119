"""Attention: `softmax(query · keyᵀ) · value`, by plain XLA operations.

Input: queries, keys and values of each head.  Output: weighted values.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import IncompatibleShapesError, error
from minijax.lax import creation as lax_creation
from minijax.lax import unary
from minijax.lax.creation import convert_element_type
from minijax.numpy import contraction, creation, logic, selection, shaping
from minijax.numpy.normalized_exponentials import logsumexp, softmax
from minijax.numpy.promotion import check_choice, one_program
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array

_FLOAT32, _INT32 = np.dtype(np.float32), np.dtype(np.int32)
# Added to rather than infinite, so that rows without any key stay finite.
_LOWEST = -0.7 * float(np.finfo(np.float32).max)


def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Array:
    """softmax(query · keyᵀ · scale + bias) · value for each head.

    Shapes: query T[b, t, n, h], key and value T[b, s, k, h] with k dividing n -> T[b, t, n, h];
        b may be absent throughout.

    Args:
        query: the queries.
        key: the keys.
        value: the values.
        bias: added to the logits, which are float32[b, n, t, s].
        mask: which pairs count, bool[b, n, t, s].
        scale: of the logits; 1 / sqrt(h) by default.
        is_causal: whether a query sees only keys up to its own position.
        query_seq_lengths: how many queries of each batch count; the others give 0.
        key_value_seq_lengths: how many keys of each batch count.
        local_window_size: how many keys to the left and to the right of its position a query sees:
            one number or two.
        implementation: None or "xla"; others are not built.
        return_residual: whether to return the logarithms of the sums of the softmax as well,
            float32[b, t, n].

    Source: mirrors jax.nn.dot_product_attention (0.10); Vaswani et al., "Attention is all you
        need" (2017); Ainslie et al. on groups of queries, "GQA" (2023).

    Raises:
        NotImplementedError: the implementation is not built.
        ValueError: shapes or dtypes do not fit.

    Example:
        >>> query = key = value = jnp.zeros((4, 2, 8)).at[1].set(6.0)
        >>> jax.nn.dot_product_attention(query, key, value, is_causal=True)[:, 0, 0]
        Array([0. , 6. , 2. , 1.5], dtype=float32)
    """
    query, key, value, bias, mask, *lengths = (
        creation.asarray(x) if isinstance(x, list | tuple) else cast(Any, x)
        for x in (query, key, value, bias, mask, query_seq_lengths, key_value_seq_lengths)
    )
    _check(query, key, value, mask, implementation)
    _check_pairs(query, key, bias, mask)
    _check_lengths(query, lengths)
    inputs = query, key, value, bias, mask
    return _attention(inputs, lengths, scale, is_causal, local_window_size, return_residual)


@one_program(static=("scale", "is_causal", "window", "return_residual"))
def _attention(
    inputs: tuple[Any, ...],
    lengths: list[Array | None],
    scale: float | None,
    is_causal: bool,
    window: int | tuple[int, int] | None,
    return_residual: bool,
) -> Any:
    """Attention, for checked arguments."""
    query, key, value, bias, mask = inputs
    batched = aval_of(query).ndim == 4
    if not batched:
        query, key, value = (shaping.expand_dims(x, 0) for x in (query, key, value))
    sizes = aval_of(query).shape[1], aval_of(key).shape[1]
    logits = _logits(query, key, scale)
    if bias is not None:
        logits = logits + _of_rank_4("bias", bias)
    allowed = _allowed(sizes, mask, is_causal, lengths, window)
    if allowed is not None:
        logits = selection.where(allowed, logits, _LOWEST)
    out = _weighted(softmax(logits), value)
    if lengths[0] is not None:
        inside = _before(lengths[0], sizes[0])
        out = selection.where(shaping.expand_dims(inside, (2, 3)), out, 0)
    results = [out]
    if return_residual:
        sums = unary.stop_gradient(logsumexp(logits, axis=-1))
        results.append(shaping.transpose(sums, (0, 2, 1)))
    if not batched:
        results = [shaping.squeeze(x, 0) for x in results]
    return tuple(results) if return_residual else results[0]


def _check(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    mask: ArrayLike | None,
    implementation: str | None,
) -> None:
    name = "nn.dot_product_attention"
    if implementation == "cudnn":
        error(NotImplementedError, name, "cuDNN's attention is not built.")
    check_choice(name, "implementation", implementation, (None, "xla"))
    avals = {"query": aval_of(query), "key": aval_of(key), "value": aval_of(value)}
    q, k, v = avals.values()
    if mask is not None and aval_of(mask).dtype != np.bool_:
        avals, problem = {"mask": aval_of(mask)}, "the mask must be bool."
    elif {q.ndim, k.ndim, v.ndim} not in ({3}, {4}):
        problem = "query, key and value must have the same rank: 3 or 4."
    elif len({q.dtype, k.dtype, v.dtype}) > 1:
        problem = "query, key and value must have the same dtype."
    elif k.shape != v.shape:
        problem = "key and value must have the same shape."
    elif (q.shape[:-3], q.shape[-1]) != (k.shape[:-3], k.shape[-1]):
        problem = "query and key must have the same batch size and the same head size."
    elif q.shape[-2] % k.shape[-2]:
        problem = "the number of heads of the queries must be a multiple of that of the keys."
    else:
        return
    error(ValueError, name, problem, got=avals)


def _check_pairs(
    query: ArrayLike, key: ArrayLike, bias: ArrayLike | None, mask: ArrayLike | None
) -> None:
    """Refuses what does not fit pairs of queries and keys.

    Raises:
        IncompatibleShapesError: the bias or the mask does not.
    """
    (*batch, t, n, _), s = aval_of(query).shape, aval_of(key).shape[-3]
    logits = (*(batch or (1,)), n, t, s)
    for name, x in (("bias", bias), ("mask", mask)):
        if x is None:
            continue
        dims = aval_of(_of_rank_4(name, x)).shape
        if any(a not in (1, b) for a, b in zip(dims, logits, strict=True)):
            problem = f"{name} does not fit the logits."
            got = {name: aval_of(x), "query": aval_of(query), "key": aval_of(key)}
            label, expected = "nn.dot_product_attention", f"dimensions of {logits}, or of size 1"
            error(IncompatibleShapesError, label, problem, got=got, expected=expected)


def _check_lengths(query: ArrayLike, lengths: list[Array | None]) -> None:
    """Refuses lengths that are not one integer for each batch.

    Raises:
        ValueError: there are such.
    """
    names = "query_seq_lengths", "key_value_seq_lengths"
    count = aval_of(query).shape[:-3] or (1,)
    for name, length in zip(names, lengths, strict=True):
        if length is None:
            continue
        aval = aval_of(length)
        if aval.shape != count or not dtypes.issubdtype(aval.dtype, np.integer):
            problem = f"{name} must be one integer for each batch."
            got = {name: aval, "query": aval_of(query)}
            expected = f"i32[{count[0]}]"
            error(ValueError, "nn.dot_product_attention", problem, got=got, expected=expected)


def _logits(query: ArrayLike, key: ArrayLike, scale: float | None) -> Array:
    """W[b, n, t, s]: scaled products of queries and keys; k keys serve n queries.

    W is float32, or the dtype itself where that is wider.
    """
    (b, t, n, h), (_, s, k, _) = aval_of(query).shape, aval_of(key).shape
    grouped = shaping.reshape(query, (b, t, k, n // k, h))
    products = contraction.einsum(
        "btkgh,bskh->bkgts", grouped, key, preferred_element_type=_wide(query)
    )
    products = shaping.reshape(products, (b, n, t, s))
    return products * (max(h, 1) ** -0.5 if scale is None else scale)


def _wide(x: ArrayLike) -> np.dtype[Any]:
    return np.promote_types(aval_of(x).dtype, _FLOAT32)


def _weighted(weights: Array, value: ArrayLike) -> Array:
    """T[b, t, n, h]: values weighted by W[b, n, t, s]."""
    (b, n, t, s), (_, _, k, h) = aval_of(weights).shape, aval_of(value).shape
    dtype = aval_of(value).dtype
    weights = convert_element_type(weights, dtype)
    grouped = shaping.reshape(weights, (b, k, n // k, t, s))
    wide = _wide(value)
    out = contraction.einsum("bkgts,bskh->btkgh", grouped, value, preferred_element_type=wide)
    return shaping.reshape(convert_element_type(out, dtype), (b, t, n, h))


def _of_rank_4(name: str, x: ArrayLike) -> Array:
    missing = 4 - aval_of(x).ndim
    if missing < 0:
        problem = f"{name} must have the dimensions of the logits."
        got = {name: aval_of(x)}
        expected = "[b, n, t, s], where the first may be absent and any may be 1"
        error(ValueError, "nn.dot_product_attention", problem, got=got, expected=expected)
    return shaping.expand_dims(x, tuple(range(missing)))


def _before(lengths: Array, size: int) -> Array:
    """bool[b, size]: which positions lie before each length."""
    return lax_creation.iota(_INT32, size) < shaping.expand_dims(lengths, 1)


def _allowed(
    sizes: tuple[int, int],
    mask: ArrayLike | None,
    is_causal: bool,
    lengths: Sequence[Array | None],
    window: int | tuple[int, int] | None,
) -> Array | None:
    """Which pairs of queries and keys count, or None for all."""
    conditions = [] if mask is None else [_of_rank_4("mask", mask)]
    # How far each key lies to the right of each query.
    rows = lax_creation.broadcasted_iota(_INT32, sizes, 0)
    distance = lax_creation.broadcasted_iota(_INT32, sizes, 1) - rows
    if is_causal:
        conditions.append(distance <= 0)
    if window is not None:
        left, right = (window, window) if isinstance(window, int) else window
        conditions += [distance >= -left, distance <= right]
    for length, size, dims in zip(lengths, sizes, ((1, 3), (1, 2)), strict=True):
        if length is not None:
            conditions.append(shaping.expand_dims(_before(length, size), dims))
    return functools.reduce(logic.logical_and, conditions) if conditions else None
