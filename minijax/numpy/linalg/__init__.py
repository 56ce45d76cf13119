"""Linear algebra as NumPy has it.  Mirrors jax.numpy.linalg."""
