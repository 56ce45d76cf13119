"""Taylor mode.  Mirrors jax.experimental.jet."""

from minijax.core import deferral
from minijax.transforms.autodiff.jet import jet as jet

deferral.publish(globals())
