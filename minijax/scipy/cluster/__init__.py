"""Clusters of points, by part."""

from minijax.scipy.cluster import vq

__all__ = ["vq"]


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
