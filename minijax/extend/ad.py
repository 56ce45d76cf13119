"""Registration of derivatives for primitives of users' own.  Mirrors jax.interpreters.ad."""

import minijax.interpreters.jvp
import minijax.interpreters.structural
from minijax.core import deferral
from minijax.extend.declaration import (
    defjvp as defjvp,
    deflinear2 as deflinear2,
    primitive_jvps as primitive_jvps,
    primitive_transposes as primitive_transposes,
    zeros_like as zeros_like,
)
from minijax.interpreters.jvp import Zero as Zero

UndefinedPrimal = minijax.interpreters.jvp.UndefinedPrimal
add_jaxvals = minijax.interpreters.structural.add_tangents
instantiate_zeros = minijax.interpreters.structural.instantiate
is_undefined_primal = minijax.interpreters.jvp.is_linear

deferral.publish(globals())
