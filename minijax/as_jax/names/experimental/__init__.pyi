from minijax.as_jax.names.experimental import (
    array_serialization as array_serialization,
    colocated_python as colocated_python,
    hijax as hijax,
)
from minijax.as_jax.placeholders import EArray as EArray, cur_qdd as cur_qdd
