"""Where equations come from."""

from minijax.as_jax.placeholders import register_exclusion as register_exclusion
