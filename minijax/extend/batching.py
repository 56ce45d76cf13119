"""Registration of rules for batches of users' primitives.  Mirrors jax.interpreters.batching."""

from minijax.core import deferral
from minijax.extend.declaration import (
    bdim_at_front as bdim_at_front,
    defvectorized as defvectorized,
    fancy_primitive_batchers as fancy_primitive_batchers,
    primitive_batchers as primitive_batchers,
    spmd_primitive_batchers as spmd_primitive_batchers,
)
from minijax.interpreters.batching import not_mapped as not_mapped
from minijax.interpreters.structural import moveaxis as moveaxis

deferral.publish(globals())
