"""Derivatives inside and outside of `shard_map`."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.sharding import Mesh
from minijax.sharding import PartitionSpec as P


@pytest.mark.feature("AD-06")
def test_directions_that_the_user_gives_vary_where_the_values_do() -> None:
    with minijax.cpu_devices(8):
        mesh = Mesh(np.array(minijax.devices()[:4]), ("x",))

    def hessian(block: minijax.Array) -> minijax.Array:
        return minijax.hessian(lambda v: (lax.psum(v, "x") ** 3).sum())(block)

    found = minijax.shard_map(hessian, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(
        jnp.arange(4.0)
    )

    # The sum is 6; forward, all four devices move their own summand at once: 6 * sum * 4.
    np.testing.assert_allclose(found, np.full((4, 1), 144.0))
