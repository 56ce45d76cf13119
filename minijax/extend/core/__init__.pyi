import minijax.core.jaxpr
from minijax.core.aval import (
    AbstractToken as AbstractToken,
    ShapedArray as ShapedArray,
    abstract_token as abstract_token,
)
from minijax.core.check import check_jaxpr as check_jaxpr
from minijax.core.effects import Effect as Effect
from minijax.core.errors import JaxprTypeError as JaxprTypeError
from minijax.core.jaxpr import (
    ClosedJaxpr as ClosedJaxpr,
    DebugInfo as DebugInfo,
    Jaxpr as Jaxpr,
    Literal as Literal,
    Var as Var,
    jaxprs_in_params as jaxprs_in_params,
    subjaxprs as subjaxprs,
)
from minijax.extend.core import primitives as primitives
from minijax.extend.declaration import (
    DropVar as DropVar,
    Primitive as Primitive,
    concrete_or_error as concrete_or_error,
    jaxpr_as_fun as jaxpr_as_fun,
    mapped_aval as mapped_aval,
    new_jaxpr_eqn as new_jaxpr_eqn,
    no_effects as no_effects,
    primal_dtype_to_tangent_dtype as primal_dtype_to_tangent_dtype,
    unmapped_aval as unmapped_aval,
    valid_jaxtype as valid_jaxtype,
)
from minijax.runtime.array import Token as Token

JaxprEqn = minijax.core.jaxpr.Eqn
