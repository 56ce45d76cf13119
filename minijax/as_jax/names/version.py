"""The version of JAX whose interface it is."""

from minijax.as_jax.version import __version__ as __version__, __version_info__ as __version_info__
from minijax.core import deferral

deferral.publish(globals())
