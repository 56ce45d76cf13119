"""Checks of derivatives for users' tests.  Mirrors jax.test_util."""

from minijax.core import deferral
from minijax.testing.slopes import (
    check_grads as check_grads,
    check_jvp as check_jvp,
    check_vjp as check_vjp,
)

deferral.publish(globals())
