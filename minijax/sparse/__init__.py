"""Sparse arrays.  `minijax.experimental.sparse` is what users see of it."""

from minijax.sparse import functions, layouts, products, rows

__all__ = ["functions", "layouts", "products", "rows"]
