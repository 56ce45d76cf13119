"""Needed by flax.nnx."""

from minijax.transforms.checks import (
    Error as Error,
    check as check,
    check_error as check_error,
    checkify as checkify,
    user_checks as user_checks,
)

import minijax.core.errors

JaxException = minijax.core.errors.CheckError
