"""`testing.assert_collectives` counts the collectives of a compiled program."""

import re

import numpy as np
import pytest

import minijax as jax
from minijax.sharding import Mesh, NamedSharding, PartitionSpec
from minijax.testing import assert_collectives


def matmul(x, y):
    return x @ y


@pytest.fixture(scope="module")
def args():
    with jax.cpu_devices(8):
        mesh = Mesh(np.array(jax.devices()), ("x",))
        sharding = NamedSharding(mesh, PartitionSpec("x"))
        yield [jax.ShapeDtypeStruct((8, 8), np.float32, sharding=sharding) for _ in range(2)]


def test_right_counts_give_the_collectives(args):
    found = assert_collectives(matmul, all_gather=1, all_reduce=0)(*args)
    assert found.counts == {"all_gather": 1}


def test_kinds_that_are_not_named_are_not_looked_at(args):
    assert len(assert_collectives(matmul, all_to_all=0)(*args)) == 1


def test_exactly_looks_at_all_kinds(args):
    with pytest.raises(AssertionError, match=r"matmul contains 1 all_gather\."):
        assert_collectives(matmul, exactly=True)(*args)


def test_the_error_shows_the_table_with_lines(args):
    line = f"test_assert_collectives.py:{matmul.__code__.co_firstlineno + 1} in matmul"
    with pytest.raises(AssertionError, match=re.escape(line)) as caught:
        assert_collectives(matmul, all_gather=2, all_reduce=1)(*args)
    text = str(caught.value)
    assert "contains 1 all_gather, 0 all_reduce." in text
    assert "expected  2 all_gather, 1 all_reduce" in text


def test_an_unknown_kind_is_refused():
    with pytest.raises(TypeError, match=r"no collectives of kind 'allgather'") as caught:
        assert_collectives(matmul, allgather=1)
    assert "all_gather" in str(caught.value)
