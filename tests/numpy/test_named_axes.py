"""Reductions over names of mapped axes: the same as those over dimensions of the whole array."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.sharding import Mesh, PartitionSpec

pytestmark = pytest.mark.feature("NP-01")

X = np.random.default_rng(0).uniform(0.5, 1.5, (4, 3, 2)).astype(np.float32)
REDUCTIONS = ["sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "ptp"]
REDUCTIONS += ["count_nonzero", "nansum", "nanmax", "nanmean"]
NORMALIZED = ["softmax", "log_softmax", "standardize"]
SUMMED = ["logsumexp", "logmeanexp"]

# What the batch sees of (mapped dimension of X, dimensions): the axis, and that of the whole array.
AXES: list[tuple[Any, Any]] = [
    ("i", 0),
    (("i",), 0),
    (("i", 0), (0, 1)),
    ((1, "i"), (0, 2)),
    ((-1, 0, "i"), (0, 1, 2)),
]


@pytest.fixture(autouse=True)
def eight_devices() -> Iterator[None]:
    with jax.cpu_devices(8):
        yield


def mapped_by_vmap(f: Callable[..., Any]) -> Callable[..., Any]:
    return jax.vmap(f, axis_name="i")


def mapped_by_pmap(f: Callable[..., Any]) -> Callable[..., Any]:
    return jax.pmap(f, axis_name="i")


def mapped_by_shard_map(f: Callable[..., Any]) -> Callable[..., Any]:
    mesh = Mesh(np.array(jax.devices()[:4]), ("i",))
    return jax.shard_map(
        lambda x: f(x[0])[None],
        mesh=mesh,
        in_specs=PartitionSpec("i"),
        out_specs=PartitionSpec("i"),
    )


MAPS = [mapped_by_vmap, mapped_by_pmap, mapped_by_shard_map]


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize(("named", "whole"), AXES)
def test_named_axes_are_dimensions_of_the_batch(name: str, named: Any, whole: Any) -> None:
    expected = getattr(np, name)(X, axis=whole)
    result = mapped_by_vmap(lambda x: getattr(jnp, name)(x, axis=named))(X)
    assert result.dtype == (expected.dtype if expected.dtype != np.int64 else np.int32)
    for row in result:
        np.testing.assert_allclose(row, expected, rtol=2e-6)


@pytest.mark.parametrize("map_", MAPS)
@pytest.mark.parametrize("name", ["sum", "prod", "max", "mean", "var", "all"])
def test_every_map_reduces_over_its_name(map_: Any, name: str) -> None:
    expected = getattr(np, name)(X, axis=(0, 2))
    for row in map_(lambda x: getattr(jnp, name)(x, axis=("i", 1)))(X):
        np.testing.assert_allclose(row, expected, rtol=2e-6)


@pytest.mark.parametrize("map_", MAPS)
@pytest.mark.parametrize("name", [*NORMALIZED, *SUMMED])
def test_softmax_and_its_kin_take_names(map_: Any, name: str) -> None:
    function = getattr(jax.nn, name)
    expected = function(X, axis=(0, 2))
    if name in SUMMED:
        expected = jnp.broadcast_to(expected, (4, 3))
    np.testing.assert_allclose(
        map_(lambda x: function(x, axis=("i", 1)))(X), expected, rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("map_", MAPS)
@pytest.mark.parametrize("function", [jnp.sum, jnp.prod, jnp.var, jax.nn.logsumexp])
def test_gradients_are_those_of_the_whole_array(map_: Any, function: Any) -> None:
    weights = np.arange(8, dtype=np.float32).reshape(4, 2)

    def mapped(x: Any) -> Any:
        return jnp.sum(weights * map_(lambda x: function(x, axis=("i", 0)))(x))

    def whole(x: Any) -> Any:
        return jnp.sum(weights * function(x, axis=(0, 1)))

    np.testing.assert_allclose(jax.grad(mapped)(X), jax.grad(whole)(X), rtol=2e-5, atol=1e-5)


def test_the_gradient_of_a_maximum_over_examples_is_that_of_the_whole_array() -> None:
    mapped = jax.grad(lambda x: mapped_by_vmap(lambda x: jnp.max(x, axis=("i", 0)))(x).sum())(X)
    whole = jax.grad(lambda x: 4 * jnp.max(x, axis=(0, 1)).sum())(X)
    np.testing.assert_allclose(mapped, whole)


def test_kept_axes_are_those_of_the_array() -> None:
    result = mapped_by_vmap(lambda x: jnp.sum(x, axis=("i", 0), keepdims=True))(X)
    assert result.shape == (4, 1, 2)


def test_masks_and_initial_values_count_once() -> None:
    mask = X > 1
    reduce = mapped_by_vmap(lambda x, m: jnp.mean(x, axis=("i", 0, 1), where=m))
    np.testing.assert_allclose(reduce(X, mask), [X.mean(where=mask)] * 4, rtol=1e-6)
    reduce = mapped_by_vmap(lambda x, m: jnp.sum(x, axis=("i", 0, 1), initial=5, where=m))
    np.testing.assert_allclose(reduce(X, mask), [X.sum(initial=5, where=mask)] * 4, rtol=1e-6)


def test_sums_of_booleans_say_whether_one_holds() -> None:
    flags = np.array([[True, False], [False, False]])
    result = mapped_by_vmap(lambda x: jnp.sum(x, axis="i", dtype=bool))(flags)
    np.testing.assert_array_equal(result, [[True, False]] * 2)


def test_what_does_not_vary_is_counted_for_each_example() -> None:
    result = jax.vmap(lambda x: x + jnp.sum(jnp.ones(3), axis=("i", 0)), axis_name="i")(
        jnp.zeros(5)
    )
    np.testing.assert_array_equal(result, [15.0] * 5)


def test_two_batches_of_other_sizes_do_not_share_a_program() -> None:
    def f(x: Any) -> Any:
        return jnp.mean(x, axis="i")

    for size in (2, 4, 8):
        result = jax.jit(jax.vmap(f, axis_name="i"))(jnp.arange(size * 1.0))
        np.testing.assert_array_equal(result, [(size - 1) / 2] * size)


def test_two_names_are_two_dimensions() -> None:
    inner = jax.vmap(lambda x: jnp.max(x, axis=("i", "j")), axis_name="j")
    np.testing.assert_array_equal(jax.vmap(inner, axis_name="i")(X)[1, 2], X.max((0, 1)))


def test_one_hot_spreads_its_classes_over_a_mapped_axis() -> None:
    labels = jnp.array([2, 0, 1, 2])
    result = jax.vmap(
        lambda _: jax.nn.one_hot(labels, 3, axis="c"), axis_name="c", out_axes=1
    )(jnp.zeros(3))  # fmt: skip
    np.testing.assert_array_equal(result, jax.nn.one_hot(labels, 3))
    with pytest.raises(ValueError, match="as many classes as the mapped axis is long"):
        jax.vmap(lambda x: jax.nn.one_hot(x, 2, axis="c"), axis_name="c")(jnp.arange(3))


def test_a_name_that_nothing_maps_is_refused() -> None:
    with pytest.raises(NameError, match=r"numpy.sum: unbound axis name 'i'"):
        jnp.sum(X, axis="i")
    with pytest.raises(NameError, match="unbound axis name 'j'"):
        jax.vmap(lambda x: jnp.mean(x, axis=("i", "j")), axis_name="i")(X)


def test_what_orders_elements_takes_no_names() -> None:
    for function in (jnp.argmax, jnp.cumsum, jnp.median, jnp.sort):
        with pytest.raises(TypeError, match="the axis must be an integer"):
            jax.vmap(lambda x, f=function: f(x, axis="i"), axis_name="i")(X)


def test_the_jaxpr_shows_the_collective() -> None:
    staged = jax.make_jaxpr(lambda x: jnp.mean(x, axis=("i", 0)), axis_env=[("i", 4)])(X[0])
    names = [eqn.primitive.name for eqn in staged.jaxpr.eqns]
    assert names == ["reduce_sum", "psum", "div"]
    assert lax.psum_p is staged.jaxpr.eqns[1].primitive
