"""Named by orbax, for back ends whose devices are far away; jaxlib makes their programs."""

import jaxlib._jax

from minijax.core import deferral

ifrt_programs = jaxlib._jax.ifrt_programs

deferral.publish(globals())
