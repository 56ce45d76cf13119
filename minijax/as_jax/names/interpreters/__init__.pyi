from minijax.as_jax.names.interpreters import partial_eval as partial_eval, pxla as pxla, xla as xla
from minijax.extend import ad as ad, batching as batching, mlir as mlir
