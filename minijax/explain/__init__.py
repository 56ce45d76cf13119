"""What happened and why: repeated compilation, collectives, and the stages of a program."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
