"""Primitives that no jaxpr of minijax has."""

from minijax.as_jax.placeholders import call_p as call_p, closed_call_p as closed_call_p
import minijax.interpreters.structural

add_jaxvals_p = minijax.interpreters.structural.add_any_p
