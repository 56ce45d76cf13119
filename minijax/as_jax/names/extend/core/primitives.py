"""Primitives that no jaxpr of minijax has."""

import minijax.interpreters.structural
from minijax.as_jax.placeholders import call_p as call_p, closed_call_p as closed_call_p
from minijax.core import deferral

add_jaxvals_p = minijax.interpreters.structural.add_any_p

deferral.publish(globals())
