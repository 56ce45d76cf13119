"""Arrays of other libraries, without copies.  Mirrors jax.dlpack."""

from minijax.core import deferral
from minijax.runtime.transfer import (
    from_dlpack as from_dlpack,
    is_supported_dtype as is_supported_dtype,
)

deferral.publish(globals())
