"""Questions that users ask about dtypes: of which kind one is, whether it may become another."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np

from minijax.core import dtypes
from minijax.core.errors import error

_ARRAY_API_KINDS: dict[str, frozenset[np.dtype[Any]]] = {
    "bool": frozenset({dtypes.bool_}),
    "signed integer": frozenset(dtypes.SIGNED),
    "unsigned integer": frozenset(dtypes.UNSIGNED),
    "integral": frozenset({*dtypes.SIGNED, *dtypes.UNSIGNED}),
    "real floating": frozenset(dtypes.FLOATS),
    "complex floating": frozenset(dtypes.COMPLEXES),
    "numeric": frozenset(dtypes.ALL) - {dtypes.bool_},
}


_Kind: TypeAlias = str | type[Any] | np.dtype[Any]
"""A kind of dtypes by its array API name, or a dtype."""


def itemsize_bits(dtype: Any) -> int:
    """Bits of one element: 4 for `int4`, 8 for `bool`, 64 for `complex64`.

    Raises:
        ValueError: elements of this dtype have no width (`float0`, extended dtypes).

    Example:
        >>> jax.dtypes.itemsize_bits("int4"), jax.dtypes.itemsize_bits(jnp.complex64)
        (4, 64)
    """
    extended = isinstance(dtype, dtypes.ExtendedDType)
    return dtypes.bit_width(dtype if extended else dtypes.np_dtype(dtype, "dtypes.itemsize_bits"))


def isdtype(dtype: object, kind: object) -> bool:
    """Whether `dtype` is of `kind`: a dtype, an array API name such as "integral", or a tuple.

    Source: mirrors jax.numpy.isdtype; Python array API standard.

    Raises:
        ValueError: a string in `kind` names neither a kind nor a dtype.
        TypeError: `kind` is anything else.

    Example:
        >>> jnp.isdtype(jnp.int4, "integral"), jnp.isdtype(jnp.int4, ("bool", jnp.int8))
        (True, False)
    """
    subject = dtypes.np_dtype(dtype, "numpy.isdtype")
    return any(_is_of_kind(subject, k) for k in (kind if isinstance(kind, tuple) else (kind,)))


def _is_of_kind(dtype: np.dtype[Any], kind: _Kind) -> bool:
    if isinstance(kind, str) and kind in _ARRAY_API_KINDS:
        return dtype in _ARRAY_API_KINDS[kind]
    names = ", ".join(map(repr, _ARRAY_API_KINDS))
    try:
        return bool(dtype == np.dtype(kind))
    except TypeError:
        exception = ValueError if isinstance(kind, str) else TypeError
        problem = "`kind` names no kind of dtype."
        expected = f"a dtype, one of {names}, or a tuple of these"
        error(exception, "numpy.isdtype", problem, got=repr(kind), expected=expected, cause=None)


def can_cast(
    from_: object,
    to: object,
    casting: Literal["no", "equiv", "safe", "same_kind", "unsafe"] = "safe",
) -> bool:
    """Whether NumPy's rule `casting` lets a dtype become `to`.

    Example:
        >>> jnp.can_cast(jnp.int8, jnp.float16), jnp.can_cast(jnp.float32, jnp.float16)
        (True, False)
    """
    return np.can_cast(
        dtypes.np_dtype(from_, "numpy.can_cast"), dtypes.np_dtype(to, "numpy.can_cast"), casting
    )
