"""`jax` means minijax in this process, from the import of this module on.

    import minijax.as_jax
    import jax.numpy as jnp  # minijax.numpy

Modules are the same objects: `jax.numpy is minijax.numpy`.  Only the package itself is another one,
whose `__version__` is that of the JAX whose interface it has.  `uninstall` undoes it.
"""

from minijax.as_jax.modules import install as install
from minijax.as_jax.modules import uninstall as uninstall
from minijax.as_jax.version import VERSION as VERSION
