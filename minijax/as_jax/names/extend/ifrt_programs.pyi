"""Named by orbax, for back ends whose devices are far away; jaxlib makes their programs."""

import jaxlib._jax

ifrt_programs = jaxlib._jax.ifrt_programs
