"""One execution over several devices: what is compiled, given, kept and returned."""

import gc
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import minijax
from minijax import NamedSharding, P, random
from minijax import numpy as jnp
from minijax.core import config
from minijax.runtime import compile as compilation
from minijax.runtime import placement
from minijax.sharding import Mesh


@pytest.fixture
def mesh() -> Iterator[Mesh]:
    with minijax.cpu_devices(8):
        yield Mesh(np.array(minijax.devices()).reshape(4, 2), ("x", "y"))


@pytest.mark.feature("AR-02")
@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (True, "bool"),
        (3, "int32"),
        (2.5, "float32"),
        (1 + 2j, "complex64"),
        (np.int8(3), "int8"),
        (np.float64(2.5), "float32"),
        (np.arange(8), "int32"),
        (np.arange(8, dtype=np.uint64), "uint32"),
        (np.arange(8)[::-1], "int32"),
        (jnp.bfloat16(1.5), "bfloat16"),
    ],
    ids=str,
)
def test_argument_of_each_kind_is_whole_on_every_device(mesh: Mesh, value: Any, dtype: str) -> None:
    with minijax.set_mesh(mesh):
        out = minijax.jit(lambda x: x)(value)
    assert out.dtype == dtype
    for shard in out.addressable_shards:
        np.testing.assert_array_equal(shard.data, value)


@pytest.mark.feature("AR-02")
def test_array_of_keys_is_cut_as_an_array(mesh: Mesh) -> None:
    keys = random.split(random.key(0), 8)
    split = minijax.device_put(keys, NamedSharding(mesh, P("x")))
    for shard in split.addressable_shards:
        expected = random.key_data(keys)[shard.index[0]]
        np.testing.assert_array_equal(random.key_data(shard.data), expected)


@pytest.mark.feature("JT-24")
@pytest.mark.parametrize("with_shardy", [True, False])
def test_compilation_is_told_of_partitions_and_partitioner(
    mesh: Mesh, monkeypatch: pytest.MonkeyPatch, with_shardy: bool
) -> None:
    seen: list[Any] = []
    client = SimpleNamespace(compile_and_load=lambda *given: seen.extend(given))
    monkeypatch.setattr(placement, "native_devices", list)
    devices = tuple(
        SimpleNamespace(id=d.id, client=client, platform="cpu") for d in mesh.flat_devices[::-1]
    )
    with config.disable_most_optimizations(False):
        wanted = compilation.options_for(
            devices,
            options={"xla_cpu_enable_fast_math": True},
            free=([True], [False]),
            use_shardy=with_shardy,
        )
        compilation.compile_module("module", devices, wanted)
    module, given_devices, options = seen
    build = options.executable_build_options
    assert (module, given_devices) == ("module", list(devices))
    assert (build.num_replicas, build.num_partitions) == (1, 8)
    assert build.use_spmd_partitioning
    assert build.use_shardy_partitioner is with_shardy
    assert list(build.allow_spmd_sharding_propagation_to_parameters) == [True]
    assert list(build.allow_spmd_sharding_propagation_to_output) == [False]
    assert options.env_option_overrides == [("xla_cpu_enable_fast_math", True)]


@pytest.mark.usefixtures("young_heap")
@pytest.mark.feature("JT-31")
def test_program_keeps_its_constants_and_callbacks(mesh: Mesh) -> None:
    def make() -> Any:
        table = jnp.arange(8192.0)
        double = lambda x: 2 * np.asarray(x)
        return minijax.jit(
            lambda x, unused: minijax.pure_callback(double, x, x) + table[: x.size]
        ).lower(x, x)

    x = minijax.device_put(np.arange(8, dtype=np.float32), NamedSharding(mesh, P("x")))
    compiled = make().compile()
    gc.collect()
    for _ in range(2):
        np.testing.assert_array_equal(compiled(x, x), 3 * np.arange(8))


@pytest.mark.feature("JT-31", "LG-06")
def test_result_over_devices_that_is_not_finite_is_told(mesh: Mesh) -> None:
    x = minijax.device_put(np.arange(8, dtype=np.float32), NamedSharding(mesh, P("x")))
    with config.debug_nans(True), pytest.raises(FloatingPointError, match="log"):
        minijax.jit(lambda x: jnp.log(x - 1))(x)


def test_deleted_array_says_so_to_every_program(mesh: Mesh) -> None:
    add = minijax.jit(lambda x: x + 1)
    for sharding in NamedSharding(mesh, P("x")), mesh.flat_devices[0]:
        x = minijax.device_put(np.arange(8, dtype=np.float32), sharding)
        x.delete()
        with pytest.raises(RuntimeError, match="the array has been deleted"):
            add(x)
