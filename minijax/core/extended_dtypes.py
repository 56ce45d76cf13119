"""Element types that NumPy cannot describe, such as those of random keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core.rules import Facts, Rules

knows_extended: Facts[bool] = Facts("knows_extended", False)
"""Whether the rule `lower` takes operands of extended dtypes, such as random keys, as they are."""

over_words = Rules("over_words")
"""What an operation that gives no extended dtype says of its operands, from what it says of the
numbers underneath: `(primitive, result, dim)`, where these are along `dim`."""


class ExtendedDType:
    """Base of element types that NumPy cannot describe, such as those of random keys.

    A subclass sets `name` (its short notation), `itemsize` (bytes of one element), `type` (the
    abstract scalar type that `issubdtype` compares), and what XLA computes with: elements of
    `physical_shape` and `physical_dtype`.  It defines equality and hash.
    """

    name: str
    itemsize: int
    type: type[np.generic]
    physical_shape: tuple[int, ...]
    physical_dtype: np.dtype[Any]

    def element(self, value: Any) -> Any:
        """The element of which all physical numbers are `value`, a number."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.name


class extended(np.generic):  # noqa: N801 - named as the NumPy scalar types that it stands beside
    """Abstract scalar type of all extended dtypes.

    Source:     mirrors jax.dtypes.extended (0.10).

    Example:
        >>> jnp.issubdtype(jax.random.key(0).dtype, jax.dtypes.extended)
        True
        >>> jnp.issubdtype(jnp.float32, jax.dtypes.extended)
        False
    """


class prng_key(extended):  # noqa: N801
    """Abstract scalar type of all random key dtypes.

    Source:     mirrors jax.dtypes.prng_key (0.10).

    Example:
        >>> jnp.issubdtype(jax.random.key(0).dtype, jax.dtypes.prng_key)
        True
    """
