"""Arrays of other libraries, without copies.  Mirrors jax.dlpack."""

from minijax.runtime.dlpack import from_dlpack, is_supported_dtype

__all__ = ["from_dlpack", "is_supported_dtype"]
