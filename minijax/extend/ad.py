"""Registration of derivatives for primitives of users' own.  Mirrors jax.interpreters.ad."""

import minijax.interpreters.jvp
import minijax.interpreters.structural
from minijax.core import deferral
from minijax.core.primitive import Zero as Zero
from minijax.extend.declaration import (
    defjvp as defjvp,
)
from minijax.extend.declaration import (
    deflinear2 as deflinear2,
)
from minijax.extend.declaration import (
    primitive_jvps as primitive_jvps,
)
from minijax.extend.declaration import (
    primitive_transposes as primitive_transposes,
)
from minijax.extend.declaration import (
    zeros_like as zeros_like,
)

UndefinedPrimal = minijax.interpreters.jvp.UndefinedPrimal
add_jaxvals = minijax.interpreters.structural.add_tangents
instantiate_zeros = minijax.interpreters.structural.instantiate
is_undefined_primal = minijax.interpreters.jvp.is_linear

deferral.publish(globals())
