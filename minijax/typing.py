"""Types for annotations.  Mirrors jax.typing."""

from minijax.core import deferral
from minijax.runtime.annotations import ArrayLike as ArrayLike, DTypeLike as DTypeLike

deferral.publish(globals())
