"""Derivatives of functions, and functions with rules of their own."""
