from minijax.as_jax.names import (
    _src as _src,
    api_util as api_util,
    interpreters as interpreters,
    lib as lib,
    version as version,
)
