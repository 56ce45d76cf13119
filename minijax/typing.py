"""Types for annotations.  Mirrors jax.typing."""

from minijax.runtime.annotations import ArrayLike, DTypeLike

__all__ = ["ArrayLike", "DTypeLike"]
