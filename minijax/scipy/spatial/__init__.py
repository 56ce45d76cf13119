"""Geometry: rotations, in `transform`."""

from minijax.scipy.spatial import transform

__all__ = ["transform"]


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
