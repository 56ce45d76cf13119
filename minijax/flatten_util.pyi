from minijax.numpy.raveling import ravel_pytree as ravel_pytree
