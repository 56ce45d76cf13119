"""Ahead-of-time stages.  Mirrors jax.stages."""

from minijax.core import deferral
from minijax.transforms.jit.stages import (
    ArgInfo as ArgInfo,
    Compiled as Compiled,
    CompilerOptions as CompilerOptions,
    Lowered as Lowered,
    Traced as Traced,
    Wrapped as Wrapped,
)

deferral.publish(globals())
