"""Python functions on the hosts of devices far away: the names, which orbax imports."""

from minijax.as_jax.names.experimental.colocated_python import (
    func as func,
    serialization as serialization,
)
from minijax.as_jax.placeholders import (
    colocated_cpu_devices as colocated_cpu_devices,
    colocated_python as colocated_python,
    colocated_python_class as colocated_python_class,
)
