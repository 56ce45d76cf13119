"""Resampling of images, and of arrays of any rank.  Mirrors jax.image."""

from minijax.image.resampling import ResizeMethod, resize, scale_and_translate

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
