"""Trees of arrays as vectors.  Mirrors jax.flatten_util."""

from minijax.numpy.joining import ravel_pytree as ravel_pytree
