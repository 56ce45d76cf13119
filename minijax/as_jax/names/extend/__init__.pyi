from minijax.as_jax.names.extend import (
    core as core,
    ifrt_programs as ifrt_programs,
    linear_util as linear_util,
    source_info_util as source_info_util,
)
