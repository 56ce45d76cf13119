"""Compiled programs as bytes.  Mirrors jax.experimental.serialize_executable."""

from minijax.core import deferral
from minijax.export.executables import (
    deserialize_and_load as deserialize_and_load,
    serialize as serialize,
)

deferral.publish(globals())
