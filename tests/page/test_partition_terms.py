"""The player of devices for `jit` over a mesh, by name: what it says is what devices hold."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from tests.page.reading import Reader

P = PartitionSpec
pytestmark = pytest.mark.feature("PG-02")


@pytest.fixture(autouse=True)
def _devices():
    with jax.cpu_devices(8):
        yield


def meshed(name):
    """A mesh by its name: a line, a box, or a box whose devices stand in another order."""
    if name == "line":
        return jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
    if name == "box":
        return jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    order = np.array(jax.devices())[[3, 1, 0, 2, 5, 7, 4, 6]]
    return Mesh(order.reshape(4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def played(function, *args):
    return jax.explain.page(function)(*args).data["devices"]


def pieces(mesh, array):
    """What each device of a mesh holds of an array."""
    shards = {shard.device: np.asarray(shard.data) for shard in array.addressable_shards}
    return [shards[device].ravel() for device in mesh.devices.flat]


def terms_of(cells):
    """The elements among cells, whose first may tell the piece; no more than are shown."""
    return [cell for cell in cells if not cell.endswith("]") and cell != "…"]


def check(mesh, function, *args):
    """The terms of the results, in numbers, are what devices hold of them."""
    found = played(function, *args)
    assert found["names"][0].startswith("A "), "it is not shown by name"
    begins = [step for step in found["steps"] if step["kind"] == "begins"]
    ends = [step for step in found["steps"] if step["kind"] == "ends"]
    numbers = {}
    for step, array in zip(begins, args, strict=True):
        for device, piece in zip(step["devices"], pieces(mesh, array), strict=True):
            for name, number in zip(terms_of(device["cells"]), piece, strict=True):
                # What is called alike is the same.
                assert numbers.setdefault(name, number) == number
    reader = Reader(numbers, found["legend"])
    results = jax.tree.leaves(jax.jit(function)(*args))
    for step, array in zip(ends, results, strict=True):
        for device, piece in zip(step["devices"], pieces(mesh, array), strict=True):
            shown = [reader.value(text) for text in terms_of(device["cells"])]
            assert len(shown) == min(piece.size, 16)
            np.testing.assert_allclose(shown, piece[:16], rtol=4e-3, atol=4e-3)


def softened(x):
    return jax.nn.softmax(x, axis=0)


def looped(x):
    return jax.lax.fori_loop(0, 3, lambda i, y: jnp.roll(y, 1, 0) + x, x)


def masked(x):
    return jnp.where(jnp.tri(*x.shape) > 0, x, -jnp.inf).max(1)


def ranked(x):
    return jnp.where(x > 0, x, 0) + jnp.minimum(x, 0.5) * jnp.clip(x, -1, 1)


def normed(x):
    return (x - x.mean(0)) / jnp.sqrt(x.var(0) + 0.5)


def divided(x):
    whole = (8 * x).astype(jnp.int32)
    return whole // 3 + whole % 3, (x / 2) / (x * x + 1), 1 / (x * (2 + jnp.tanh(x)))


def taken(x):
    return x[1:3, ::2], x[::-1], jnp.pad(x, ((1, 2), (0, 1)), constant_values=2.0)


def stored(x):
    return x.at[1].set(5.0), jax.lax.dynamic_slice(x, (2, 0), (3, 2))


def scanned(x):
    return jax.lax.scan(lambda c, row: (c + row, 2 * c), jnp.zeros(x.shape[1]), x)


UNARY = {
    "columns": lambda x: x.sum(0),
    "rows": lambda x: x.sum(1),
    "total": jnp.sum,
    "mean": lambda x: x - x.mean(),
    "turned": lambda x: x.T,
    "reshaped": lambda x: x.reshape(-1),
    "rolled": lambda x: jnp.roll(x, 1, 0),
    "rolled far": lambda x: jnp.roll(x, (3, 1), (0, 1)),
    "joined": lambda x: jnp.concatenate([x[1:], x[:1] + 1]),
    "doubled": lambda x: jnp.concatenate([x, x[:2]], 0),
    "added up": lambda x: jnp.cumsum(x, 0),
    "added down": lambda x: jax.lax.cumsum(x, 0, reverse=True),
    "greatest": lambda x: (x.max(), x.min(1), x.max(0)),
    "softmax": softened,
    "loop": looped,
    "scan": scanned,
    "mask": masked,
    "choices": ranked,
    "norm": normed,
    "quotients": divided,
    "parts": taken,
    "stored": stored,
    "gram": lambda x: x.T @ x,
    "slope": jax.grad(lambda x: jnp.sum(x * x * x)),
}
SPLITS = [
    ("box", P("x", "y")),
    ("box", P("y")),
    ("box", P(("x", "y"))),
    ("line", P("x")),
    ("line", P()),
    ("other", P("x", "y")),
]


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize(("mesh_name", "spec"), SPLITS)
def test_names_say_what_devices_hold(name, mesh_name, spec):
    mesh = meshed(mesh_name)
    x = np.random.default_rng(1).normal(size=(8, 2)).astype(np.float32)
    check(mesh, UNARY[name], jax.device_put(x, NamedSharding(mesh, spec)))


def layer(w, x):
    return jnp.mean((jnp.tanh(x @ w) - 1) ** 2)


PRODUCTS = {
    "product": lambda w, x: x @ w,
    "slope": jax.grad(lambda w, x: jnp.mean((x @ w) ** 2)),
    "residual": jax.grad(lambda w, x: jnp.sum((x @ w - 3) ** 2), argnums=(0, 1)),
    "layer": jax.value_and_grad(layer),
    "known": lambda w, x: x @ (2 * np.eye(4, dtype=np.float32)) @ w,
    "batch": lambda w, x: jnp.einsum("abc,abd->acd", x.reshape(2, 4, 4), x.reshape(2, 4, 4)) @ w,
}
PRODUCT_SPLITS = [
    ("box", P("x", "y"), P("y")),
    ("box", P("x"), P(None, "y")),
    ("box", P("x"), P()),
    ("box", P(None, "x"), P("x", "y")),
    ("line", P("x"), P()),
    ("other", P("x", "y"), P("y")),
]


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize(("mesh_name", "x_spec", "w_spec"), PRODUCT_SPLITS)
def test_products_are_sums_of_products(name, mesh_name, x_spec, w_spec):
    mesh = meshed(mesh_name)
    rng = np.random.default_rng(2)
    w = jax.device_put(rng.normal(size=(4, 2)).astype(np.float32), NamedSharding(mesh, w_spec))
    x = jax.device_put(rng.normal(size=(8, 4)).astype(np.float32), NamedSharding(mesh, x_spec))
    check(mesh, PRODUCTS[name], w, x)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (P("x"), P(None, "x")),
        (P("x", "y"), P("y", "x")),
        (P(("x", "y")), P("x")),
        (P("x"), P()),
        (P(), P("y", "x")),
    ],
)
def test_pieces_move_to_where_they_are_wanted(before, after):
    mesh = meshed("box")
    x = jnp.arange(1.0, 17.0).reshape(4, 4) if P(("x", "y")) != before else jnp.ones((8, 2))
    wanted = NamedSharding(mesh, after)
    move = lambda x: jax.lax.with_sharding_constraint(x, wanted)
    check(mesh, move, jax.device_put(x, NamedSharding(mesh, before)))
