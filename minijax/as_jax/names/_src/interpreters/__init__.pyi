from minijax.as_jax.names._src.interpreters import pxla as pxla
