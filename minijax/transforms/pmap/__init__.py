"""`pmap`: each device works on a slice of the arguments."""

from minijax.transforms.pmap.mapped import pmap

__all__ = ["pmap"]
