"""Functions with derivatives of their own.  Mirrors jax.custom_derivatives (0.10)."""

from minijax.core import deferral
from minijax.transforms.autodiff.custom_jvp import (
    SymbolicZero as SymbolicZero,
    custom_jvp as custom_jvp,
    custom_jvp_call_p as custom_jvp_call_p,
    zero_from_primal as zero_from_primal,
)
from minijax.transforms.autodiff.custom_vjp import (
    CustomVJPPrimal as CustomVJPPrimal,
    custom_gradient as custom_gradient,
    custom_vjp as custom_vjp,
    custom_vjp_call_p as custom_vjp_call_p,
    custom_vjp_primal_tree_values as custom_vjp_primal_tree_values,
)
from minijax.transforms.autodiff.grad import closure_convert as closure_convert
from minijax.transforms.autodiff.linear_call import (
    linear_call as linear_call,
    linear_call_p as linear_call_p,
)

deferral.publish(globals())
