"""Arrays as files of tensorstore: the names, which orbax and flax import; orbax writes its own."""

from minijax.as_jax.names.experimental.array_serialization import serialization as serialization
