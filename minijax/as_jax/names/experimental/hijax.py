"""Values whose types are users' own: the names, for packages that import them (flax)."""

from minijax.as_jax.placeholders import (
    AvalMutableQDD as AvalMutableQDD,
    AvalQDD as AvalQDD,
    HiPrimitive as HiPrimitive,
    HiPspec as HiPspec,
    HiType as HiType,
    MutableHiType as MutableHiType,
    VJPHiPrimitive as VJPHiPrimitive,
    aval_method as aval_method,
    aval_property as aval_property,
    register_hitype as register_hitype,
)
from minijax.core import deferral
from minijax.core.aval import AbstractValue as AbstractValue, ShapedArray as ShapedArray
from minijax.core.effects import control_flow_allowed_effects as control_flow_allowed_effects
from minijax.core.refs import AbstractRef as AbstractRef
from minijax.extend.ad import (
    Zero as Zero,
    instantiate_zeros as instantiate_zeros,
    is_undefined_primal as is_undefined_primal,
)

deferral.publish(globals())
