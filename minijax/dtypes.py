"""Dtypes and their promotion.  Mirrors jax.dtypes."""

import ml_dtypes

from minijax.core import deferral
from minijax.core.dtype_queries import itemsize_bits as itemsize_bits
from minijax.core.dtypes import (
    TypePromotionError as TypePromotionError,
    canonicalize_dtype as canonicalize_dtype,
    extended as extended,
    finfo as finfo,
    float0 as float0,
    iinfo as iinfo,
    issubdtype as issubdtype,
    prng_key as prng_key,
    result_type as result_type,
    scalar_type_of as scalar_type_of,
)

bfloat16 = ml_dtypes.bfloat16

deferral.publish(globals())
