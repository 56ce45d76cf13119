"""What `jax.interpreters.ad` has besides."""

import minijax.core.aval
import minijax.interpreters.structural
from minijax.as_jax.rules import (
    defbilinear as defbilinear,
    defjvp2 as defjvp2,
    deflinear as deflinear,
    get_primitive_transpose as get_primitive_transpose,
    jvp as jvp,
)
from minijax.core import deferral
from minijax.interpreters.jvp import JVPTrace as JVPTrace, JVPTracer as JVPTracer
from minijax.interpreters.structural import add_tangents as add_tangents

add_jaxvals_p = minijax.interpreters.structural.add_any_p
zeros_like_aval = minijax.core.aval.zeros

deferral.publish(globals())
