"""Needed by flax.nnx."""

from minijax.core import deferral
from minijax.core.refs import AbstractRef as AbstractRef

deferral.publish(globals())
