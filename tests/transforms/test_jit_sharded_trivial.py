"""Jitted functions that compute nothing, on one device and on several."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P

X = np.arange(8, dtype=np.float32)


@pytest.fixture
def split() -> Iterator[Any]:
    jax.clear_caches()  # equal programs of other tests would serve
    with jax.cpu_devices(8):
        mesh = Mesh(np.array(jax.devices()[:2]), "x")
        yield jax.device_put(X, NamedSharding(mesh, P("x")))


def facts(tree: Any) -> list[Any]:
    return [
        (x.sharding, x.committed, x.dtype, x.weak_type, np.asarray(x).tolist())
        for x in jax.tree.leaves(tree)
    ]


def compiled(call: Callable[[], Any]) -> int:
    before = jax.cache_stats()["compile"].misses
    call()
    return jax.cache_stats()["compile"].misses - before


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[Any], tuple[Any, ...]]]] = {
    "forwarded": (lambda a: a, lambda x: (x,)),
    "twice": (lambda a: (a, a), lambda x: (x,)),
    "swapped": (lambda a, b: (b, a), lambda x: (x, X)),
    "constants": (lambda a: (a, 3, X), lambda x: (x,)),
    "constant alone": (lambda: (3, X), lambda x: ()),
    "host value": (lambda a: a, lambda x: (X,)),
    "Python scalar": (lambda a: a, lambda x: (2.0,)),
    "one device": (lambda a, b: (a, b), lambda x: (jax.device_put(X, jax.devices()[5]), 1)),
    "nothing": (lambda a: None, lambda x: (x,)),
}


@pytest.mark.feature("JT-13", "JT-15")
@pytest.mark.parametrize("name", PROGRAMS)
def test_first_call_compiles_nothing_and_gives_what_later_ones_give(split: Any, name: str) -> None:
    function, args_of = PROGRAMS[name]
    args = args_of(split)
    f = jax.jit(function)

    assert compiled(lambda: f(*args)) == 0

    assert facts(jax.jit(function)(*args)) == facts(f(*args))


def test_third_call_is_answered_in_cpp(split: Any) -> None:
    f = jax.jit(lambda a: a)
    there = jax.device_put(X, jax.devices()[5])
    f(there)
    f(there)
    before = jax.cache_stats()

    f(there)

    assert jax.cache_stats() == before


@pytest.mark.parametrize("calls", [1, 2, 3])
def test_deleting_a_result_leaves_the_argument(split: Any, calls: int) -> None:
    f = jax.jit(lambda a: a)
    for _ in range(calls):
        out = f(split)

    out.delete()

    np.testing.assert_array_equal(split, X)
    assert out is not split


@pytest.mark.parametrize("calls", [1, 2])
def test_donating_a_result_leaves_the_argument(split: Any, calls: int) -> None:
    f = jax.jit(lambda a: a)
    for _ in range(calls):
        out = f(split)

    jax.jit(lambda a: a + 1, donate_argnums=0)(out)

    assert out.is_deleted()
    np.testing.assert_array_equal(split, X)


def test_donated_argument_is_gone(split: Any) -> None:
    out = jax.jit(lambda a: a, donate_argnums=0)(split)

    assert split.is_deleted()
    np.testing.assert_array_equal(out, X)


def test_mesh_in_force_holds(split: Any) -> None:
    mesh = split.sharding.mesh
    f = jax.jit(lambda a: (a, 2))

    with jax.set_mesh(mesh):
        out = f(X)

    assert [x.sharding for x in out] == [NamedSharding(mesh, P())] * 2


def test_given_placement_is_compiled_for(split: Any) -> None:
    whole = NamedSharding(split.sharding.mesh, P())

    assert jax.jit(lambda a: a, out_shardings=whole)(split).sharding == whole


def test_devices_that_disagree_are_refused(split: Any) -> None:
    with pytest.raises(ValueError, match="cannot run on different devices"):
        jax.jit(lambda a, b: (a, b))(split, jax.device_put(X, jax.devices()[5]))


def test_deleted_argument_is_refused(split: Any) -> None:
    split.delete()

    with pytest.raises(RuntimeError, match="deleted"):
        jax.jit(lambda a: a)(split)


def test_random_keys_are_forwarded(split: Any) -> None:
    key = jax.random.key(7)
    f = jax.jit(lambda k: k)

    for _ in range(2):
        assert jnp.array_equal(jax.random.key_data(f(key)), jax.random.key_data(key))


@pytest.mark.feature("JT-14", "AO-06")
def test_lowering_gives_a_module_all_the_same(split: Any) -> None:
    lowered = jax.jit(lambda a: a).lower(split)

    assert "return %arg0 : tensor<8xf32>" in lowered.as_text()
    np.testing.assert_array_equal(lowered.compile()(split), X)
