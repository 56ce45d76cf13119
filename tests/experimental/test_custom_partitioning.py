"""Functions with a partitioning of their own."""

import numpy as np
import pytest

import minijax as jax
from minijax import lax
from minijax import numpy as jnp
from minijax.core import config
from minijax.experimental.custom_partitioning import (
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
    custom_partitioning,
)

X = np.arange(64, dtype=np.float32).reshape(16, 4)


@pytest.fixture(autouse=True, scope="module")
def eight_devices():
    with jax.cpu_devices(8):
        yield


def put(x, *entries):
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    return jax.device_put(x, jax.NamedSharding(mesh, jax.P(*entries)))


def as_operands(mesh, arg_shapes, result_shape):
    where = arg_shapes[0].sharding
    return mesh, jnp.sin, where, (where,)


def sine(partition=as_operands, **facts):
    f = custom_partitioning(lambda x: jnp.sin(x))
    f.def_partition(partition, **{"sharding_rule": "i j -> i j", **facts})
    return f


@pytest.mark.feature("EX-14")
@pytest.mark.parametrize("entries", [("x",), ("x", "y"), (None, "y"), (("x", "y"),), ()])
def test_pieces_are_computed_where_they_are(entries):
    seen = []

    def partition(mesh, arg_shapes, result_shape):
        where = arg_shapes[0].sharding
        seen.append((where.shard_shape(arg_shapes[0].shape), result_shape.shape))
        return as_operands(mesh, arg_shapes, result_shape)

    x = put(X, *entries)
    f = jax.jit(sine(partition))
    np.testing.assert_allclose(f(x), np.sin(X), rtol=1e-5)
    assert f(x).sharding.is_equivalent_to(x.sharding, 2)
    assert seen == [(x.addressable_shards[0].data.shape, (16, 4))]
    assert "all-gather" not in f.lower(x).compile().as_text()


@pytest.mark.feature("EX-14")
def test_devices_may_speak_to_each_other():
    @custom_partitioning
    def total(x, y):
        return (x * y).sum(0), x.max()

    def partition(mesh, arg_shapes, result_shape):
        rows = jax.NamedSharding(mesh, jax.P("x"))
        whole = jax.NamedSharding(mesh, jax.P())

        def pieces(x, y):
            return lax.psum((x * y).sum(0), "x"), lax.pmax(x.max(), "x")

        return mesh, pieces, (whole, whole), (rows, rows)

    total.def_partition(partition, sharding_rule="i j, i j -> j,", reduction_factors=("i",))
    for given in (("x",), ("x", "y"), ()):
        found = jax.jit(total)(put(X, *given), put(X + 1, *given))
        np.testing.assert_allclose(found[0], (X * (X + 1)).sum(0))
        assert found[1] == 63


@pytest.mark.feature("EX-14")
def test_older_partitioner_infers_shardings():
    def infer(mesh, arg_shapes, result_shape):
        return arg_shapes[0].sharding

    f = sine(infer_sharding_from_operands=infer, propagate_user_sharding=lambda _, x: x.sharding)
    x = put(X, "x", "y")
    with config.use_shardy_partitioner(False):
        found = jax.jit(f)(x)
        np.testing.assert_allclose(found, np.sin(X), rtol=1e-5)
        assert found.sharding.is_equivalent_to(x.sharding, 2)
        with pytest.raises(NotImplementedError, match="needs infer_sharding_from_operands"):
            jax.jit(sine())(x)


@pytest.mark.feature("EX-14")
def test_static_and_named_arguments():
    def scale(x, n, bias=0.0):
        return x * n + bias

    f = custom_partitioning(scale, static_argnums=(1,))

    def partition(n, mesh, arg_shapes, result_shape):
        where = arg_shapes[0].sharding
        pieces = lambda x, bias: x * n + bias
        return mesh, pieces, where, (where, jax.NamedSharding(mesh, jax.P()))

    f.def_partition(partition, sharding_rule="i j, -> i j")
    x = put(X, "x")
    np.testing.assert_allclose(jax.jit(lambda x: f(x, 3))(x), X * 3)
    np.testing.assert_allclose(jax.jit(lambda x: f(x, n=2, bias=1.0))(x), X * 2 + 1)


