"""Needed by equinox (TypePromotionError) and flax (extended dtypes of fp8)."""

from minijax.core import deferral
from minijax.core.dtypes import (
    DType as DType,
    ExtendedDType as ExtendedDType,
    TypePromotionError as TypePromotionError,
    extended as extended,
    finfo as finfo,
)

deferral.publish(globals())
