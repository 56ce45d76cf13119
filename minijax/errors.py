"""The error classes.  Mirrors jax.errors."""

from minijax.core.errors import (
    ConcretizationTypeError,
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
