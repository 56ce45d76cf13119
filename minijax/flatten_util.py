"""Trees of arrays as vectors.  Mirrors jax.flatten_util."""

from minijax.core import deferral
from minijax.numpy.joining import ravel_pytree as ravel_pytree

deferral.publish(globals())
