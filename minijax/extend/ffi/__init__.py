"""Calls of functions in machine code; `minijax.ffi` is their public module."""
