"""Hypothesis strategies for types, trees, and arrays; arrays print as short code.

Elements follow a pattern that is not symmetric in anything, with few digits: sums of floats among
them are exact, and two blocks are hardly ever equal by accident.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies

from minijax.core import dtypes as core_dtypes
from minijax.core.aval import ShapedArray, shaped_array

DTYPES = ("float32", "int32", "bool", "uint8")


def pattern(shape: Sequence[int], dtype: str, step: int = 5) -> str:
    """An array as code: multiples of `step`, modulo a prime, about zero.

    Source: of the project; JAX has nothing like it.

    Args:
        shape: of the array.
        dtype: the name of its dtype.
        step: a number from 1 to 12.

    Example:
        >>> from minijax.testing import strategies
        >>> strategies.pattern((2, 3), 'int32')
        "(np.arange(6).reshape((2, 3)) * 5 % 13 - 6).astype('int32')"
    """
    count = f"np.arange({math.prod(shape)})"
    shaped = count if len(shape) == 1 else f"{count}.reshape({tuple(shape)})"
    varied = f"{shaped} * {step} % 13"
    if dtype == "bool":
        return f"({varied} > 5)"
    if dtype.startswith("u"):
        return f"({varied}).astype('{dtype}')"
    if dtype.startswith("int"):
        return f"({varied} - 6).astype('{dtype}')"
    return f"(({varied} - 6) / 4).astype('{dtype}')"


def array(shape: Sequence[int], dtype: Any, step: int = 5) -> Any:
    """The array that `pattern` writes down, of any dtype.

    Source: of the project; JAX has nothing like it.

    Example:
        >>> from minijax.testing import strategies
        >>> strategies.array((2, 3), 'int32')
        array([[-6, -1,  4],
               [-4,  1,  6]], dtype=int32)
    """
    found = np.dtype(dtype)
    values = np.arange(math.prod(shape)).reshape(tuple(shape)) * step % 13
    if found == np.bool_:
        return values > 5
    if found.kind == "u":
        return values.astype(found)
    if found.kind == "i":
        return (values - 6).astype(found)
    real = (values - 6) / 4
    if found.kind == "c":
        return (real + 1j * ((values * 3) % 5 - 2)).astype(found)
    return real.astype(found)


def shapes(*, max_rank: int = 3, sizes: Sequence[int] = (2, 1, 3, 4)) -> Any:
    """Small shapes.

    Source: a strategy of Hypothesis.

    Args:
        max_rank: how many dimensions at most.
        sizes: the sizes of dimensions, the simplest first.

    Example:
        >>> from hypothesis import find
        >>> from minijax.testing import strategies
        >>> find(strategies.shapes(), lambda shape: len(shape) == 2)
        (2, 2)
    """
    return strategies.lists(strategies.sampled_from(list(sizes)), max_size=max_rank).map(tuple)


@strategies.composite
def avals(
    draw: Any, *, dtypes: Sequence[str] = DTYPES, max_rank: int = 3, weak: bool = False
) -> ShapedArray:
    """Types of arrays.

    Source: a strategy of Hypothesis.

    Args:
        draw: given by Hypothesis.
        dtypes: names of dtypes to choose from.
        max_rank: how many dimensions at most.
        weak: whether they may be those of Python numbers.

    Example:
        >>> from hypothesis import find
        >>> from minijax.testing import strategies
        >>> find(strategies.avals(), lambda aval: aval.ndim == 1)
        ShapedArray(float32[2])
    """
    dtype = core_dtypes.canonicalize_dtype(draw(strategies.sampled_from(list(dtypes))))
    shape = draw(shapes(max_rank=max_rank))
    return shaped_array(shape, dtype, weak_type=weak and draw(strategies.booleans()))


def trees(leaves: Any, *, max_leaves: int = 5) -> Any:
    """Nested tuples, lists and dicts of leaves; a leaf alone is the simplest.

    Source: a strategy of Hypothesis.

    Args:
        leaves: a strategy of leaves.
        max_leaves: how many there are at most.

    Example:
        >>> from hypothesis import find
        >>> from minijax.testing import strategies
        >>> from hypothesis import strategies as st
        >>> find(strategies.trees(st.integers()), lambda tree: isinstance(tree, dict) and tree)
        {'a': 0}
    """
    return strategies.recursive(
        leaves,
        lambda children: (
            strategies.lists(children, max_size=3)
            | strategies.lists(children, max_size=3).map(tuple)
            | strategies.dictionaries(strategies.sampled_from("abc"), children, max_size=3)
        ),
        max_leaves=max_leaves,
    )


@strategies.composite
def per_device_inputs(
    draw: Any,
    sizes: Mapping[Any, int],
    *,
    shape: Sequence[int] | None = None,
    dtypes: Sequence[str] = ("float32", "int32"),
) -> Any:
    """Arrays with one block for each device: a dimension for each mesh axis, then a block's own.

    Source: a strategy of Hypothesis.

    Args:
        draw: given by Hypothesis.
        sizes: of the mesh, by names of axes; `mesh.shape`, for example.
        shape: of one block; any small one by default.
        dtypes: names of dtypes to choose from.

    Example:
        >>> from hypothesis import find
        >>> from minijax.testing import strategies
        >>> find(strategies.per_device_inputs({"x": 2}, shape=(3,)), lambda x: True).shape
        (2, 3)
    """
    block = draw(shapes(max_rank=2)) if shape is None else tuple(shape)
    dtype = draw(strategies.sampled_from(list(dtypes)))
    return array((*sizes.values(), *block), dtype, draw(strategies.integers(1, 12)))
