"""Needed by equinox, flax and jaxtyping, which say that frames are theirs."""

import minijax.as_jax.placeholders
from minijax.as_jax.placeholders import (
    api_boundary as api_boundary,
    include_frame as include_frame,
    register_exclusion as register_exclusion,
)
from minijax.core import deferral

_exclude_paths = minijax.as_jax.placeholders.exclude_paths

deferral.publish(globals())
