"""Names that jax.interpreters.pxla had in earlier versions of JAX."""

from minijax.runtime.handlers import InputsHandler, ResultsHandler
from minijax.transforms.older_arrays import (
    ShardedDeviceArray,
    device_put,
    make_sharded_device_array,
)

__all__ = [
    "InputsHandler",
    "ResultsHandler",
    "ShardedDeviceArray",
    "device_put",
    "make_sharded_device_array",
]
