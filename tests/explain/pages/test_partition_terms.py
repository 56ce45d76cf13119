"""The player of devices for `jit` over a mesh, by name: what it says is what devices hold."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from tests.explain.pages.reading import Reader

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
    "lookup": lambda x: x[np.array([0, 3, 6, 1])],
    "any": lambda x: jnp.where((x > 0).any(1, keepdims=True), x, x.prod(0)),
    "sorted": lambda x: x + x.argmax(0),
    "gram": lambda x: x.T @ x,
    "slope": jax.grad(lambda x: jnp.sum(x * x * x)),
}
SPLITS = [
    ("box", P("x", "y")),
    ("box", P("y")),
    ("line", P("x")),
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


def texts(found):
    """Each step in a line: its title, and what each device holds."""
    rows = [
        (step["title"], [" ".join(d["cells"]) for d in step["devices"]]) for step in found["steps"]
    ]
    legend = [f"{entry['name']} = {entry['meaning']}" for entry in found["legend"]]
    return [f"{title}: {' | '.join(cells)}" for title, cells in rows] + legend


def put(mesh, value, *spec):
    return jax.device_put(value, NamedSharding(mesh, P(*spec)))


def pair():
    return jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,))


def test_all_reduce_completes_a_product_that_is_split_over_its_sum():
    mesh = pair()
    x, w = put(mesh, jnp.ones((1, 4)), None, "x"), put(mesh, jnp.ones(4), "x")
    assert texts(played(lambda x, w: x @ w, x, w)) == [
        "x: x[:, 0:2] xA₀ xA₁ | x[:, 2:4] xB₀ xB₁",
        "w: w[0:2] wA₀ wA₁ | w[2:4] wB₀ wB₁",
        "dot_general: xA₀·wA₀+xA₁·wA₁ | xB₀·wB₀+xB₁·wB₁",
        "all_reduce over x: xA₀·wA₀+xA₁·wA₁+xB₀·wB₀+xB₁·wB₁ | xA₀·wA₀+xA₁·wA₁+xB₀·wB₀+xB₁·wB₁",
        "result: xA₀·wA₀+xA₁·wA₁+xB₀·wB₀+xB₁·wB₁ | xA₀·wA₀+xA₁·wA₁+xB₀·wB₀+xB₁·wB₁",
    ]


def test_gradient_adds_what_the_examples_of_each_device_give():
    mesh = pair()

    def loss(w, x, y):
        return jnp.mean((x @ w - y) ** 2)

    args = (
        put(mesh, jnp.ones(2)),
        put(mesh, jnp.ones((4, 2)), "x"),
        put(mesh, jnp.ones(4), "x"),
    )
    found = texts(played(jax.grad(loss), *args))
    assert found[4] == (
        "sub: xA₀·w₀+xA₁·w₁−yA₀ xA₂·w₀+xA₃·w₁−yA₁ | xB₀·w₀+xB₁·w₁−yB₀ xB₂·w₀+xB₃·w₁−yB₁"
    )
    assert found[6:] == [
        "dot_general: t1 t2 | t3 t4",
        "all_reduce over x: t1+t3 t2+t4 | t1+t3 t2+t4",
        "result: t1+t3 t2+t4 | t1+t3 t2+t4",
        "t1 = ((xA₀·w₀+xA₁·w₁−yA₀)·xA₀+(xA₂·w₀+xA₃·w₁−yA₁)·xA₂)/2",
        "t2 = ((xA₀·w₀+xA₁·w₁−yA₀)·xA₁+(xA₂·w₀+xA₃·w₁−yA₁)·xA₃)/2",
        "t3 = ((xB₀·w₀+xB₁·w₁−yB₀)·xB₀+(xB₂·w₀+xB₃·w₁−yB₁)·xB₂)/2",
        "t4 = ((xB₀·w₀+xB₁·w₁−yB₀)·xB₁+(xB₂·w₀+xB₃·w₁−yB₁)·xB₃)/2",
    ]


def test_transposed_pieces_are_exchanged():
    mesh = pair()
    wanted = NamedSharding(mesh, P(None, "x"))
    x = put(mesh, jnp.ones((2, 2)), "x")
    assert texts(played(lambda x: jax.lax.with_sharding_constraint(x, wanted), x)) == [
        "start: x[0:1, :] A₀ A₁ | x[1:2, :] B₀ B₁",
        "all_to_all over x: A₀ B₀ | A₁ B₁",
        "result: [:, 0:1] A₀ B₀ | [:, 1:2] A₁ B₁",
    ]


def test_softmax_asks_for_the_greatest_and_for_the_sum_of_all():
    assert texts(played(jax.nn.softmax, put(pair(), jnp.ones(2), "x"))) == [
        "start: x[0:1] A | x[1:2] B",
        "all_reduce over x: max(A,B) | max(A,B)",
        "sub: A−max(A,B) | B−max(A,B)",
        "exp: exp(A−max(A,B)) | exp(B−max(A,B))",
        "all_reduce over x: exp(A−max(A,B))+exp(B−max(A,B)) | exp(A−max(A,B))+exp(B−max(A,B))",
        "div: exp(A−max(A,B))/t1 | exp(B−max(A,B))/t1",
        "result: [0:1] exp(A−max(A,B))/t1 | [1:2] exp(B−max(A,B))/t1",
        "t1 = exp(A−max(A,B))+exp(B−max(A,B))",
    ]


def test_what_all_devices_hold_has_the_name_of_the_argument():
    found = texts(played(lambda x, k: k * x, put(pair(), jnp.ones(2), "x"), 2.0))
    assert found == [
        "x: x[0:1] xA | x[1:2] xB",
        "k: k | k",
        "mul: k·xA | k·xB",
        "result: [0:1] k·xA | [1:2] k·xB",
    ]


def test_keys_are_named_by_their_words():
    keys = put(pair(), jax.random.split(jax.random.key(0), 2), "x")
    assert texts(played(jax.random.key_data, keys))[-1] == "result: [0:1, :] A₀ A₁ | [1:2, :] B₀ B₁"


def test_short_names_are_no_parts_of_arguments():
    args = {"a": put(pair(), jnp.ones(2), "x")}
    found = played(lambda t1: jnp.sin(jnp.sum(t1["a"] ** 2 + jnp.cos(t1["a"]))), args)
    assert [entry["name"] for entry in found["legend"]] == ["t2"]


@pytest.mark.parametrize(
    "function",
    [
        jnp.sort,
        lambda x: x.at[x.astype(int)].add(1.0),
        lambda x: jax.lax.while_loop(lambda y: y.sum() < 9, lambda y: 2 * y, x),
        lambda x: jnp.fft.fft(x).real,
        lambda x: jnp.tile(x, 1000).sum() + x,
    ],
)
def test_what_is_not_carried_by_name_is_shown_by_pieces_and_types_throughout(function):
    found = played(lambda x: 2 * function(x + 1), put(pair(), jnp.ones(4), "x"))
    assert found["names"] == ["0 x=0", "1 x=1"]
    assert found["legend"] == []
    first, *between, last = found["steps"]
    assert [d["cells"] for d in first["devices"]] == [["x[0:2]"], ["x[2:4]"]]
    assert last["devices"][0]["cells"][0].startswith("result 0")
    cells = [cell for step in between for own in step["devices"] for cell in own["cells"]]
    assert all(cell.endswith("]") for cell in cells)


def test_constants_of_sixteen_devices_are_read():
    with jax.cpu_devices(16):
        mesh = jax.make_mesh((16,), ("x",), axis_types=(AxisType.Auto,))
        x = np.random.default_rng(4).normal(size=(16, 2)).astype(np.float32)
        weights = np.arange(32, dtype=np.float32).reshape(16, 2)
        check(mesh, lambda x: jnp.cumsum(x * weights / 32, 0), put(mesh, x, "x"))
        page = jax.explain.page(lambda x: x * weights)(put(mesh, x, "x")).data
    (lines,) = (c["lines"] for c in page["columns"] if c["key"] == "partitioned")
    assert any("constant({...})" in line["t"] for line in lines)
