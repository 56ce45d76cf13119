"""Geometry: rotations, in `transform`."""

from minijax.scipy.spatial import transform

__all__ = ["transform"]
