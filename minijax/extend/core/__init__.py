"""Jaxprs, types and primitives, for tools and rules of users' own.  Mirrors jax.extend.core."""

from minijax.core.aval import AbstractToken, ShapedArray, abstract_token
from minijax.core.check import check_jaxpr
from minijax.core.effects import Effect
from minijax.core.errors import JaxprTypeError
from minijax.core.jaxpr import (
    ClosedJaxpr,
    DebugInfo,
    Jaxpr,
    Literal,
    Var,
    jaxprs_in_params,
    subjaxprs,
)
from minijax.core.jaxpr import Eqn as JaxprEqn
from minijax.extend.core import primitives
from minijax.extend.declaration import (
    DropVar,
    Primitive,
    concrete_or_error,
    jaxpr_as_fun,
    mapped_aval,
    new_jaxpr_eqn,
    no_effects,
    primal_dtype_to_tangent_dtype,
    unmapped_aval,
    valid_jaxtype,
)
from minijax.runtime.array import Token

__all__ = [
    "AbstractToken",
    "ClosedJaxpr",
    "DebugInfo",
    "DropVar",
    "Effect",
    "Jaxpr",
    "JaxprEqn",
    "JaxprTypeError",
    "Literal",
    "Primitive",
    "ShapedArray",
    "Token",
    "Var",
    "abstract_token",
    "check_jaxpr",
    "concrete_or_error",
    "jaxpr_as_fun",
    "jaxprs_in_params",
    "mapped_aval",
    "new_jaxpr_eqn",
    "no_effects",
    "primal_dtype_to_tangent_dtype",
    "primitives",
    "subjaxprs",
    "unmapped_aval",
    "valid_jaxtype",
]


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
