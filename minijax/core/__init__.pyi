from minijax.core.aval import AbstractValue as AbstractValue, ShapedArray as ShapedArray
from minijax.core.trace import Trace as Trace, Tracer as Tracer
from minijax.interpreters.staging import eval_jaxpr as eval_jaxpr
from minijax.transforms.jit.tracing import ensure_compile_time_eval as ensure_compile_time_eval
