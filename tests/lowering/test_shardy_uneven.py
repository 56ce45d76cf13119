"""Placements that would cut a dimension into unequal parts: refused wherever they enter.

Shardy would take the largest part of them that divides, and say nothing.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import minijax
from minijax import NamedSharding, P, lax
from minijax.sharding import Mesh

HOST = np.ones((10, 4), np.float32)

Entry = Callable[[NamedSharding], Any]


@pytest.fixture
def mesh() -> Iterator[Mesh]:
    with minijax.cpu_devices(8):
        yield Mesh(np.array(minijax.devices()).reshape(4, 2), ("x", "y"))


def constrained(sharding: NamedSharding) -> Callable[[Any], Any]:
    return lambda x: lax.with_sharding_constraint(x, sharding)


def doubled(x: Any) -> Any:
    return x * 2.0


ENTRIES: dict[str, Entry] = {
    "constraint": lambda s: minijax.jit(constrained(s))(HOST),
    "constraint outside of jit": lambda s: constrained(s)(minijax.numpy.asarray(HOST)),
    "constraint in vmap": lambda s: minijax.jit(minijax.vmap(constrained(s), 1))(HOST),
    "constraint in scan": lambda s: minijax.jit(
        lambda x: lax.scan(lambda carry, row: (carry, constrained(s)(row)), 0.0, x)
    )(HOST.T),
    "constraint on keys": lambda s: minijax.jit(
        lambda key: constrained(s)(minijax.random.split(key, 10))
    )(minijax.random.key(0)),
    "device_put": lambda s: minijax.device_put(HOST, s),
    "device_put in jit": lambda s: minijax.jit(lambda x: minijax.device_put(x, s))(HOST),
    "in_shardings": lambda s: minijax.jit(doubled, in_shardings=s)(HOST),
    "out_shardings": lambda s: minijax.jit(doubled, out_shardings=s)(HOST),
    "in_shardings of an inner jit": lambda s: minijax.jit(
        lambda x: minijax.jit(doubled, in_shardings=s)(x)
    )(HOST),
    "out_shardings of an inner jit": lambda s: minijax.jit(
        lambda x: minijax.jit(doubled, out_shardings=s)(x)
    )(HOST),
    "a described argument": lambda s: minijax.jit(doubled).lower(
        minijax.ShapeDtypeStruct(HOST.shape, HOST.dtype, sharding=s)
    ),
}


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_unequal_parts_are_refused(entry: Entry, mesh: Mesh) -> None:
    with pytest.raises(ValueError, match="dimension 0 of size 10 cannot be cut into 4 equal parts"):
        entry(NamedSharding(mesh, P("x")))


def test_result_that_cannot_be_cut_is_named(mesh: Mesh) -> None:
    shardings = {"whole": None, "sum": NamedSharding(mesh, P(("x", "y")))}
    total = minijax.jit(lambda x: {"whole": x, "sum": x.sum(0)}, out_shardings=shardings)
    with pytest.raises(ValueError, match=r"out_shardings of result\['sum'\]: .*8 equal parts"):
        total(HOST)


def test_dimension_without_elements_is_cut_into_parts_without_elements(mesh: Mesh) -> None:
    sharding = NamedSharding(mesh, P("x"))
    empty = minijax.device_put(np.ones((0, 4), np.float32), sharding)
    out = minijax.jit(constrained(sharding), out_shardings=sharding)(empty)
    assert out.shape == (0, 4)


def test_axis_of_size_one_cuts_any_dimension(mesh: Mesh) -> None:
    column = Mesh(mesh.devices.reshape(8, 1), ("all", "one"))
    out = minijax.jit(constrained(NamedSharding(column, P("one"))))(HOST)
    np.testing.assert_array_equal(out, HOST)


def test_scalar_takes_the_empty_spec(mesh: Mesh) -> None:
    out = minijax.jit(lambda x: constrained(NamedSharding(mesh, P()))(x.sum()))(HOST)
    assert out == 40


def test_what_the_partitioner_chooses_divides(mesh: Mesh) -> None:
    """A slice of three rows of eight over four devices: no placement of ours, no error."""
    x = minijax.device_put(np.ones((8, 4), np.float32), NamedSharding(mesh, P("x")))
    out = minijax.jit(lambda x: x[:3] * 2.0)(x)
    assert out.sharding.shard_shape(out.shape)
    np.testing.assert_array_equal(out, np.full((3, 4), 2.0))
