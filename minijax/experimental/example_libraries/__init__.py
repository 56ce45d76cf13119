"""Layers and optimizers; `minijax.example_libraries` is their public package."""
