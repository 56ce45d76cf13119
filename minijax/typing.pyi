"""Types for annotations.  Mirrors jax.typing."""

from minijax.runtime.annotations import ArrayLike as ArrayLike, DTypeLike as DTypeLike
