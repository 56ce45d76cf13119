"""Functions with derivatives of their own.  Mirrors jax.custom_derivatives (0.10)."""

from minijax.transforms.custom_jvp import custom_jvp, custom_jvp_call_p
from minijax.transforms.custom_rules import SymbolicZero, zero_from_primal
from minijax.transforms.custom_vjp import (
    CustomVJPPrimal,
    custom_gradient,
    custom_vjp,
    custom_vjp_call_p,
    custom_vjp_primal_tree_values,
)
from minijax.transforms.grad import closure_convert
from minijax.transforms.linear_call import linear_call, linear_call_p

__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_jvp_call_p",
    "custom_vjp",
    "custom_vjp_call_p",
    "custom_vjp_primal_tree_values",
    "linear_call",
    "linear_call_p",
    "zero_from_primal",
]
