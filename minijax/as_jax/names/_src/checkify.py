"""Needed by flax.nnx."""

import minijax.core.errors
from minijax.core import deferral
from minijax.transforms.checks import (
    Error as Error,
    check as check,
    check_error as check_error,
    checkify as checkify,
    user_checks as user_checks,
)

JaxException = minijax.core.errors.CheckError

deferral.publish(globals())
