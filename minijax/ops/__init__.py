"""Reductions over segments of an array.  Mirrors jax.ops."""

from minijax.ops.segments import segment_max, segment_min, segment_prod, segment_sum

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]
