"""`in_shardings` and `out_shardings`: what they may be, and where values end up."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.lowering import program_shardings
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P
from minijax.sharding.named import AUTO, UNSPECIFIED

X = np.arange(8, dtype=np.float32)


@pytest.fixture
def mesh() -> Iterator[Mesh]:
    with jax.cpu_devices(8):
        yield Mesh(np.array(jax.devices()[:2]), "x")


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Pair:
    left: Any
    right: Any


def specs(tree: Any) -> Any:
    return jax.tree.map(lambda x: x.sharding.spec, tree)


def test_one_sharding_stands_for_all(mesh: Mesh) -> None:
    split = NamedSharding(mesh, P("x"))
    f = jax.jit(lambda d, b: (d["a"] + b, d), in_shardings=split, out_shardings=split)

    assert specs(f({"a": X}, X)) == (P("x"), {"a": P("x")})


@pytest.mark.parametrize("empty", [None, UNSPECIFIED], ids=str)
def test_prefixes_may_leave_parts_open(mesh: Mesh, empty: Any) -> None:
    split, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
    f = jax.jit(
        lambda pair, more: {"sum": pair.left + pair.right, "more": more},
        in_shardings=(Pair(split, empty), [whole, empty]),
        out_shardings={"sum": split, "more": [empty, split]},
    )

    out = f(Pair(X, X), [X, X])

    assert specs(out) == {"sum": P("x"), "more": [P(), P("x")]}
    np.testing.assert_array_equal(out["sum"], 2 * X)


def test_lists_stand_for_the_tuple_of_arguments(mesh: Mesh) -> None:
    split = NamedSharding(mesh, P("x"))

    assert jax.jit(lambda a, b: a + b, in_shardings=[split, split])(X, X).sharding == split


def test_specs_need_no_more_than_a_mesh_in_force(mesh: Mesh) -> None:
    f = jax.jit(lambda a: a * 2, in_shardings=P("x"), out_shardings=P())

    with jax.set_mesh(mesh):
        assert f(X).sharding == NamedSharding(mesh, P())
    with pytest.raises(RuntimeError, match="jit's in_shardings: a PartitionSpec needs a mesh"):
        f(X)


@pytest.mark.parametrize("where", ["in_shardings", "out_shardings"])
def test_abstract_meshes_take_the_devices_of_arguments(mesh: Mesh, where: str) -> None:
    options = {where: NamedSharding(mesh.abstract_mesh, P("x"))}
    split = jax.device_put(X, NamedSharding(mesh, P("x")))

    assert jax.jit(lambda a: a * 2, **options)(split).sharding == split.sharding


def test_abstract_mesh_without_devices_is_refused(mesh: Mesh) -> None:
    f = jax.jit(lambda a: a * 2, in_shardings=NamedSharding(mesh.abstract_mesh, P("x")))

    with pytest.raises(ValueError, match="another number of devices than an abstract mesh has"):
        f(X)
    with jax.set_mesh(mesh):
        assert f(X).sharding == NamedSharding(mesh, P("x"))


def test_static_arguments_have_no_placement(mesh: Mesh) -> None:
    split = NamedSharding(mesh, P("x"))
    f = jax.jit(lambda n, a: a * n, in_shardings=(split,), static_argnums=0)

    assert f(3, X).sharding == split
    with pytest.raises(
        ValueError, match=r"in_shardings: tuple of length 2   args: tuple of length 1"
    ):
        jax.jit(lambda n, a: a * n, in_shardings=(None, split), static_argnums=0)(3, X)


def test_donation_works_with_placements(mesh: Mesh) -> None:
    split = NamedSharding(mesh, P("x"))
    x = jax.device_put(X, split)

    out = jax.jit(lambda a: a * 2, in_shardings=split, out_shardings=split, donate_argnums=0)(x)

    assert x.is_deleted()
    np.testing.assert_array_equal(out, 2 * X)


def test_decorator_takes_placements(mesh: Mesh) -> None:
    @functools.partial(jax.jit, in_shardings=P("x"), out_shardings=P())
    def f(a: Any) -> Any:
        return a + 1

    with jax.set_mesh(mesh):
        assert f(X).sharding.spec == P()


def test_uncommitted_and_foreign_arguments_are_moved(mesh: Mesh) -> None:
    split = NamedSharding(mesh, P("x"))
    f = jax.jit(lambda a: a * 2, in_shardings=split)
    others = Mesh(np.array(jax.devices()[2:4]), "x")

    for x in (X, jnp.asarray(X), jax.device_put(X, jax.devices()[5])):
        assert f(x).sharding == split
    assert f(jax.device_put(X, NamedSharding(others, P()))).sharding == split


@pytest.mark.feature("JT-25")
def test_results_carry_the_sharding_of_arguments_or_the_one_given(mesh: Mesh) -> None:
    given = NamedSharding(mesh, P("x"))
    wide = jax.device_put(np.ones((4, 4), np.float32), given)

    assert jax.jit(lambda a: a * 2)(wide).sharding is wide.sharding
    assert jax.jit(lambda a: a * 2, out_shardings=given)(wide).sharding == given


@pytest.mark.feature("JT-17", "JT-19")
def test_results_are_described_as_the_first_argument_is(mesh: Mesh) -> None:
    split = jax.device_put(np.ones((4, 4), np.float32), NamedSharding(mesh, P(None, "x")))
    f = jax.jit(lambda a: (a * 2, a.T, a.sum(), 3.0, a))

    assert specs(f(split)) == (P(None, "x"), P("x"), P(), P(), P(None, "x"))


def test_constants_and_forwarded_arguments_go_where_they_shall(mesh: Mesh) -> None:
    split, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
    f = jax.jit(lambda a: (a, 3.0, jnp.ones(8), a), out_shardings=(whole, whole, split, split))

    assert specs(f(jax.device_put(X, split))) == (P(), P(), P("x"), P("x"))


@pytest.mark.feature("JT-18")
def test_one_device_gives_single_device_shardings() -> None:
    assert isinstance(jax.jit(lambda a: a * 2)(X).sharding, jax.sharding.SingleDeviceSharding)


@pytest.mark.feature("JT-21")
def test_auto_leaves_the_choice_to_the_compiler(mesh: Mesh) -> None:
    out = jax.jit(lambda a: a * 2, in_shardings=AUTO(mesh), out_shardings=AUTO(mesh))(X)

    assert out.sharding.mesh is mesh
    np.testing.assert_array_equal(out, 2 * X)


@pytest.mark.feature("JT-40")
def test_placements_of_inner_functions_are_constraints(mesh: Mesh) -> None:
    inner = jax.jit(
        lambda a: a * 2,
        in_shardings=NamedSharding(mesh, P("x")),
        out_shardings=NamedSharding(mesh, P()),
    )

    text = jax.jit(lambda a: inner(a) + 1).lower(X).as_text()

    assert text.count("sdy.sharding_constraint") == 2
    assert '@mesh, [{"x"}]> : tensor<8xf32>' in text


TRANSFORMED: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "scan": (
        lambda g: lambda x: jax.lax.scan(lambda c, _: (g(c), None), x, None, length=3)[0],
        lambda x: np.sin(np.sin(np.sin(x))),
    ),
    "vmap": (lambda g: lambda x: jax.vmap(g)(jnp.stack([x, x]))[1], np.sin),
    "grad": (lambda g: jax.grad(lambda x: g(x).sum()), np.cos),
    "vjp": (lambda g: lambda x: jax.vjp(g, x)[1](jnp.ones(8))[0], np.cos),
    "inline": (lambda g: lambda x: g(x), np.sin),
}


@pytest.mark.parametrize("name", TRANSFORMED)
@pytest.mark.parametrize("outer", [jax.jit, lambda f: f], ids=["in jit", "eager"])
def test_placements_survive_transformations(mesh: Mesh, name: str, outer: Any) -> None:
    split = NamedSharding(mesh, P("x"))
    transform, expected = TRANSFORMED[name]
    g = jax.jit(jnp.sin, in_shardings=split, out_shardings=split, inline=name == "inline")

    out = outer(transform(g))(X)

    assert out.sharding.is_equivalent_to(split, 1)
    np.testing.assert_allclose(out, expected(X), rtol=1e-5, atol=1e-6)


def refused(**options: Any) -> Callable[[Any], Any]:
    return lambda mesh: jax.jit(
        lambda d: {"w": d["w"][:7] * 2, "s": 0.0},
        **{
            name: jax.tree.map(
                lambda spec: NamedSharding(mesh, spec), tree, is_leaf=lambda x: isinstance(x, P)
            )
            for name, tree in options.items()
        },
    )({"w": X})


REFUSED: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "length": (
        refused(in_shardings=(P("x"), P())),
        ValueError,
        r"in_shardings is not a tree prefix(.|\n)*tuple of length 2   args: tuple of length 1",
    ),
    "keys": (
        refused(out_shardings={"w": P(), "z": P()}),
        ValueError,
        r"out_shardings is not a tree prefix of the results(.|\n)*lacks 's'",
    ),
    "nested": (
        refused(in_shardings=({"w": (P(), P())},)),
        ValueError,
        r"in_shardings\[0\]\['w'\]",
    ),
    "rank of an argument": (
        refused(in_shardings=P("x", None)),
        ValueError,
        r"in_shardings of d\['w'\].*more entries",
    ),
    "rank of a result": (
        refused(out_shardings={"w": P(), "s": P("x")}),
        ValueError,
        r"out_shardings of result\['s'\].*more entries",
    ),
    "indivisible": (
        refused(out_shardings={"w": P("x"), "s": P()}),
        ValueError,
        r"out_shardings of result\['w'\].*dimension 0 of size 7 cannot be cut into 2",
    ),
    "unconstrained": (
        refused(in_shardings=P(P.UNCONSTRAINED)),
        ValueError,
        "in_shardings must not leave dimensions UNCONSTRAINED",
    ),
    "unknown axis": (
        lambda mesh: under(mesh, lambda: jax.jit(lambda d: d, out_shardings=P("z"))(X)),
        ValueError,
        "out_shardings of result: .*names 'z'",
    ),
    "keywords": (
        lambda mesh: jax.jit(lambda d: d, in_shardings=NamedSharding(mesh, P()))(d=X),
        ValueError,
        r"positional arguments only(.|\n)*\['d'\]",
    ),
    "no placement": (
        lambda mesh: jax.jit(lambda d: d, in_shardings="x"),
        TypeError,
        "'x' of type str",
    ),
    "device": (
        lambda mesh: jax.jit(
            lambda d: d, in_shardings=NamedSharding(mesh, P()), device=jax.devices()[0]
        ),
        ValueError,
        "in_shardings, or device or backend, not both",
    ),
    "contradiction": (
        lambda mesh: jax.jit(lambda d: d * 2, in_shardings=NamedSharding(mesh, P()))(
            jax.device_put(X, NamedSharding(mesh, P("x")))
        ),
        ValueError,
        r"argument d of <lambda>.*otherwise than in_shardings says(.|\n)*P\('x',\)(.|\n)*P\(\)",
    ),
}


def under(mesh: Mesh, call: Callable[[], Any]) -> Any:
    with jax.set_mesh(mesh):
        return call()


@pytest.mark.feature("JT-01", "JT-04")
@pytest.mark.parametrize("name", REFUSED)
def test_placements_that_do_not_fit_are_refused(mesh: Mesh, name: str) -> None:
    call, error, text = REFUSED[name]

    with pytest.raises(error, match=text):
        call(mesh)


@pytest.mark.feature("JT-20")
def test_result_that_xla_places_elsewhere_is_an_error(
    mesh: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_parameters = program_shardings.compile.parameter_tilings
    monkeypatch.setattr(program_shardings.compile, "result_tilings", of_parameters)
    split, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
    f = jax.jit(lambda a: a - 17, in_shardings=split, out_shardings=whole)

    with pytest.raises(AssertionError, match=r"result 0 otherwise(.|\n)*devices=\[2\](.|\n)*P\(\)"):
        f(X)


@pytest.mark.feature("JT-03")
def test_unused_arguments_are_no_parameters(mesh: Mesh) -> None:
    x = jax.device_put(X, NamedSharding(mesh, P("x")))

    pruned = jax.jit(lambda a, b: a * 2).lower(x, x)
    kept = jax.jit(lambda a, b: a * 2, keep_unused=True).lower(x, x)

    assert "%arg1" not in pruned.as_text()
    assert "%arg1" in kept.as_text()
    assert pruned.compile().input_shardings == ((x.sharding, None), {})
    assert kept.compile().input_shardings == ((x.sharding, x.sharding), {})
