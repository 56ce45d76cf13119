"""Dtypes and their promotion.  Mirrors jax.dtypes."""

from minijax.core.dtype_queries import itemsize_bits
from minijax.core.dtypes import (
    TypePromotionError,
    bfloat16,
    canonicalize_dtype,
    finfo,
    float0,
    iinfo,
    issubdtype,
    result_type,
    scalar_type_of,
)
from minijax.core.extended_dtypes import extended, prng_key

__all__ = [
    "TypePromotionError",
    "bfloat16",
    "canonicalize_dtype",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "itemsize_bits",
    "prng_key",
    "result_type",
    "scalar_type_of",
]
