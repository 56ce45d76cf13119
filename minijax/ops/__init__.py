"""Reductions over segments of an array.  Mirrors jax.ops."""

from minijax.ops.segments import segment_max, segment_min, segment_prod, segment_sum

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
