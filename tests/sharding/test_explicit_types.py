"""Shardings in types: each row of the table of rules, as jaxprs show it.

What is expected was recorded from JAX 0.10.2.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import minijax
from minijax import lax
from minijax import numpy as jnp
from minijax.core import tree
from minijax.core.aval import ShapedArray
from minijax.core.errors import ShardingTypeError
from minijax.core.meshes import AbstractMesh, AxisType
from minijax.interpreters import staging
from minijax.sharding import PartitionSpec as P
from minijax.sharding import auto_axes, explicit_axes, reshard, rules, use_abstract_mesh
from minijax.sharding.named import named

MESH = AbstractMesh((4, 2), ("x", "y"), AxisType.Explicit)
AUTO = AbstractMesh((4, 2), ("x", "y"))


@pytest.fixture(autouse=True)
def in_mesh() -> Iterator[None]:
    with use_abstract_mesh(MESH):
        yield


def split(*entries: Any, shape: tuple[int, ...] = (8, 8), mesh: AbstractMesh = MESH) -> Any:
    """The type of floats that are split so."""
    return placed(P(*entries), shape, mesh)


def placed(spec: P, shape: tuple[int, ...] = (8, 8), mesh: AbstractMesh = MESH) -> Any:
    """The type of floats that are placed so."""
    return rules.typed_aval(ShapedArray(shape, "float32"), named(mesh, spec))


def results(function: Callable[..., Any], *avals: Any) -> list[str]:
    """The types of the results of a function."""
    closed = staging.stage_closed(lambda *xs: tree.leaves(function(*xs)), avals)
    return [aval.str_short() for aval in closed.out_avals]


X, Y, XY, WHOLE = split("x"), split("y"), split("x", "y"), split()


@pytest.mark.parametrize(
    ("aval", "text"),
    [
        (XY, "f32[8@x,8@y]"),
        (split(("x", "y")), "f32[8@(x,y),8]"),
        (WHOLE, "f32[8,8]"),
        (split(None, "y", mesh=AUTO), "f32[8,8]"),
        (
            rules.typed_aval(ShapedArray((8,), "int8"), named(MESH, P(unreduced={"y"}))),
            "i8[8]{U:y}",
        ),
        (
            rules.typed_aval(ShapedArray((8,), "int8"), named(MESH, P(reduced={"x", "y"}))),
            "i8[8]{R:(x,y)}",
        ),
    ],
)
def test_types_show_shardings(aval: Any, text: str) -> None:
    assert aval.str_short() == text


def test_types_leave_out_auto_axes() -> None:
    mixed = AbstractMesh((4, 2), ("x", "y"), (AxisType.Explicit, AxisType.Auto))
    assert split(("x", "y"), mesh=mixed).str_short() == "f32[8@x,8]"


@pytest.mark.feature("SD-05", "SD-06")
@pytest.mark.parametrize(
    ("function", "avals", "expected"),
    [
        (lambda a, b: a + b, (X, split(None, "y")), "f32[8@x,8@y]"),
        (lambda a, b: a + b, (WHOLE, X), "f32[8@x,8]"),
        (lambda a: a + 1, (XY,), "f32[8@x,8@y]"),
        (lambda a: a + jnp.zeros((8, 8)), (XY,), "f32[8@x,8@y]"),
        (lambda a, b: a + b, (XY, split("y", shape=(8,))), "f32[8@x,8@y]"),
        (lambda a: a.T, (XY,), "f32[8@y,8@x]"),
        (lambda a: jnp.broadcast_to(a, (3, 8, 8)), (XY,), "f32[3,8@x,8@y]"),
        (lambda a: jnp.expand_dims(a, 0), (XY,), "f32[1,8@x,8@y]"),
        (lambda a: a.squeeze(1), (split("x", shape=(8, 1)),), "f32[8@x]"),
        (lambda a: a.sum(0), (XY,), "f32[8@y]"),
        (lambda a: a.max(1), (XY,), "f32[8@x]"),
        (lambda a: a.argmax(0), (XY,), "i32[8@y]"),
        (lambda a: a.reshape(4, 2, 8), (XY,), "f32[4@x,2,8@y]"),
        (lambda a: a.reshape(1, 8, 8, 1), (XY,), "f32[1,8@x,8@y,1]"),
        (lambda a: a.reshape(64), (X,), "f32[64@x]"),
        (lambda a: a.reshape(64), (XY,), "f32[64@(x,y)]"),
        (lambda a: a.reshape(4, 2, 8), (split(("x", "y")),), "f32[4@x,2@y,8]"),
        (lambda a: a.reshape(64, out_sharding=P("y")), (XY,), "f32[64@y]"),
        (lambda a, b: a @ b, (X, split(None, "y")), "f32[8@x,8@y]"),
        (lambda a, b: a @ b, (XY, WHOLE), "f32[8@x,8]"),
        (lambda a, b: jnp.dot(a, b, out_sharding=P("x")), (XY, Y), "f32[8@x,8]"),
        (
            lambda a, b: jnp.dot(a, b, out_sharding=P("x", unreduced={"y"})),
            (XY, Y),
            "f32[8@x,8]{U:y}",
        ),
        (
            lambda a, b: jnp.einsum("ij,jk->ki", a, b, out_sharding=P(None, "x")),
            (XY, Y),
            "f32[8,8@x]",
        ),
        (lambda a: a[:4], (XY,), "f32[4@x,8@y]"),
        (lambda a: a[:, 0], (X,), "f32[8@x]"),
        (lambda a: a.at[jnp.arange(2)].get(out_sharding=P(None, "y")), (XY,), "f32[2,8@y]"),
        (lambda a: jnp.concatenate([a, a]), (XY,), "f32[16@x,8@y]"),
        (lambda a: jnp.stack([a, a]), (XY,), "f32[2,8@x,8@y]"),
        (lambda a: jnp.sort(a, 1), (X,), "f32[8@x,8]"),
        (lambda a: jnp.where(a > 0, a, 0.0), (XY,), "f32[8@x,8@y]"),
        (jnp.zeros_like, (XY,), "f32[8@x,8@y]"),
        (lambda: jnp.zeros((8,), out_sharding=P("x")), (), "f32[8@x]"),
        (lambda: jnp.arange(8, out_sharding=P("x")), (), "i32[8@x]"),
        (lambda a: reshard(a, P("y")), (X,), "f32[8@y,8]"),
        (minijax.grad(lambda a: jnp.sin(a).sum()), (XY,), "f32[8@x,8@y]"),
        (minijax.grad(lambda w, a: (a @ w).sum()), (WHOLE, X), "f32[8,8]"),
        (minijax.grad(lambda w, a: (a * w).sum()), (WHOLE, XY), "f32[8,8]"),
        (minijax.vmap(lambda a: a * 2), (XY,), "f32[8@x,8@y]"),
        (minijax.vmap(minijax.jit(lambda a: a * 2)), (XY,), "f32[8@x,8@y]"),
        (
            minijax.vmap(lambda a: lax.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, a)),
            (XY,),
            "f32[8@x,8@y]",
        ),
        (
            minijax.vmap(lambda a: lax.scan(lambda c, v: (c + v, c), 0.0, a)[1]),
            (X,),
            "f32[8@x,8]",
        ),
        (lambda a: minijax.jit(jnp.sin)(a), (XY,), "f32[8@x,8@y]"),
        (lambda a: lax.cond(a.sum() > 0, lambda b: b, lambda b: b + 1, a), (XY,), "f32[8@x,8@y]"),
        (minijax.checkpoint(jnp.sin), (XY,), "f32[8@x,8@y]"),
    ],
)
def test_results_are_split_by_rule(
    function: Callable[..., Any], avals: tuple[Any, ...], expected: str
) -> None:
    assert results(function, *avals) == [expected]


@pytest.mark.feature("SD-05", "SD-06")
@pytest.mark.parametrize(
    ("function", "avals", "match"),
    [
        (lambda a, b: a + b, (X, Y), "add: operands are split differently in dimension 0"),
        (lambda a, b: a + b, (X, split(None, "x")), "split over 'x' in two dimensions"),
        (lambda a: a.reshape(2, 4, 8), (XY,), r"(?s)reshape: .*out_sharding=spec"),
        (lambda a: a.reshape(64), (split(None, "y"),), "it does not follow"),
        (lambda a, b: a @ b, (XY, Y), r"(?s)ambiguous.*out_sharding=spec.*unreduced over 'y'"),
        (lambda a, b: a @ b, (XY, X), "split over 'y' on the left and 'x' on the right"),
        (lambda a: a[:3], (XY,), "has size 3, which cannot be split over 'x' into 4"),
        (lambda a: jnp.cumsum(a, 1), (XY,), "dimension 1 of an operand is split over 'y'"),
        (lambda a: jnp.sort(a, 0), (X,), r"(?s)sort: dimension 0 .*reshard\(x, spec\)"),
        (lambda a: a[jnp.arange(2)], (XY,), "gather: dimension 0"),
        (
            lambda a, b: jnp.sin(jnp.dot(a, b, out_sharding=P("x", unreduced={"y"}))),
            (XY, Y),
            "sin: an operand is unreduced over 'y'",
        ),
    ],
)
def test_conflicts_are_refused(
    function: Callable[..., Any], avals: tuple[Any, ...], match: str
) -> None:
    with pytest.raises(ShardingTypeError, match=match):
        results(function, *avals)


def test_refusals_name_the_users_line() -> None:
    with pytest.raises(ShardingTypeError, match=r"at +.*test_explicit_types\.py:\d+"):
        results(lambda a, b: a + b, X, Y)


def test_operands_on_two_meshes_are_refused() -> None:
    other = AbstractMesh((2, 4), ("x", "y"), AxisType.Explicit)
    with pytest.raises(ValueError, match=r"(?s)different meshes.*'x': 4.*'x': 2"):
        results(lambda a, b: a + b, X, split("x", mesh=other))


def test_programs_are_traced_with_the_mesh_of_their_arguments() -> None:
    with use_abstract_mesh(AbstractMesh((), ())):
        assert results(lambda a: reshard(a, P("y")), X) == ["f32[8@y,8]"]


def test_arguments_on_two_meshes_are_refused_where_no_mesh_is_set() -> None:
    other = AbstractMesh((2, 4), ("x", "y"), AxisType.Explicit)
    with (
        use_abstract_mesh(AbstractMesh((), ())),
        pytest.raises(ValueError, match="the arguments are on different meshes"),
    ):
        results(lambda a, b: a, X, split("x", mesh=other))


def test_a_carry_that_becomes_split_is_refused() -> None:
    with pytest.raises(TypeError, match=r"(?s)the shardings differ.*reshard\(x, spec\)"):
        results(lambda a: lax.scan(lambda c, v: (c + v, None), jnp.zeros(8), a), split(None, "y"))


def test_branches_split_differently_are_refused() -> None:
    with pytest.raises(TypeError, match=r"(?s)the shardings differ.*reshard\(x, spec\)"):
        results(lambda a: lax.cond(a.sum() > 0, lambda b: b, lambda b: jnp.zeros((8, 8)), a), X)


@pytest.mark.parametrize(
    ("spec", "match"),
    [(P("z"), "no axis of the mesh"), (P(("x", "y"), "x"), "twice"), (P(None, None, "x"), "more")],
)
def test_reshard_refuses_impossible_specs(spec: P, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        results(lambda a: reshard(a, spec), X)


def test_reshard_refuses_sizes_that_do_not_divide() -> None:
    with pytest.raises(ValueError, match="dimension 0 cannot be split into 4 equal parts"):
        results(lambda a: reshard(a, P("x")), split(shape=(6,)))


def test_reshard_refuses_auto_axes() -> None:
    with use_abstract_mesh(AUTO), pytest.raises(ValueError, match="of type Auto"):
        results(lambda a: reshard(a, P("x")), ShapedArray((8,), "float32"))


def test_constraints_assert_what_types_show() -> None:
    assert results(lambda a: lax.with_sharding_constraint(a, P("x")), X) == ["f32[8@x,8]"]
    with pytest.raises(AssertionError, match="split otherwise"):
        results(lambda a: lax.with_sharding_constraint(a, P("y")), X)


def test_auto_axes_hides_shardings_inside() -> None:
    seen = []

    @auto_axes(out_sharding=P("x", "y"))
    def inner(a: Any) -> Any:
        seen.append(minijax.typeof(a).str_short())
        return a @ a

    assert results(inner, XY) == ["f32[8@x,8@y]"]
    assert seen == ["f32[8,8]"]


def test_auto_axes_of_some_axes_keeps_the_others() -> None:
    seen = []

    def inner(a: Any) -> Any:
        seen.append(minijax.typeof(a).str_short())
        return a * 2

    assert results(auto_axes(inner, axes="y", out_sharding=P("x")), XY) == ["f32[8@x,8]"]
    assert seen == ["f32[8@x,8]"]


def test_auto_axes_needs_an_out_sharding() -> None:
    with pytest.raises(TypeError, match="needs the keyword argument out_sharding"):
        results(auto_axes(lambda a: a), X)


def test_explicit_axes_shows_shardings_inside() -> None:
    seen = []

    def inner(a: Any) -> Any:
        seen.append(minijax.typeof(a).str_short())
        return a * 2

    with use_abstract_mesh(AUTO):
        plain = ShapedArray((8, 8), "float32")
        assert results(explicit_axes(inner, in_sharding=P("x", "y")), plain) == ["f32[8,8]"]
    assert seen == ["f32[8@x,8@y]"]
