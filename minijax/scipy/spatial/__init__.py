"""Geometry: rotations, in `transform`."""
