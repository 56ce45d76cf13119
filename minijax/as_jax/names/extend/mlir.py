"""What `jax.interpreters.mlir` has besides."""

import jaxlib.mlir.ir

import minijax.lowering.stablehlo
from minijax.as_jax.rules import (
    aval_to_ir_types as aval_to_ir_types,
    emit_python_callback as emit_python_callback,
    ir_constant as ir_constant,
)
from minijax.core import deferral

ir = jaxlib.mlir.ir
dtype_to_ir_type = minijax.lowering.stablehlo.element_type

deferral.publish(globals())
