"""Ahead-of-time stages.  Mirrors jax.stages."""

from minijax.transforms.stages import ArgInfo, Compiled, Lowered, Traced

__all__ = ["ArgInfo", "Compiled", "Lowered", "Traced"]
