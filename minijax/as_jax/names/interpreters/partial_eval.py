"""Jaxprs of what cannot be computed yet."""

import minijax.interpreters.staging
from minijax.as_jax.traces import (
    PartialVal as PartialVal,
    dce_jaxpr as dce_jaxpr,
    trace_to_jaxpr_dynamic as trace_to_jaxpr_dynamic,
    trace_to_jaxpr_nounits as trace_to_jaxpr_nounits,
)
from minijax.core import deferral

DynamicJaxprTracer = minijax.interpreters.staging.StagingTracer
JaxprTracer = minijax.interpreters.staging.StagingTracer

deferral.publish(globals())
