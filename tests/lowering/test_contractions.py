"""Products of which XLA's partitioner alone computes some wrongly: the numbers are NumPy's."""

from typing import Any

import numpy as np
import pytest

import minijax as jax
from minijax import lax
from minijax import numpy as jnp
from minijax.lowering import contractions
from minijax.sharding import Mesh, NamedSharding, PartitionSpec
from minijax.sharding import PartitionSpec as P

# Einsum, sizes, and how operands and result are split: what had wrong numbers before.
PRODUCTS = [
    ("mk,kn->mn", (12, 6), (6, 10), P(("z", "x"), "y"), P("y", "x"), P(("z", "x"), "y")),
    ("mk,kn->mn", (12, 6), (6, 10), P(("x", "y"), "z"), P("z", "y"), P(("x", "y"), "z")),
    ("mk,kn->mn", (8, 8), (8, 8), P("z", "x"), P("x", "z"), P("x", ("y", "z"))),
    ("mk,nk->mn", (16, 8), (16, 8), P(None, "z"), P("y", "x"), P("z", ("y", "x"))),
    ("mk,nk->mn", (16, 16), (16, 16), P("y", "x"), P(("x", "y"), "z"), P(("z", "y"))),
    (
        "bmk,bkn->bmn",
        (16, 16, 8),
        (16, 8, 16),
        P("z", None, "x"),
        P("z", "x", "y"),
        P(("y", "z"), None, "x"),
    ),
    (
        "abk,kn->abn",
        (16, 16, 8),
        (8, 16),
        P(("x", "z"), None, "y"),
        P("y", ("x", "z")),
        P(None, ("z", "x"), "y"),
    ),
    ("abk,bkn->an", (8, 8, 8), (8, 8, 8), P("z", ("x", "y")), P("z", "y"), P(("x", "z"), "y")),
]
CONVOLUTIONS = [
    ((8,), P(None, None, None), P(None, "x", None), P(None, "x", None)),
    ((4, 2), P(None, "y", None), P(None, "y", None), P("y", None, None)),
    ((4, 2), P(None, "y", None), P(None, None, None), P(None, None, "x")),
    ((4, 2), P(None, None, "x"), P("y", None, "x"), P(None, "x", None)),
    ((4, 2), P(None, "y", None), P("x", None, None), P("y", None, "x")),
    ((2, 2, 2), P(None, None, "z"), P(None, None, "x"), P("z", None, ("y", "x"))),
    ((2, 2, 2), P("y", None, "x"), P("z", "x", None), P("x", None, ("z", "y"))),
]

# The batch, the channels and space of the operand, the kernel, and its gradient.
GROUPED = [
    ((4, 2), P("y"), P(), P()),
    ((4, 2), P("x"), P("y"), P("y")),
    ((2, 4), P("x", "y"), P("y"), P("y")),
    ((2, 4), P(), P(), P(None, "x")),
    ((2, 4), P("x"), P(), P("y", "x")),
    ((2, 2, 2), P(("x", "z")), P(), P("y")),
    ((2, 2, 2), P("x", None, "y"), P("z"), P()),
    ((2, 2, 2), P(("x", "y", "z")), P(), P()),
]


@pytest.fixture(autouse=True)
def eight_devices() -> Any:
    with jax.cpu_devices(8):
        yield


def _mesh(*sizes: int) -> Mesh:
    return Mesh(np.array(jax.devices()).reshape(sizes), ("x", "y", "z")[: len(sizes)])


def _whole_numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype(np.float32)


@pytest.mark.feature("RB-02", "SD-05")
@pytest.mark.parametrize(("sums", "left", "right", "x_spec", "y_spec", "out_spec"), PRODUCTS)
def test_products_over_three_axes_are_those_of_one_device(
    sums: str, left: Any, right: Any, x_spec: Any, y_spec: Any, out_spec: Any
) -> None:
    mesh = _mesh(2, 2, 2)
    x, y = _whole_numbers(*left), _whole_numbers(*right)
    f = jax.jit(lambda x, y: jnp.einsum(sums, x, y), out_shardings=NamedSharding(mesh, out_spec))
    placed = [
        jax.device_put(v, NamedSharding(mesh, spec)) for v, spec in ((x, x_spec), (y, y_spec))
    ]
    found = f(*placed)
    assert np.array_equal(np.asarray(found), np.einsum(sums, x, y))
    assert found.sharding.is_equivalent_to(NamedSharding(mesh, out_spec), found.ndim)


@pytest.mark.feature("RB-02")
def test_products_inside_of_loops_and_gradients_too() -> None:
    mesh = _mesh(2, 2, 2)
    x, w = _whole_numbers(12, 10), _whole_numbers(10, 6)
    specs = P(None, "x"), P("x", "y")
    outs = tuple(NamedSharding(mesh, spec) for spec in (P(("z", "x"), "y"), P(None, "z")))

    def loss(x: Any, w: Any) -> Any:
        total, _ = lax.scan(lambda c, _: (c + (jnp.tanh(x @ w) ** 2).sum(), None), 0.0, length=2)
        return total

    placed = [
        jax.device_put(v, NamedSharding(mesh, spec)) for v, spec in zip((x, w), specs, strict=True)
    ]
    found = jax.jit(jax.grad(loss, (0, 1)), out_shardings=outs)(*placed)
    t = np.tanh(x @ w)
    slope = 4 * t * (1 - t**2)
    for own, expected in zip(found, (slope @ w.T, x.T @ slope), strict=True):
        np.testing.assert_allclose(np.asarray(own), expected, rtol=1e-4, atol=1e-3)


