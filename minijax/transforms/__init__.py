"""Transformations: what users wrap functions with.  One file each."""
