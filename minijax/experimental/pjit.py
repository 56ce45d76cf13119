"""The former name of `jit`.  Mirrors jax.experimental.pjit."""

import minijax.transforms.jit.jit
from minijax.core import deferral
from minijax.lax.shardings import with_sharding_constraint as with_sharding_constraint
from minijax.transforms.explicit import (
    auto_axes as auto_axes,
    explicit_axes as explicit_axes,
    reshard as reshard,
)

pjit = minijax.transforms.jit.jit.jit

deferral.publish(globals())
