"""Trees of arrays as vectors.  Mirrors jax.flatten_util."""

from minijax.numpy.raveling import ravel_pytree

__all__ = ["ravel_pytree"]
