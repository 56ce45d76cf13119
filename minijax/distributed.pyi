"""Programs of several processes, under the names of jax.distributed."""

from minijax.processes.distributed import (
    initialize as initialize,
    is_initialized as is_initialized,
    on_failure as on_failure,
    shutdown as shutdown,
)
from minijax.processes.launching import main as main
