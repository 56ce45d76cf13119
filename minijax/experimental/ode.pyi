"""Ordinary differential equations.  Mirrors jax.experimental.ode."""

from minijax.ode.initial_values import odeint as odeint
