"""Repeated calls over many devices give what the first one gave, whatever is to be moved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import minijax as jax
from minijax.sharding import AxisType, NamedSharding
from minijax.sharding import PartitionSpec as P


@pytest.fixture
def split() -> Iterator[Any]:
    """An array split over eight devices."""
    with jax.cpu_devices(8):
        mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
        yield jax.device_put(np.arange(16, dtype=np.float32), NamedSharding(mesh, P("data")))


@pytest.mark.parametrize(
    "place", [np.float32, float, jax.device_put], ids=["numpy", "float", "array"]
)
def test_repeated_call_moves_what_is_not_on_the_mesh(split: Any, place: Any) -> None:
    scaled = jax.jit(lambda x, factor: x * factor)

    found = [scaled(split, place(factor)) for factor in (2.0, 3.0, 4.0)]

    np.testing.assert_array_equal(found, np.outer([2, 3, 4], np.arange(16)))


def test_donating_an_array_given_twice_is_refused(split: Any) -> None:
    both = jax.jit(lambda x, y: (x + 1, y + 2), donate_argnums=(0, 1))

    with pytest.raises(RuntimeError, match="donated argument 0 is given more than once"):
        both(split, split)


def test_copies_of_one_array_on_a_mesh_can_both_be_donated(split: Any) -> None:
    both = jax.jit(lambda x, y: (x + 1, y + 2), donate_argnums=(0, 1))
    one = jax.device_put(np.float32(3))
    everywhere = NamedSharding(split.sharding.mesh, P())

    found = both(jax.device_put(one, everywhere), jax.device_put(one, everywhere))

    assert list(map(float, found)) == [4, 5]
    assert float(one) == 3
