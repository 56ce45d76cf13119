"""Trees of arrays as vectors.  Mirrors jax.flatten_util."""

from minijax.numpy.raveling import ravel_pytree

__all__ = ["ravel_pytree"]


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
