"""Needed by equinox, flax and jaxtyping, which say that frames are theirs."""

from minijax.as_jax.placeholders import (
    _exclude_paths as _exclude_paths,
    api_boundary as api_boundary,
    include_frame as include_frame,
    register_exclusion as register_exclusion,
)
