"""The error classes.  Mirrors jax.errors."""

from minijax.core import deferral
from minijax.core.errors import (
    CheckedKeyReuseError as CheckedKeyReuseError,
    CheckError as CheckError,
    ConcretizationTypeError as ConcretizationTypeError,
    DeletedArrayError as DeletedArrayError,
    DivisionByZeroError as DivisionByZeroError,
    FailedCheckError as FailedCheckError,
    IncompatibleShapesError as IncompatibleShapesError,
    InconclusiveDimensionOperation as InconclusiveDimensionOperation,
    InternalError as InternalError,
    JAXIndexError as JAXIndexError,
    JaxprTypeError as JaxprTypeError,
    JAXTypeError as JAXTypeError,
    KeyReuseError as KeyReuseError,
    MissingRule as MissingRule,
    NonConcreteBooleanIndexError as NonConcreteBooleanIndexError,
    NonFiniteError as NonFiniteError,
    OutOfBoundsError as OutOfBoundsError,
    ResourceTypingError as ResourceTypingError,
    RetraceError as RetraceError,
    ShardingTypeError as ShardingTypeError,
    TracerArrayConversionError as TracerArrayConversionError,
    TracerBoolConversionError as TracerBoolConversionError,
    TracerIntegerConversionError as TracerIntegerConversionError,
    UnexpectedTracerError as UnexpectedTracerError,
)
from minijax.core.native import JaxRuntimeError as JaxRuntimeError

deferral.publish(globals())
