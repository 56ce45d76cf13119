"""Trees of arrays as one vector, and back."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes, tree
from minijax.core.aval import Shape, aval_of
from minijax.core.errors import error
from minijax.lax.convert import convert_element_type
from minijax.lax.shape import split
from minijax.lax.unary import real
from minijax.numpy.creation import zeros
from minijax.numpy.joining import concatenate
from minijax.numpy.promotion import promote_dtypes
from minijax.numpy.shaping import array_argument, ravel, reshape
from minijax.runtime.array import Array


class Unravel:
    """The way back from a vector to the tree that it was made of; equal for equal trees.

    Shapes: vector: T[n] -> the tree's leaves.
    """

    __slots__ = ("dtype", "dtypes", "shapes", "treedef")

    def __init__(
        self, treedef: Any, shapes: Sequence[Shape], kinds: Sequence[Any], dtype: Any
    ) -> None:
        self.treedef = treedef
        self.shapes = tuple(shapes)
        self.dtypes = tuple(kinds)
        self.dtype = dtype

    def _facts(self) -> tuple[Any, ...]:
        return self.treedef, self.shapes, self.dtypes, self.dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unravel) and self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash(self._facts())

    def __call__(self, vector: Any) -> Any:
        """The tree whose leaves, one after another, are the vector's elements."""
        if not self.shapes:
            return tree.unflatten(self.treedef, ())
        vector = array_argument("flatten_util.ravel_pytree", vector)
        self._check(aval_of(vector))
        sizes = [math.prod(shape) for shape in self.shapes]
        parts = split(vector, sizes) if len(sizes) > 1 else [vector]
        return tree.unflatten(self.treedef, map(self._leaf, parts, self.shapes, self.dtypes))

    def _leaf(self, part: Any, shape: Shape, dtype: Any) -> Any:
        leaf = reshape(part, shape)
        if self._is_uniform:
            return leaf
        if dtypes.issubdtype(self.dtype, np.complexfloating) and dtype != self.dtype:
            # The imaginary parts are those that the promotion added.
            leaf = real(leaf)
        return convert_element_type(leaf, dtype)

    @property
    def _is_uniform(self) -> bool:
        return all(dtype == self.dtype for dtype in self.dtypes)

    def _check(self, aval: Any) -> None:
        size = sum(math.prod(shape) for shape in self.shapes)
        if aval.shape != (size,):
            error(
                ValueError,
                "flatten_util.ravel_pytree",
                "the vector does not fit the tree.",
                got={"vector": aval},
                expected=f"{size} elements, one for each of the tree's",
            )
        if not self._is_uniform and aval.dtype != self.dtype:
            error(
                TypeError,
                "flatten_util.ravel_pytree",
                "the vector's dtype is not the one that the tree's dtypes promote to.",
                got={"vector": aval},
                expected=str(self.dtype),
                fix=f"vector.astype({str(self.dtype)!r})",
            )


def ravel_pytree(pytree: Any) -> tuple[Array, Callable[[Array], Any]]:
    """A tree's leaves one after another in a vector, and the function that makes it a tree again.

    Args:
        pytree: the tree of arrays and numbers.

    Shapes:     leaves T[s], U[t], .. -> V[sum of the sizes].
    Dtypes:     the leaves' dtypes promoted.  The function takes this dtype and gives each leaf its
                own; a vector for a tree of one dtype may have any, which its leaves then have.
    Derivative: linear, as is the function.
    Source:     mirrors jax.flatten_util.ravel_pytree (0.10).

    Raises:
        TypeError: a leaf is no array and no number; the function is given another dtype.
        ValueError: the function is given a vector of another size.

    Example:
        >>> vector, unravel = minijax.flatten_util.ravel_pytree({"b": 2.0, "w": np.ones(2)})
        >>> vector
        Array([2., 1., 1.], dtype=float32)
        >>> unravel(2 * vector)["w"]
        Array([2., 2.], dtype=float32)
    """
    leaves, treedef = tree.flatten(pytree)
    if not leaves:
        return zeros(0, dtypes.default_float_dtype()), Unravel(treedef, (), (), None)
    avals = [aval_of(array_argument("flatten_util.ravel_pytree", leaf)) for leaf in leaves]
    promoted = promote_dtypes("flatten_util.ravel_pytree", *leaves)
    vectors = [ravel(leaf) for leaf in promoted]
    vector = concatenate(vectors) if len(vectors) > 1 else vectors[0]
    kinds = [aval.dtype for aval in avals]
    return vector, Unravel(treedef, [a.shape for a in avals], kinds, np.dtype(vector.dtype))
