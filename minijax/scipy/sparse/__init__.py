"""Linear systems whose matrices need not be written out, by part."""

from minijax.scipy.sparse import linalg

__all__ = ["linalg"]


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
