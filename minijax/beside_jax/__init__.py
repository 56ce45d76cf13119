"""JAX in the same process: each library's arrays have its own methods.

Both put theirs on one class of jaxlib's.  Loaded as soon as JAX is, whichever comes first.
"""

from minijax.beside_jax.attributes import share as share
