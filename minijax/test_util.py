"""Checks of derivatives for users' tests.  Mirrors jax.test_util."""

from minijax.testing.slopes import check_grads, check_jvp, check_vjp

__all__ = ["check_grads", "check_jvp", "check_vjp"]
