"""Taylor mode.  Mirrors jax.experimental.jet."""

from minijax.transforms.autodiff.jet import jet as jet
