"""Named by orbax, for back ends whose devices are far away."""

import jaxlib._jax

DeviceList = jaxlib._jax.DeviceList
