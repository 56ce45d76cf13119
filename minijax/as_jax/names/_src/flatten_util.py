"""Needed by blackjax."""

from minijax.core import deferral
from minijax.numpy.joining import ravel_pytree as ravel_pytree

deferral.publish(globals())
