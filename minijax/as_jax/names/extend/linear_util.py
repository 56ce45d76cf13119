"""Functions with transformations around them."""

from minijax.as_jax.functions import (
    WrappedFun as WrappedFun,
    transformation as transformation,
    transformation2 as transformation2,
    transformation_with_aux as transformation_with_aux,
    transformation_with_aux2 as transformation_with_aux2,
    wrap_init as wrap_init,
)
from minijax.core import deferral

deferral.publish(globals())
