"""Needed by blackjax."""

from minijax.flatten_util import ravel_pytree as ravel_pytree
