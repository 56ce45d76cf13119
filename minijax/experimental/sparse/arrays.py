"""What sparse arrays of all formats have: a shape, operators, and their place among trees.

A sparse array has three groups of dimensions, in this order: batch dimensions, over which the
elements are stored apart; sparse dimensions, in which only some elements are stored; and dense
ones.  A tree takes it apart into its buffers.  What a tree remembers is the shape of one example,
without batch dimensions, so that `vmap` over its buffers maps over its batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn, Self, TypeAlias

import numpy as np

from minijax.core import source
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.runtime.array import Array

NAME = "experimental.sparse"

Shape: TypeAlias = tuple[int, ...]


class SparseEfficiencyError(ValueError):
    """A layout that would take more memory than it needs."""


class SparseEfficiencyWarning(UserWarning):
    """A layout that takes more memory than it needs."""


@source.boundaries()
class JAXSparse:
    """A sparse array, of any format.

    Attributes:
        data: the elements that are stored, T[batch, nse, dense].
        example_shape: the shape without batch dimensions.

    Example:
        >>> from minijax.experimental import sparse
        >>> isinstance(sparse.eye(3), sparse.JAXSparse)
        True
    """

    data: Any
    example_shape: Shape
    # NumPy leaves operators to us.
    __array_priority__ = 100
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    operations: ClassVar[dict[str, Callable[..., Any]]] = {}
    """What operators and methods compute, by their names; filled by the files that compute them."""

    @property
    def n_batch(self) -> int:
        """The number of batch dimensions."""
        raise NotImplementedError

    @property
    def n_sparse(self) -> int:
        """The number of sparse dimensions."""
        raise NotImplementedError

    @property
    def n_dense(self) -> int:
        """The number of dense dimensions."""
        return len(self.example_shape) - self.n_sparse

    @property
    def nse(self) -> int:
        """The number of elements that are stored, for each example of a batch."""
        raise NotImplementedError

    @property
    def shape(self) -> Shape:
        """The shape."""
        return (*np.shape(self.data)[: self.n_batch], *self.example_shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements, stored or not."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return aval_of(self.data).dtype

    @property
    def T(self) -> Self:
        """The array with its dimensions reversed."""
        return self.transpose()

    def transpose(self, axes: Sequence[int] | None = None) -> Self:
        """The array with its dimensions in another order; reversed, where none is given."""
        return self._computed("transpose", axes)

    def todense(self) -> Array:
        """The dense array."""
        return self._computed("todense")

    def sum(self, axis: int | Sequence[int] | None = None) -> Any:
        """The sum over dimensions, or over all; dense where no sparse dimension is left."""
        return self._computed("sum", axis)

    def astype(self, dtype: Any) -> Self:
        """The array in another dtype."""
        return self._computed("astype", dtype)

    def reshape(self, *shape: Any) -> Self:
        """The array in another shape; batch dimensions stay batch dimensions."""
        return self._computed("reshape", *shape)

    def block_until_ready(self) -> Self:
        """Waits until the buffers are computed."""
        for buffer in vars(self).values():
            getattr(buffer, "block_until_ready", lambda: None)()
        return self

    def to_bcoo(self) -> Any:
        """The same array, stored by coordinates."""
        raise NotImplementedError

    def _computed(self, name: str, *args: Any) -> Any:
        return JAXSparse.operations[name](self, *map(by_places, args))

    def __len__(self) -> int:
        if not self.ndim:
            error(TypeError, NAME, "a sparse array without dimensions has no length.")
        return self.shape[0]

    def __repr__(self) -> str:
        kind = type(self).__name__
        try:
            more = "".join(
                f", {name}={value}"
                for name, value in (("n_batch", self.n_batch), ("n_dense", self.n_dense))
                if value
            )
            shape = ", ".join(map(str, self.shape))
            return f"{kind}({self.dtype.name}[{shape}], nse={self.nse}{more})"
        except (AttributeError, TypeError, ValueError):
            # A tree of something else than arrays has this form.
            return f"{kind}(<{type(self.data).__name__}>)"

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self._refuse_density("numpy.asarray")

    def _refuse_density(self, name: str) -> NoReturn:
        problem = f"{name} of a sparse array would make it dense."
        fix = "x.todense()"
        error(TypeError, f"{NAME}.{type(self).__name__}", problem, got=repr(self), fix=fix)

    def __getitem__(self, index: Any) -> Any:
        return self._computed("getitem", index)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __neg__(self) -> Self:
        return self._computed("neg")

    def __pos__(self) -> Self:
        return self

    def __abs__(self) -> Self:
        return self._computed("abs")

    def __pow__(self, power: Any) -> Self:
        return self._computed("pow", power)

    def __add__(self, other: Any) -> Any:
        return self._computed("add", other)

    def __radd__(self, other: Any) -> Any:
        return self._computed("add", other)

    def __sub__(self, other: Any) -> Any:
        return self._computed("sub", other)

    def __rsub__(self, other: Any) -> Any:
        return (-self)._computed("add", other)

    def __mul__(self, other: Any) -> Any:
        return self._computed("mul", other)

    def __rmul__(self, other: Any) -> Any:
        return self._computed("mul", other)

    def __truediv__(self, other: Any) -> Any:
        return self._computed("div", other)

    def __matmul__(self, other: Any) -> Any:
        return self._computed("matmul", other)

    def __rmatmul__(self, other: Any) -> Any:
        return self._computed("rmatmul", other)


def by_places(x: Any) -> Any:
    """A sparse array stored by coordinates; anything else as it is."""
    return x.to_bcoo() if isinstance(x, JAXSparse) else x


def is_sparse(x: object) -> bool:
    """Whether a value is a sparse array."""
    return isinstance(x, JAXSparse)
