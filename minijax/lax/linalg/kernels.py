"""Calls of the kernels that jaxlib brings: LAPACK on CPU, cuSOLVER and its kin on GPU.

Input: matrices, with any number of leading batch dimensions.  Output: what the kernel computes of
each.  The kernels expect the columns of a matrix to be contiguous, and devices may divide a batch
among them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minijax.core.aval import ShapedArray
from minijax.core.errors import message
from minijax.interpreters import custom_calls
from minijax.interpreters.structural import broadcast_in_dim, full
from minijax.lax import foreign
from minijax.lax.choice import select
from minijax.runtime import call_targets

LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
# What LAPACK calls orthogonal and symmetric of real matrices is unitary and Hermitian of others.
_NAMES_OF_COMPLEX = {"or": "un", "sy": "he"}
GPUS = {"cuda": "cu", "rocm": "hip"}

LOWER, UPPER = np.uint8(ord("L")), np.uint8(ord("U"))
VECTORS, NO_VECTORS = np.uint8(ord("V")), np.uint8(ord("N"))


def lapack(routine: str, dtype: Any) -> str:
    """The name of a routine of LAPACK for a dtype: `potrf` is `lapack_spotrf_ffi` for float32."""
    letter = LETTERS[dtype.name]
    if letter in "cz":
        routine = _NAMES_OF_COMPLEX.get(routine[:2], routine[:2]) + routine[2:]
    return f"lapack_{letter}{routine}_ffi"


def solver(platform: str, routine: str) -> str:
    """The name of a routine of a GPU's dense solvers: `potrf` is `cusolver_potrf_ffi` on CUDA."""
    return f"{GPUS[platform]}solver_{routine}_ffi"


def call(
    platform: str,
    target: str,
    operands: Sequence[Any],
    results: Sequence[tuple[Sequence[int], Any]],
    attributes: Mapping[str, Any] | None = None,
    *,
    batch: int | None = None,
    aliases: Mapping[int, int] | None = None,
    by_rows: bool = False,
) -> list[Any]:
    """Calls a kernel for each entry of a batch.

    Args:
        platform: what the program is for.
        target: the kernel's name.
        operands: arrays whose leading dimensions are the batch.
        results: shape and dtype of each result, with the batch.
        attributes: what the kernel gets besides arrays.
        batch: how many dimensions the batch has; None for kernels that take everything as it lies
            in C, and whose work devices do not divide.
        aliases: which operands the kernel overwrites with which result.
        by_rows: whether it gets and gives the rows of matrices contiguous, in place of columns.
    """
    order = row_major_layout if by_rows else layout
    call_targets.provide_linear_algebra(platform)
    return foreign.call(
        target,
        operands,
        [ShapedArray(tuple(shape), np.dtype(dtype)) for shape, dtype in results],
        attributes=attributes,
        input_layouts=[order(x.ndim, batch) for x in operands],
        output_layouts=[order(len(shape), batch) for shape, _ in results],
        aliases=aliases,
        num_batch_dims=batch,
    )


def layout(ndim: int, batch: int | None) -> tuple[int, ...]:
    """Minor to major: matrices by columns, everything else as in C."""
    is_matrix = batch is not None and ndim - batch == 2
    order = custom_calls.column_major(ndim) if is_matrix else custom_calls.row_major(ndim)
    return tuple(order)


def row_major_layout(ndim: int, batch: int | None) -> tuple[int, ...]:
    """Minor to major: everything as in C."""
    return tuple(custom_calls.row_major(ndim))


def routine(name: str, platform: str, routine: str, dtype: Any) -> str:
    """The kernel of a routine: LAPACK's on CPU, the dense solvers' on GPU.

    Args:
        name: the function of lax.linalg, for messages.
        platform: what the program is for.
        routine: what LAPACK calls it, without the letter of the dtype.
        dtype: that of the matrices.

    Raises:
        NotImplementedError: there is none for the dtype, or for the platform.
    """
    if dtype.name not in LETTERS:
        raise refuse_dtype(name, dtype)
    if platform == "cpu":
        return lapack(routine, dtype)
    if platform in GPUS:
        return solver(platform, routine)
    raise refuse_platform(name, platform)


def refuse_dtype(name: str, dtype: Any) -> NotImplementedError:
    """The error of a dtype for which there is no kernel."""
    return NotImplementedError(
        message(
            f"lax.linalg.{name}",
            f"there is no kernel for {dtype.name}.",
            expected=f"one of {', '.join(LETTERS)}",
            fix="x.astype(numpy.float32) first",
        )
    )


def refuse_platform(name: str, platform: str) -> NotImplementedError:
    """The error of a platform for which there is no kernel."""
    return NotImplementedError(
        message(
            f"lax.linalg.{name}",
            f"there is no kernel for {platform}.",
            fix="compute it on the host: jax.device_put(x, jax.devices('cpu')[0])",
        )
    )


def refuse_implementation(
    name: str, platform: str, given: Any, known: Sequence[Any]
) -> NotImplementedError:
    """The error of an algorithm that a platform has not got."""
    return NotImplementedError(
        message(
            f"lax.linalg.{name}",
            f"{given} is not available on {platform}.",
            expected=" or ".join(map(str, known)),
        )
    )


def nan_unless(succeeded: Any, x: Any) -> Any:
    """`x`, with NaN in those entries of the batch for which the kernel failed.

    Args:
        succeeded: bool[batch].
        x: T[batch, ...].
    """
    whole = broadcast_in_dim(succeeded, x.shape, tuple(range(succeeded.ndim)))
    return select(whole, x, full(x.shape, math.nan, x.dtype))
