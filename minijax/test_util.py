"""Checks of derivatives for users' tests.  Mirrors jax.test_util."""

from minijax.testing.slopes import check_grads, check_jvp, check_vjp

__all__ = ["check_grads", "check_jvp", "check_vjp"]


def __dir__() -> list[str]:
    """The public names, without what pytest adds to modules that are called so."""
    return sorted(__all__)
