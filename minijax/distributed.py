"""Programs of several processes, under the names of jax.distributed."""

from minijax.core import deferral
from minijax.runtime.processes.distributed import (
    initialize as initialize,
    is_initialized as is_initialized,
    on_failure as on_failure,
    shutdown as shutdown,
)
from minijax.runtime.processes.launching import main as main

deferral.publish(globals())

if __name__ == "__main__":
    raise SystemExit(main())
