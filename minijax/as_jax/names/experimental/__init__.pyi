from minijax.as_jax.names.experimental import hijax as hijax
from minijax.as_jax.placeholders import EArray as EArray
