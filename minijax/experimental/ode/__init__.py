"""Ordinary differential equations.  Mirrors jax.experimental.ode."""

from minijax.core import deferral
from minijax.experimental.ode.initial_values import odeint as odeint

deferral.publish(globals())
