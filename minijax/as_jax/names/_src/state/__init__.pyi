from minijax.as_jax.names._src.state import types as types
