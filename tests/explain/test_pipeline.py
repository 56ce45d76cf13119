"""The stages of a program, from its jaxpr to the pieces that devices hold."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import minijax
from minijax import NamedSharding, P
from minijax import numpy as jnp
from minijax.core import config
from minijax.explain import Stages, stages
from minijax.sharding import AbstractMesh, Mesh

pytestmark = pytest.mark.feature("SD-10")


@pytest.fixture
def mesh() -> Iterator[Mesh]:
    with minijax.cpu_devices(8):
        yield Mesh(np.array(minijax.devices()).reshape(4, 2), ("x", "y"))


@pytest.fixture
def product(mesh: Mesh) -> Stages:
    """The stages of a product over a dimension that is split."""
    x = minijax.device_put(np.ones((8, 16), np.float32), NamedSharding(mesh, P(None, "x")))
    y = minijax.device_put(np.ones((16, 8), np.float32), NamedSharding(mesh, P("x")))
    return stages(lambda x, y: {"z": jnp.dot(x, y) + 1.0})(x, y)


def test_stages_come_in_order(product: Stages) -> None:
    assert list(product) == [
        "jaxpr",
        "stablehlo",
        "propagated",
        "hlo",
        "partitioned",
        "optimized",
        "shards",
    ]


@pytest.mark.parametrize(
    ("stage", "part"),
    [
        ("jaxpr", "dot_general["),
        ("stablehlo", "stablehlo.dot_general"),
        ("hlo", "f32[8,16]{1,0} parameter(0), sharding="),
        ("partitioned", "f32[8,4]{1,0} parameter(0)"),
        ("partitioned", "all-reduce("),
        ("optimized", "is_scheduled=true"),
        ("shards", "  [0:8, 4:8] on cpu:2, cpu:3"),
        ("shards", "result['z']: f32[8,8]"),
    ],
)
def test_stage_shows_its_form(product: Stages, stage: str, part: str) -> None:
    assert part in product[stage]


def test_propagated_stage_shows_shardings_that_nobody_gave(mesh: Mesh) -> None:
    x = minijax.device_put(np.ones((8, 4), np.float32), NamedSharding(mesh, P("x")))
    found = stages(lambda x: x * 2.0)(x)
    given = '-> (tensor<8x4xf32> {jax.result_info = "result"'
    assert f"{given}}})" in found["stablehlo"]
    assert f'{given}, sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>' in found["propagated"]


def test_stages_print_under_their_names(product: Stages) -> None:
    text = repr(product)
    assert text.startswith("<lambda>: jaxpr\n{ lambda")
    assert "\n\n<lambda>: partitioned\nHloModule" in text
    assert "metadata=" not in text


def test_stages_of_one_device_are_not_partitioned() -> None:
    found = stages(minijax.jit(lambda x: x * 2.0))(np.ones(4, np.float32))
    assert list(found) == ["jaxpr", "stablehlo", "optimized", "shards"]


def test_stages_on_an_abstract_mesh_end_before_devices() -> None:
    sharding = NamedSharding(AbstractMesh((256,), ("x",)), P("x"))
    x = minijax.ShapeDtypeStruct((256,), np.float32, sharding=sharding)
    assert list(stages(lambda x: x * 2.0)(x)) == ["jaxpr", "stablehlo", "propagated"]


def test_stages_of_gspmd_have_no_propagation_by_shardy(mesh: Mesh) -> None:
    x = minijax.device_put(np.ones((8, 4), np.float32), NamedSharding(mesh, P("x")))
    with config.use_shardy_partitioner(False):
        found = stages(lambda x: x.sum())(x)
    assert "propagated" not in found
    assert "all-reduce" in found["partitioned"]


def test_argument_that_is_not_used_says_so(mesh: Mesh) -> None:
    x = minijax.device_put(np.ones((8, 4), np.float32), NamedSharding(mesh, P("x")))
    assert "args[1]: f32[8,4], not used" in stages(lambda x, y: x * 2.0)(x, x)["shards"]


def test_stages_of_no_function_are_refused() -> None:
    not_a_function: Any = 3
    with pytest.raises(TypeError, match=r"explain\.stages: expected a function"):
        stages(not_a_function)


@pytest.mark.feature("PG-06")
@pytest.mark.parametrize("unstacked", [False, True])
def test_stages_of_a_pmap_say_which_device_holds_which_slice(unstacked: bool) -> None:
    with minijax.cpu_devices(2), config.pmap_results_unstacked(unstacked):
        mapped = minijax.pmap(lambda x: 2 * x)
        found = stages(mapped)(np.ones((2, 3), np.float32))
    assert list(found) == ["jaxpr", "stablehlo", "optimized", "shards"]
    piece = "[1, 0:3]" if unstacked else "[1:2, 0:3]"
    assert f"  {piece} on cpu:1" in found["shards"]
