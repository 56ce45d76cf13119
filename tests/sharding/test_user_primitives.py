"""Primitives that users define, on Explicit mesh axes: with a rule `shard`, and without one."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minijax
from minijax.core.errors import MissingRule, ShardingTypeError
from minijax.core.primitive import PRIMITIVES
from minijax.sharding import NamedSharding
from minijax.sharding import PartitionSpec as P

RECIPE = Path(__file__).parents[2] / "docs" / "recipes" / "add_a_primitive.md"
X = np.arange(8, dtype=np.float32)


@pytest.fixture(autouse=True)
def undeclared() -> Iterator[None]:
    """Removes the primitives that a test declares, so that the next one can declare them again."""
    before = set(PRIMITIVES)
    yield
    for name in set(PRIMITIVES) - before:
        del PRIMITIVES[name]


@pytest.fixture
def mesh() -> minijax.sharding.Mesh:
    with minijax.cpu_devices(4):
        return minijax.make_mesh((4,), ("x",))


@pytest.fixture
def partitioned(mesh: minijax.sharding.Mesh) -> Any:
    return minijax.device_put(X, NamedSharding(mesh, P("x")))


def declare(abstract_eval: Callable[..., Any]) -> Any:
    """Declares a primitive without a rule `shard`, which returns its first operand."""
    primitive = minijax.extend.core.Primitive("first")
    primitive.def_abstract_eval(abstract_eval)
    minijax.extend.mlir.register_lowering(primitive, lambda ctx, x, *_: [x])
    return primitive


TRANSFORMED: dict[str, Callable[[Any, Any], Any]] = {
    "eager": lambda f, x: f(x),
    "jit": lambda f, x: minijax.jit(f)(x),
    "grad": lambda f, x: minijax.grad(lambda x: f(x).sum())(x),
    "grad of jit": lambda f, x: minijax.grad(minijax.jit(lambda x: f(x).sum()))(x),
    "vmap": lambda f, x: minijax.vmap(f)(x),
    "jit of vmap of grad": lambda f, x: minijax.jit(minijax.vmap(minijax.grad(f)))(x),
}


@pytest.mark.parametrize("transformation", TRANSFORMED)
def test_primitive_of_the_recipe_works_on_explicit_axes(
    transformation: str, partitioned: Any
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", RECIPE.read_text(encoding="utf-8"), re.DOTALL)
    namespace: dict[str, Any] = {"__name__": "recipe"}
    exec(compile(blocks[0], RECIPE.name, "exec"), namespace)

    transform = TRANSFORMED[transformation]
    out = transform(lambda x: namespace["affine"](x, 2, 1) ** 2, partitioned)

    assert str(minijax.typeof(out)) == "f32[8@x]"
    expected = 4 * (2 * X + 1) if "grad" in transformation else (2 * X + 1) ** 2
    np.testing.assert_array_equal(out, expected)


def test_type_copied_from_an_operand_keeps_its_sharding(partitioned: Any) -> None:
    first = declare(lambda x: x)
    assert str(minijax.typeof(minijax.jit(first.bind)(partitioned))) == "f32[8@x]"
    assert str(minijax.typeof(first.bind(partitioned))) == "f32[8@x]"


def test_operands_that_are_partitioned_differently_are_rejected(
    mesh: minijax.sharding.Mesh,
) -> None:
    first = declare(lambda x, y: x)
    rows = minijax.device_put(np.ones((4, 4)), NamedSharding(mesh, P("x", None)))
    columns = minijax.device_put(np.ones((4, 4)), NamedSharding(mesh, P(None, "x")))
    with pytest.raises(ShardingTypeError, match="first: the result would be split over 'x'"):
        minijax.jit(first.bind)(rows, columns)


def test_another_type_needs_the_rule(partitioned: Any) -> None:
    first = declare(lambda x: minijax.core.ShapedArray(x.shape, x.dtype))
    with pytest.raises(MissingRule, match=r"no rule for .*\(shard\)") as raised:
        minijax.jit(first.bind)(partitioned)
    text = str(raised.value)
    assert "got       f32[8@x]" in text
    assert "shard = minijax.sharding.rules.elementwise" in text

    # The fixes that the message names work.
    within = minijax.sharding.auto_axes(first.bind, out_sharding=P("x"))
    np.testing.assert_array_equal(minijax.jit(within)(partitioned), X)
    first.shard = lambda avals, outs: P("x")
    assert str(minijax.typeof(minijax.jit(first.bind)(partitioned))) == "f32[8@x]"
