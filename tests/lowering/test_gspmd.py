"""GSPMD, Shardy's predecessor, behind a setting: the same programs with the same meaning."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import minijax
from minijax import NamedSharding, P, lax
from minijax import numpy as jnp
from minijax.core import config
from minijax.core.meshes import AxisType
from minijax.runtime import compile as compilation
from minijax.sharding.mesh import Mesh

pytestmark = pytest.mark.feature("SD-11")

OPEN = P.UNCONSTRAINED


@pytest.fixture
def mesh() -> Iterator[Mesh]:
    with minijax.cpu_devices(8):
        yield Mesh(np.array(minijax.devices()).reshape(4, 2), ("x", "y"))


def constrain(x: Any, *entries: Any) -> Any:
    return lax.with_sharding_constraint(x, P(*entries))


def loss(params: Any, x: Any) -> Any:
    first, second = params
    return jnp.mean((jnp.tanh(x @ first) @ second) ** 2)


def fully_sharded(x: Any, layers: Any) -> Any:
    def layer(x: Any, w: Any) -> Any:
        return constrain(jnp.tanh(x @ w), "x"), None

    return lax.scan(layer, x, layers)[0]


# Each program with the shapes and specs of its arguments.
PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[tuple[int, ...], P]]]] = {
    "elementwise": (lambda x, y: jnp.sin(x) * y, [((8, 4), P("x", "y"))] * 2),
    "broadcast": (lambda x, b: x + b, [((8, 4), P("x", "y")), ((4,), P("y"))]),
    "several axes": (lambda x: x * 2.0, [((16, 4), P(("x", "y")))]),
    "axes in reverse": (lambda x: x * 2.0, [((16, 4), P(("y", "x")))]),
    "replicated": (lambda x: x - 1.0, [((8, 4), P())]),
    "rows": (jnp.dot, [((8, 16), P("x")), ((16, 8), P())]),
    "columns": (jnp.dot, [((8, 16), P()), ((16, 8), P(None, "y"))]),
    "contracted": (jnp.dot, [((8, 16), P(None, "x")), ((16, 8), P("x"))]),
    "batch": (
        lambda x, y: jnp.einsum("bij,bjk->bik", x, y),
        [((8, 4, 6), P("x")), ((8, 6, 4), P("x", None, "y"))],
    ),
    "softmax": (lambda x: minijax.nn.softmax(x, axis=1), [((8, 16), P("x", "y"))]),
    "sort": (lambda x: jnp.sort(x, axis=1), [((8, 16), P("x", "y"))]),
    "cumulative sum": (lambda x: jnp.cumsum(x, axis=1), [((8, 16), P("x"))]),
    "reshape": (lambda x: x.reshape(4, 2, 16), [((8, 16), P("x"))]),
    "transpose": (jnp.transpose, [((8, 16), P("x", "y"))]),
    "constraint": (lambda x: constrain(x * 2.0, None, "y") + 1.0, [((8, 16), P("x"))]),
    "open dimension": (lambda x: constrain(x * 2.0, OPEN, "y"), [((8, 16), P("x"))]),
    "constraint in vmap": (
        minijax.vmap(lambda x: constrain(x * 2.0, "y")),
        [((8, 16), P("x"))],
    ),
    "scan": (fully_sharded, [((8, 16), P("x")), ((3, 16, 16), P(None, "x", "y"))]),
    "while": (
        lambda x: lax.while_loop(lambda x: jnp.sum(x) < 99.0, lambda x: x * x + 1.0, x),
        [((8, 4), P("x", "y"))],
    ),
    "gradient": (
        lambda a, b, x: minijax.grad(loss)((a, b), x),
        [((16, 8), P(None, "y")), ((8, 4), P("y")), ((8, 16), P("x"))],
    ),
    "checkpointed gradient": (
        minijax.grad(lambda x: jnp.sum(minijax.checkpoint(lambda x: constrain(x, "x") ** 3)(x))),
        [((8, 4), P("x"))],
    ),
    "call": (
        lambda x: minijax.jit(lambda x: constrain(x * 2.0, None, "x"))(x) + 1.0,
        [((8, 4), P("x"))],
    ),
    "random": (
        lambda x: constrain(x + minijax.random.uniform(minijax.random.key(1), (8, 4)), "x"),
        [((8, 4), P())],
    ),
}


def run(name: str, mesh: Mesh, *, with_shardy: bool) -> Any:
    function, arguments = PROGRAMS[name]
    rng = np.random.default_rng(0)
    with minijax.set_mesh(mesh), config.use_shardy_partitioner(with_shardy):
        args = [
            minijax.device_put(rng.normal(size=shape).astype(np.float32), NamedSharding(mesh, spec))
            for shape, spec in arguments
        ]
        return minijax.jit(function)(*args)


@pytest.mark.parametrize("name", PROGRAMS)
def test_gspmd_computes_the_same(name: str, mesh: Mesh) -> None:
    found = minijax.tree.leaves(run(name, mesh, with_shardy=False))
    expected = minijax.tree.leaves(run(name, mesh, with_shardy=True))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_gspmd_places_results_the_same(name: str, mesh: Mesh) -> None:
    found = minijax.tree.leaves(run(name, mesh, with_shardy=False))
    expected = minijax.tree.leaves(run(name, mesh, with_shardy=True))
    assert [x.sharding.spec for x in found] == [x.sharding.spec for x in expected]


def test_constraint_names_the_dimensions_left_open(mesh: Mesh) -> None:
    x = minijax.device_put(np.ones((8, 4), np.float32), NamedSharding(mesh, P("x")))
    with config.use_shardy_partitioner(False), minijax.set_mesh(mesh):
        text = minijax.jit(lambda x: constrain(x, OPEN, "y")).lower(x).as_text()
    assert "@Sharding(%arg0)" in text
    assert 'backend_config = "unspecified_dims=[0]"' in text
    assert "sdy" not in text


def test_a_lowered_program_is_compiled_with_the_partitioner_that_it_was_lowered_for(
    mesh: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    options_for = compilation.options_for

    def recorded(*args: Any, **options: Any) -> Any:
        seen.append(options["use_shardy"])
        return options_for(*args, **options)

    monkeypatch.setattr(compilation, "options_for", recorded)
    x = minijax.device_put(np.arange(8.0), NamedSharding(mesh, P("x")))
    with config.use_shardy_partitioner(False):
        lowered = minijax.jit(lambda x: x + 1).lower(x)
    assert lowered.compile()(x).tolist() == list(range(1, 9))
    assert seen == [False]


def test_scalar_from_the_host_is_replicated(mesh: Mesh) -> None:
    x = minijax.device_put(np.ones((8, 4), np.float32), NamedSharding(mesh, P("x")))
    with config.use_shardy_partitioner(False):
        text = minijax.jit(lambda x, s: x * s).lower(x, 2.0).as_text()
    assert '%arg1: tensor<f32> {mhlo.sharding = "{replicated}"}' in text


def test_unreduced_placement_is_refused(mesh: Mesh) -> None:
    explicit = mesh.update(axis_types=(AxisType.Explicit,) * 2)
    sharding = NamedSharding(explicit, P(None, unreduced={"x"}))
    x = minijax.ShapeDtypeStruct((8,), np.float32, sharding=sharding)
    with (
        config.use_shardy_partitioner(False),
        pytest.raises(ValueError, match=r"GSPMD cannot keep the summands(.|\n)*use_shardy"),
    ):
        minijax.jit(lambda x: x).lower(x)


def test_mesh_of_another_size_than_the_program_is_refused(mesh: Mesh) -> None:
    small = Mesh(mesh.devices[:2, 0], ("x",)).abstract_mesh
    x = minijax.device_put(np.ones((8, 4), np.float32), NamedSharding(mesh, P("x")))

    def f(x: Any) -> Any:
        return lax.with_sharding_constraint(x, NamedSharding(small, P("x")))

    with config.use_shardy_partitioner(False), pytest.raises(ValueError, match="has 2 devices"):
        minijax.jit(f)(x)
