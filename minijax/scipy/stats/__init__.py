"""Distributions and statistics, as `jax.scipy.stats` has them."""
