"""An empty module, as in JAX 0.10."""
