"""Ordinary differential equations.  `minijax.experimental.ode` is what users see of it."""
