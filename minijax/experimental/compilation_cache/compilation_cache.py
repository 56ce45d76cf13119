"""The folder of compiled programs."""

from minijax.core import deferral
from minijax.runtime.program_store import reset_cache as reset_cache, set_cache_dir as set_cache_dir

deferral.publish(globals())
