"""Special functions, as `jax.scipy.special` has them."""