@pytest.mark.feature("RB-02", "SD-05")
@pytest.mark.parametrize(("sizes", "x_spec", "kernel_spec", "out_spec"), CONVOLUTIONS)
def test_convolutions_with_split_kernels_are_those_of_one_device(
    sizes: Any, x_spec: PartitionSpec, kernel_spec: PartitionSpec, out_spec: PartitionSpec
) -> None:
    mesh = _mesh(*sizes)
    x, kernel = _whole_numbers(8, 16, 8), _whole_numbers(4, 8, 8)
    out = NamedSharding(mesh, out_spec)
    numbers = ("NWC", "WIO", "NWC")
    f = jax.jit(
        lambda x, k: lax.conv_general_dilated(x, k, (1,), [(1, 2)], dimension_numbers=numbers),
        out_shardings=out,
    )
    found = f(
        jax.device_put(x, NamedSharding(mesh, x_spec)),
        jax.device_put(kernel, NamedSharding(mesh, kernel_spec)),
    )
    padded = np.pad(x, ((0, 0), (1, 2), (0, 0)))
    expected = sum(padded[:, i : i + 16] @ kernel[i] for i in range(4))
    assert np.array_equal(np.asarray(found), expected)


@pytest.mark.feature("RB-02", "SD-05")
@pytest.mark.parametrize(("sizes", "x_spec", "kernel_spec", "out_spec"), GROUPED)
def test_gradients_of_kernels_in_groups_are_those_of_one_device(
    sizes: Any, x_spec: PartitionSpec, kernel_spec: PartitionSpec, out_spec: PartitionSpec
) -> None:
    mesh = _mesh(*sizes)
    x, kernel, slope = _whole_numbers(8, 8, 12), _whole_numbers(8, 2, 3), _whole_numbers(8, 8, 10)

    def gradient(x: Any, kernel: Any, slope: Any) -> Any:
        of = lambda k: lax.conv_general_dilated(x, k, (1,), "VALID", feature_group_count=4)
        return jax.vjp(of, kernel)[1](slope)[0]

    found = jax.jit(gradient, out_shardings=NamedSharding(mesh, out_spec))(
        jax.device_put(x, NamedSharding(mesh, x_spec)),
        jax.device_put(kernel, NamedSharding(mesh, kernel_spec)),
        slope,
    )
    expected = np.zeros_like(kernel)
    for channel, own, place in np.ndindex(*kernel.shape):
        seen = x[:, channel // 2 * 2 + own, place : place + 10]
        expected[channel, own, place] = (slope[:, channel] * seen).sum()
    assert np.array_equal(np.asarray(found), expected)


@pytest.mark.feature("RB-02")
@pytest.mark.parametrize("kernel_spec", [P(), P(None, None, "x")])
@pytest.mark.parametrize("out_spec", [P(), P(None, None, "x")])
def test_convolutions_over_parts_of_an_axis_are_those_of_one_device(
    kernel_spec: PartitionSpec, out_spec: PartitionSpec
) -> None:
    mesh = _mesh(8)
    x, kernel = _whole_numbers(8, 16, 8), _whole_numbers(4, 8, 8)
    numbers = ("NWC", "WIO", "NWC")

    def f(x: Any, k: Any) -> Any:
        # Dimensions of 4 and 4 share the axis.
        row = x.reshape(8, 4, 4, 8)[:, 1]
        return lax.conv_general_dilated(row, k, (1,), [(1, 2)], dimension_numbers=numbers)

    found = jax.jit(f, out_shardings=NamedSharding(mesh, out_spec))(
        jax.device_put(x, NamedSharding(mesh, P(None, "x"))),
        jax.device_put(kernel, NamedSharding(mesh, kernel_spec)),
    )
    padded = np.pad(x[:, 4:8], ((0, 0), (1, 2), (0, 0)))
    expected = sum(padded[:, i : i + 4] @ kernel[i] for i in range(4))
    assert np.array_equal(np.asarray(found), expected)


@pytest.mark.feature("RB-02")
def test_gradients_of_kernels_in_groups_may_be_split_over_a_part_of_an_axis() -> None:
    mesh = _mesh(8)
    x, kernel = _whole_numbers(8, 6, 12), _whole_numbers(6, 1, 3)

    def total(x: Any, kernel: Any) -> Any:
        # Dimensions of 2 and 4 share the axis.
        images = x.reshape(2, 4, 6, 12)[:, 0]
        return lax.conv_general_dilated(images, kernel, (1,), "VALID", feature_group_count=6).sum()

    placed = jax.device_put(x, NamedSharding(mesh, P("x")))
    found = jax.jit(jax.grad(total, 1))(placed, jax.device_put(kernel, NamedSharding(mesh, P())))
    expected = [[[x[::4, c, i : i + 10].sum() for i in range(3)]] for c in range(6)]
    assert np.array_equal(np.asarray(found), expected)


@pytest.mark.feature("RB-02")
def test_programs_that_are_right_already_are_left_as_they_are() -> None:
    mesh = _mesh(2, 2, 2)
    batch, weights = (NamedSharding(mesh, spec) for spec in (P(("x", "y"), None), P("y", "z")))
    lowered = jax.jit(jnp.dot, in_shardings=(batch, weights)).lower(
        _whole_numbers(8, 4), _whole_numbers(4, 6)
    )
    module = lowered.compiler_ir()
    assert contractions.guarded(module) is module
