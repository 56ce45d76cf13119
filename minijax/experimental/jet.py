"""Taylor mode.  Mirrors jax.experimental.jet."""

from minijax.transforms.jet import jet

__all__ = ["jet"]
