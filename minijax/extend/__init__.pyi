from minijax.extend import (
    ad as ad,
    backend as backend,
    batching as batching,
    core as core,
    hooks as hooks,
    mlir as mlir,
)
