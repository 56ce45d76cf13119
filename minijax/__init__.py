"""minijax: a compiler for array programs.  `import minijax as jax` runs a JAX program."""

import sys

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(
    __name__,
    __file__,
    at_once=(
        "minijax.numpy",
        "minijax.transforms.autodiff.grad",
        "minijax.transforms.vmap",
        *(["minijax.core.beside_jax"] if "jax._src.array" in sys.modules else []),
    ),
)

__version__ = "0.2.0"
