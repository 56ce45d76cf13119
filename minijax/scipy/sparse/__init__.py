"""Linear systems whose matrices need not be written out, by part."""

from minijax.scipy.sparse import linalg

__all__ = ["linalg"]
