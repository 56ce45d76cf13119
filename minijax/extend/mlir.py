"""Registration of lowering rules for primitives of users' own.  Mirrors jax.interpreters.mlir."""

import minijax.lowering.stablehlo
from minijax.core import deferral
from minijax.extend.declaration import (
    lower_fun as lower_fun,
    register_lowering as register_lowering,
)

LoweringRuleContext = minijax.lowering.stablehlo.LoweringContext
aval_to_ir_type = minijax.lowering.stablehlo.type_of

deferral.publish(globals())
