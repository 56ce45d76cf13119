"""Taylor mode.  Mirrors jax.experimental.jet."""

from minijax.transforms.jet import jet as jet
