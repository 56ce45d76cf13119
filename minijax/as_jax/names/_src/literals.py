"""Named by equinox and jaxtyping, for values that do not exist in minijax."""
