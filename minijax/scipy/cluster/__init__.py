"""Clusters of points, by part."""

from minijax.scipy.cluster import vq

__all__ = ["vq"]
