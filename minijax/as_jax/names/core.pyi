"""What `jax.core` has besides."""

from minijax.core.jaxpr import Atom as Atom
