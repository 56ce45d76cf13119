"""`shard_map` under its former path, with its former arguments."""

from minijax.core import deferral
from minijax.experimental.legacy.older import shard_map as shard_map

deferral.publish(globals())
