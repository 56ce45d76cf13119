"""Arrays of which devices hold summands, or whose cotangents are: what one sees of them."""

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.sharding import AxisType, Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P

pytestmark = pytest.mark.feature("UX-05")

LEFT = np.arange(32, dtype=np.float32).reshape(8, 4)
RIGHT = LEFT[:4, :].T @ LEFT[:4, :] - 900
PRODUCT = LEFT @ RIGHT
FACTOR = np.arange(32, dtype=np.float32).reshape(8, 4) % 5 - 2
SUMMED: dict[str, Any] = {
    "over x": P(None, None, unreduced={"x"}),
    "over x, split": P("y", None, unreduced={"x"}),
}


@pytest.fixture(autouse=True)
def mesh() -> Iterator[Mesh]:
    with jax.cpu_devices(8):
        found = _mesh(jax.devices())
        with jax.set_mesh(found):
            yield found


def _mesh(devices: list[Any]) -> Mesh:
    return Mesh(np.array(devices).reshape(4, 2), ("x", "y"), (AxisType.Explicit,) * 2)


def _put(x: Any, *spec: Any, **sums: Any) -> Any:
    return jax.device_put(x, P(*spec, **sums))


def _product(spec: Any) -> Any:
    """The product, of which each device holds what its columns and rows contribute."""
    multiply = jax.jit(lambda a, b: jnp.einsum("ij,jk->ik", a, b, out_sharding=spec))
    return multiply(_put(LEFT, None, "x"), _put(RIGHT, "x", None))


LOOKS: dict[str, Callable[[Any], Any]] = {
    "asarray": np.asarray,
    "device_get": jax.device_get,
    "tolist": lambda x: x.tolist(),
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "rows": list,
    "one device": lambda x: jax.device_put(x, jax.devices()[0]),
    "another mesh": lambda x: jax.device_put(
        x, NamedSharding(Mesh(np.array(jax.devices())[::-2], ("z",)), P("z"))
    ),
    "the devices in another order": lambda x: jax.device_put(
        x, x.sharding.update(mesh=_mesh(jax.devices()[::-1]))
    ),
    "put together": lambda x: jax.make_array_from_single_device_arrays(
        x.shape, x.sharding, [piece.data for piece in x.addressable_shards]
    ),
    "resharded": lambda x: jax.reshard(x, P(None, "x")),
}


@pytest.mark.parametrize("spec", SUMMED)
@pytest.mark.parametrize("look", LOOKS)
def test_a_sum_is_seen_as_what_it_comes_to(look: str, spec: str) -> None:
    np.testing.assert_array_equal(np.asarray(LOOKS[look](_product(SUMMED[spec]))), PRODUCT)


@pytest.mark.parametrize("spec", SUMMED)
def test_texts_say_how_a_sum_is_placed(spec: str) -> None:
    x = _product(SUMMED[spec])
    expected = f"Array(shape=(8, 4), dtype=float32, sharding={x.sharding})"
    assert repr(x) == str(x) == f"{x}" == expected


@pytest.mark.parametrize("spec", SUMMED)
def test_pieces_are_the_summands(spec: str) -> None:
    x = _product(SUMMED[spec])
    found = np.zeros_like(PRODUCT)
    for i, piece in enumerate(x.addressable_shards):
        column = i // 2
        term = np.outer(LEFT[:, column], RIGHT[column])
        np.testing.assert_array_equal(piece.data, term[piece.index])
        if piece.replica_id == 0:
            found[piece.index] += np.asarray(piece.data)
    np.testing.assert_array_equal(found, PRODUCT)


@pytest.mark.parametrize("spec", SUMMED)
def test_a_value_becomes_a_sum_of_itself_and_zeros(spec: str) -> None:
    x = jax.device_put(PRODUCT, SUMMED[spec])
    np.testing.assert_array_equal(x, PRODUCT)
    np.testing.assert_array_equal(jax.reshard(x, P(None, None)), PRODUCT)


LINEAR: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "product": (lambda u, r, p: u * r, lambda u, r, p: u * r),
    "quotient": (lambda u, r, p: u / (r + r), lambda u, r, p: u / (r + r)),
    "choice": (lambda u, r, p: lax.select_n(p, u, u + u), lambda u, r, p: np.where(p, 2 * u, u)),
    "where": (lambda u, r, p: jnp.where(True, u, u + u), lambda u, r, p: u),
    "slice": (
        lambda u, r, p: lax.dynamic_slice(u, (1, 1), (2, 2)),
        lambda u, r, p: u[1:3, 1:3],
    ),
    "rows": (lambda u, r, p: u[np.array([1, 3])], lambda u, r, p: u[[1, 3]]),
    "join": (lambda u, r, p: jnp.concatenate([u, u]), lambda u, r, p: np.concatenate([u, u])),
}


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("how", ["eager", "jit"])
def test_what_is_linear_keeps_the_sum(how: str, name: str) -> None:
    function, expected = LINEAR[name]
    factor = _put(FACTOR + 3, None, None, reduced={"x"})
    run = jax.jit(function) if how == "jit" else function
    out = run(_product(SUMMED["over x"]), factor, _put(FACTOR > 0, None, None))
    assert out.sharding.spec.unreduced == {"x"}
    np.testing.assert_allclose(out, expected(PRODUCT, FACTOR + 3, FACTOR > 0), rtol=1e-6)


@pytest.mark.parametrize(
    "function",
    [lambda u: u * 2, lambda u: u * u, lambda u: u + 1, jnp.abs, lambda u: u == 1],
    ids=["scaled", "squared", "shifted", "abs", "compared"],
)
def test_what_is_not_linear_refuses_a_sum(function: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="unreduced over 'x'"):
        jax.jit(function)(_product(SUMMED["over x"]))


@pytest.mark.parametrize("how", ["eager", "jit"])
@pytest.mark.parametrize(
    "function",
    [lambda r: r, lambda r: r * r, lambda r: 2 * r, jnp.sin, lambda r: jnp.where(True, r, r)],
    ids=["itself", "squared", "scaled", "sin", "chosen"],
)
def test_what_is_reduced_stays_so(function: Callable[[Any], Any], how: str) -> None:
    x = _put(FACTOR, None, None, reduced={"x"})
    out = (jax.jit(function) if how == "jit" else function)(x)
    assert out.sharding.spec == P(None, None, reduced={"x"})
    np.testing.assert_allclose(out, function(FACTOR), rtol=1e-6)
    assert str(x) == str(FACTOR)
    np.testing.assert_array_equal(x.addressable_shards[5].data, FACTOR)


def test_the_gradient_of_a_product_of_what_is_reduced_is_a_sum() -> None:
    x = _put(FACTOR, None, None, reduced={"x"})
    gradient = jax.jit(jax.grad(lambda x: (x * x).sum()))(x)
    assert gradient.sharding.spec == P(None, None, unreduced={"x"})
    np.testing.assert_array_equal(gradient, 2 * FACTOR)


@pytest.mark.parametrize("how", ["eager", "jit"])
def test_shard_map_returns_what_differs_as_summands(how: str) -> None:
    mapped = jax.shard_map(
        lambda block: block.sum(1), in_specs=P("x", "y"), out_specs=P("x", unreduced={"y"})
    )
    out = (jax.jit(mapped) if how == "jit" else mapped)(_put(LEFT, "x", "y"))
    assert out.sharding.spec == P("x", unreduced={"y"})
    assert out.addressable_shards[1].data.tolist() == [5.0, 13.0]
    np.testing.assert_array_equal(out, LEFT.sum(1))
    np.testing.assert_array_equal(jax.reshard(out, P("x")), LEFT.sum(1))
