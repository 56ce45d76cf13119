"""What tests need, of this project and of programs written with it: a leaf of the layers."""

from minijax.explain.expectations import assert_collectives

__all__ = ["assert_collectives"]
