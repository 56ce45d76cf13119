"""Laws of shardings in types: a rule either refuses, or changes no value and no gradient.

Each record of `tests/lax` is called with arguments split over random dimensions.
"""

import functools
import random
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import minijax
from minijax.core import tree
from minijax.core.errors import ShardingTypeError
from minijax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from tests.lax.records import Record
from tests.lax.test_laws import RECORDS, assert_close, wide_if

SIZES = {"x": 2, "y": 2}

# XLA's CPU client has no collective that combines elements so.
_NO_COLLECTIVE = ("reduce_and", "reduce_or", "reduce_xor", "reduce-magnitude")
_RUNNABLE = [r for r in RECORDS if not r.id.startswith(_NO_COLLECTIVE)]


@pytest.fixture(scope="module")
def mesh() -> Iterator[Mesh]:
    with minijax.cpu_devices(4):
        yield minijax.make_mesh(
            tuple(SIZES.values()), tuple(SIZES), axis_types=(AxisType.Explicit,) * 2
        )


def random_spec(rng: random.Random, shape: tuple[int, ...]) -> PartitionSpec:
    """A spec that divides the shape; each axis is used once at most."""
    entries: list[Any] = [()] * len(shape)
    for name, size in SIZES.items():
        fitting = [d for d, n in enumerate(shape) if n and n % (size * 2 ** len(entries[d])) == 0]
        if fitting and rng.random() < 0.7:
            dim = rng.choice(fitting)
            entries[dim] = (*entries[dim], name)
    return PartitionSpec(*entries)


def split(record: Record, args: tuple[Any, ...], mesh: Mesh, seed: int) -> list[Any]:
    """The arguments, each split over random dimensions."""
    rng = random.Random(zlib.crc32(f"{record.id} {seed}".encode()))
    shardings = [NamedSharding(mesh, random_spec(rng, np.shape(x))) for x in args]
    return [minijax.device_put(x, s) for x, s in zip(args, shardings, strict=True)]


@pytest.mark.slow
@pytest.mark.feature("SD-05", "SD-06")
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("record", _RUNNABLE, ids=lambda record: record.id)
def test_split_arguments_give_equal_values_or_are_refused(
    record: Record, seed: int, mesh: Mesh
) -> None:
    dtype = record.dtypes[0]
    args = record.make_args(dtype)
    with wide_if(dtype), np.errstate(all="ignore"):
        try:
            found = minijax.jit(record.call)(*split(record, args, mesh, seed))
        except ShardingTypeError:
            return
        assert_close(found, record.oracle(*args), record.tolerance_for(dtype))


# XLA:CPU gathers these cotangents by columns, and its own transform then refuses their order; from
# JAX it does so on Auto axes, too.
_REFUSED_BY_XLA = ("fft-back", "fft-three")
_DIFFERENTIABLE = [r for r in RECORDS if r.grad and r.id not in _REFUSED_BY_XLA]


@pytest.mark.slow
@pytest.mark.feature("SD-05", "SD-06")
@pytest.mark.parametrize("record", _DIFFERENTIABLE, ids=lambda record: record.id)
def test_gradients_of_split_arguments_are_equal_and_split_alike(record: Record, mesh: Mesh) -> None:
    dtype = record.dtypes[0]
    args = record.make_args(dtype)

    def total(*xs: Any) -> Any:
        return functools.reduce(
            minijax.numpy.add, [abs(leaf).sum() for leaf in tree.leaves(record.call(*xs))]
        )

    # A gradient may need no argument: then the mesh in force tells where it lives.
    with wide_if(dtype), np.errstate(all="ignore"), minijax.set_mesh(mesh):
        gradient = minijax.jit(minijax.grad(total, record.grad))
        given = split(record, args, mesh, 0)
        try:
            found = gradient(*given)
        except ShardingTypeError:
            return
        assert_close(found, gradient(*args), record.tolerance_for(dtype) * 10)
        for position, ct in zip(record.grad, found, strict=True):
            assert minijax.typeof(ct).sharding == minijax.typeof(given[position]).sharding
