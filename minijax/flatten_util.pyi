from minijax.numpy.joining import ravel_pytree as ravel_pytree
