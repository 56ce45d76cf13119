"""The error classes.  Mirrors jax.errors."""

from minijax.core.errors import (
    ConcretizationTypeError,
    IncompatibleShapesError,
    InternalError,
    KeyReuseError,
    MissingRule,
    NonConcreteBooleanIndexError,
    ResourceTypingError,
    ShardingTypeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)

__all__ = [
    "ConcretizationTypeError",
    "IncompatibleShapesError",
    "InternalError",
    "KeyReuseError",
    "MissingRule",
    "NonConcreteBooleanIndexError",
    "ResourceTypingError",
    "ShardingTypeError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "UnexpectedTracerError",
]
