"""Random numbers from explicit keys, with the bits of `jax.random`."""
