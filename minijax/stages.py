"""Ahead-of-time stages.  Mirrors jax.stages."""

from minijax.transforms.stages import ArgInfo, Compiled, CompilerOptions, Lowered, Traced, Wrapped

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]