@pytest.mark.feature("EX-14")
def test_transformations_and_places_without_partitioning():
    f = sine()
    np.testing.assert_allclose(f(X), np.sin(X), rtol=1e-5)
    np.testing.assert_allclose(jax.jit(f)(X), np.sin(X), rtol=1e-5)
    batch = np.stack([X, X + 1, X + 2])
    np.testing.assert_allclose(jax.vmap(f)(batch), np.sin(batch), rtol=1e-4, atol=1e-6)
    spread = put(batch, None, "x")
    np.testing.assert_allclose(jax.jit(jax.vmap(f))(spread), np.sin(batch), rtol=1e-4, atol=1e-6)
    x = put(X, "x")
    inside = jax.shard_map(f, mesh=x.sharding.mesh, in_specs=jax.P("x"), out_specs=jax.P("x"))
    np.testing.assert_allclose(jax.jit(inside)(x), np.sin(X), rtol=1e-5)
    with pytest.raises(NotImplementedError, match="custom_vjp around it"):
        jax.grad(lambda x: f(x).sum())(X)


@pytest.mark.feature("EX-14")
def test_rules_say_what_is_cut_together():
    def text(rule, *shapes, **facts):
        f = custom_partitioning(lambda *_: 0)
        f.def_partition(as_operands, sharding_rule=rule, **facts)
        made = f.partitioner.rule.attribute(shapes[:-1], shapes[-1:])
        return made.removeprefix("#sdy.op_sharding_rule<").removesuffix(", custom>")

    assert text("a b -> b a", (2, 3), (3, 2)) == "([i, j])->([j, i]) {i=2, j=3}"
    assert text("... a -> ... a", (5, 2, 3), (5, 2, 3)) == (
        "([i, j, k])->([i, j, k]) {i=5, j=2, k=3}"
    )
    assert text("b (h d) -> b h d", (5, 6), (5, 2, 3), h=2) == (
        "([i, jk])->([i, j, k]) {i=5, j=2, k=3}"
    )
    assert text("a, -> a", (2,), (), (2,)) == "([i], [])->([i]) {i=2}"
    marked = text("a b -> a", (2, 3), (2,), reduction_factors=("b",))
    assert marked == "([i, j])->([i]) {i=2, j=3} reduction={j}"
    rule = SdyShardingRule(
        (ArrayMapping("...", CompoundFactor("a", "b")),), (("...", "a", "b"),), a=2
    )
    assert rule.attribute([(4, 6)], [(4, 2, 3)]) == (
        "#sdy.op_sharding_rule<([i, jk])->([i, j, k]) {i=4, j=2, k=3}, custom>"
    )


WRONG_RULES = {
    "two sides of one '->'": "i j",
    "has no '*' there": "i * -> i",
    "closes each parenthesis": "(i j -> i",
    "two factors or more": "(i) -> i",
    "only the leading dimensions": "i ... -> i",
}


@pytest.mark.feature("EX-14")
@pytest.mark.parametrize("problem", WRONG_RULES)
def test_what_is_no_rule_is_refused_at_once(problem):
    with pytest.raises(ValueError, match=problem.replace("*", r"\*")):
        sine(sharding_rule=WRONG_RULES[problem])


WRONG_PARTITIONS = {
    "gives operand 0 1 dimensions": ({"sharding_rule": "i -> i"}, ValueError),
    "has 2 operands, the operation 1": ({"sharding_rule": "i j, i -> i j"}, ValueError),
    "has two sizes": ({"sharding_rule": "i i -> i i"}, ValueError),
    "do not make its size": ({"sharding_rule": "(a b) i -> (a b) i", "a": 3}, ValueError),
    "must return four things": ({"partition": lambda *_: 3}, TypeError),
    "are no shardings, one for each": (
        {"partition": lambda mesh, a, r: (mesh, jnp.sin, None, (None,))},
        ValueError,
    ),
    "returns other pieces": (
        {"partition": lambda m, a, r: (m, lambda x: x[:1], r.sharding, (a[0].sharding,))},
        ValueError,
    ),
    "division by zero": ({"partition": lambda *_: 1 / 0}, ZeroDivisionError),
}


@pytest.mark.feature("EX-14")
@pytest.mark.parametrize("problem", WRONG_PARTITIONS)
def test_errors_of_partitions_reach_the_caller(problem):
    facts, kind = WRONG_PARTITIONS[problem]
    f = jax.jit(sine(**facts))
    for _ in range(2):
        with pytest.raises(kind, match=problem):
            f(put(X, "x"))


@pytest.mark.feature("EX-14")
def test_types_on_explicit_axes_are_those_of_the_function():
    mesh = jax.make_mesh((8,), ("x",))
    x = jax.device_put(X, jax.NamedSharding(mesh, jax.P("x")))
    found = jax.jit(sine())(x)
    np.testing.assert_allclose(found, np.sin(X), rtol=1e-5)
    assert jax.typeof(found) == jax.typeof(x)


@pytest.mark.feature("EX-14")
def test_partition_must_be_defined():
    f = custom_partitioning(jnp.sin)
    with pytest.raises(AttributeError, match=r"sin.def_partition\(partition, sharding_rule"):
        f(X)
