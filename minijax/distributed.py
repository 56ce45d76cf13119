"""Programs of several processes, under the names of jax.distributed."""

from minijax.runtime.distributed import initialize, is_initialized, shutdown

__all__ = ["initialize", "is_initialized", "shutdown"]
