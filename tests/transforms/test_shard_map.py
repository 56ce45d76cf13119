"""`shard_map`: what it computes, however it is run, and how it is called."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import minijax
from minijax import lax
from minijax import numpy as jnp
from minijax.core import tree
from minijax.sharding import AxisType, Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P
from tests.transforms.per_device import PROGRAMS, Program, X

SMOOTH = [p for p in PROGRAMS if p.smooth and p.args]
both_modes = pytest.mark.parametrize("checked", [True, False], ids=["checked", "unchecked"])


@pytest.fixture(scope="module")
def mesh() -> Iterator[Mesh]:
    with minijax.cpu_devices(8):
        yield minijax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def mapped(program: Program, mesh: Mesh, checked: bool) -> Callable[..., Any]:
    return minijax.shard_map(
        program.function,
        mesh=mesh,
        in_specs=program.in_specs,
        out_specs=program.out_specs,
        check_vma=checked,
    )


def assert_equal_trees(actual: Any, expected: Any, tolerance: float = 1e-5) -> None:
    assert tree.structure(actual) == tree.structure(expected)
    for a, e in zip(tree.leaves(actual), tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(e), tolerance, tolerance)


@pytest.mark.feature("SM-01")
@both_modes
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_shard_map_computes_what_whole_arrays_give(
    program: Program, checked: bool, mesh: Mesh
) -> None:
    found = mapped(program, mesh, checked)(*program.args)
    assert_equal_trees(found, program.oracle(*program.args))


@pytest.mark.feature("SM-01")
@both_modes
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_shard_map_under_jit_computes_the_same(program: Program, checked: bool, mesh: Mesh) -> None:
    found = minijax.jit(mapped(program, mesh, checked))(*program.args)
    assert_equal_trees(found, program.oracle(*program.args))


@pytest.mark.slow
@pytest.mark.feature("SM-06")
@both_modes
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_shard_map_step_by_step_computes_the_same(
    program: Program, checked: bool, mesh: Mesh
) -> None:
    with minijax.disable_jit():
        found = mapped(program, mesh, checked)(*program.args)
    assert_equal_trees(found, program.oracle(*program.args))


def loss(function: Callable[..., Any]) -> Callable[..., Any]:
    def total(*args: Any) -> Any:
        return sum(jnp.sum(jnp.sin(leaf)) for leaf in tree.leaves(function(*args)))

    return total


def gradient(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    return minijax.grad(loss(function), argnums=tuple(range(len(args))))(*args)


@functools.cache
def direction(size: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(size).normal(size=size)


def slope(program: Program) -> float:
    """The derivative along a fixed direction, by finite differences of the oracle."""
    leaves, treedef = tree.flatten(program.args)

    def value(step: float) -> float:
        moved = [
            np.asarray(x, np.float64) + step * direction(np.size(x)).reshape(np.shape(x))
            for x in leaves
        ]
        outs = tree.leaves(program.oracle(*tree.unflatten(treedef, moved)))
        return float(sum(np.sin(np.asarray(out, np.float64)).sum() for out in outs))

    return (value(1e-5) - value(-1e-5)) / 2e-5


@pytest.mark.slow
@pytest.mark.feature("SM-10", "AD-05")
@both_modes
@pytest.mark.parametrize("program", SMOOTH, ids=lambda p: p.name)
def test_gradients_of_shard_map_are_those_of_whole_arrays(
    program: Program, checked: bool, mesh: Mesh
) -> None:
    found = tree.leaves(gradient(mapped(program, mesh, checked), program.args))
    along = sum((np.asarray(g) * direction(g.size).reshape(g.shape)).sum() for g in found)
    np.testing.assert_allclose(along, slope(program), rtol=2e-3, atol=2e-3)


@pytest.mark.slow
@pytest.mark.feature("SM-06", "AD-05")
@both_modes
@pytest.mark.parametrize("program", SMOOTH, ids=lambda p: p.name)
def test_gradients_step_by_step_are_the_same(program: Program, checked: bool, mesh: Mesh) -> None:
    expected = gradient(mapped(program, mesh, checked), program.args)
    with minijax.disable_jit():
        found = gradient(mapped(program, mesh, checked), program.args)
    assert_equal_trees(found, expected, 1e-4)


@pytest.mark.feature("SM-01")
def test_shard_map_is_a_decorator(mesh: Mesh) -> None:
    @minijax.shard_map(mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    def double(a: Any) -> Any:
        """Twice."""
        return a * 2

    assert double.__name__ == "double"
    assert double.__doc__ == "Twice."
    np.testing.assert_array_equal(double(X), X * 2)


@pytest.mark.feature("SM-01")
def test_shard_map_takes_no_keyword_arguments(mesh: Mesh) -> None:
    f = minijax.shard_map(lambda a: a, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    with pytest.raises(TypeError, match="shard_map: arguments go by position"):
        f(a=X)


@pytest.mark.feature("SM-01")
def test_results_live_where_the_specs_say(mesh: Mesh) -> None:
    f = minijax.shard_map(lambda a: a, mesh=mesh, in_specs=P("x"), out_specs=P("x", None))
    assert f(X).sharding == NamedSharding(mesh, P("x", None))


@pytest.mark.feature("SM-01")
def test_values_closed_over_are_the_same_on_all_devices(mesh: Mesh) -> None:
    w = jnp.arange(8.0)
    f = minijax.shard_map(lambda a: a * w, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    np.testing.assert_allclose(f(X), X * np.arange(8))


@pytest.mark.feature("SM-10")
def test_values_closed_over_are_differentiated(mesh: Mesh) -> None:
    def total(w: Any) -> Any:
        f = minijax.shard_map(lambda a: a * w, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
        return jnp.sum(f(X))

    np.testing.assert_allclose(minijax.grad(total)(jnp.ones(8)), X.sum(0), rtol=1e-5)


@pytest.mark.feature("SM-01")
def test_results_without_leaves_need_no_spec(mesh: Mesh) -> None:
    f = minijax.shard_map(lambda a: None, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    assert f(X) is None


@pytest.mark.feature("SM-05")
def test_without_check_the_first_device_gives_what_specs_leave_away(mesh: Mesh) -> None:
    f = minijax.shard_map(
        lambda a: a, mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y"), check_vma=False
    )
    np.testing.assert_array_equal(f(X), X[:2])


@pytest.mark.feature("SM-01")
def test_typeof_tells_over_what_a_block_varies(mesh: Mesh) -> None:
    seen = []

    def f(a: Any) -> Any:
        seen.extend(map(minijax.typeof, (a, lax.psum(a, "x"), jnp.zeros_like(a), jnp.zeros(3))))
        return a

    minijax.shard_map(f, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(X)
    texts = ["f32[2,4]{V:(x,y)}", "f32[2,4]{V:y}", "f32[2,4]{V:(x,y)}", "f32[3]"]
    assert list(map(str, seen)) == texts


@pytest.mark.feature("SM-01")
def test_donated_arguments_are_gone(mesh: Mesh) -> None:
    f = minijax.shard_map(lambda a: a * 2, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    x = minijax.device_put(X, NamedSharding(mesh, P("x")))
    minijax.jit(f, donate_argnums=0)(x)
    assert x.is_deleted()


@pytest.mark.feature("SM-01")
@pytest.mark.parametrize("where", ["loop", "cond"])
def test_shard_map_inside_control_flow(where: str, mesh: Mesh) -> None:
    f = minijax.shard_map(
        lambda a: a + lax.psum(a, "x"), mesh=mesh, in_specs=P("x"), out_specs=P("x")
    )
    once = X + np.tile(X.reshape(4, 2, 8).sum(0), (4, 1))
    if where == "cond":
        np.testing.assert_allclose(lax.cond(True, f, lambda a: a, X), once, rtol=1e-5)
        return
    twice = once + np.tile(once.reshape(4, 2, 8).sum(0), (4, 1))
    found = lax.scan(lambda c, _: (f(c), None), X, None, length=2)[0]
    np.testing.assert_allclose(found, twice, rtol=1e-5)


class _Mode:
    """No array, and no hash."""

    __hash__ = None  # type: ignore[assignment]

    factor = 2


STATIC_ARGUMENTS: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "text": (lambda a, s: a * 2 if s == "double" else a, "double", None),
    "function": (lambda a, s: s(a) * 2, lambda a: a, None),
    "object": (lambda a, s: a * s.factor, _Mode(), None),
    "dtype": (lambda a, s: a * s(2), jnp.float32, None),
    "number": (lambda a, s: a.reshape(s, -1).reshape(a.shape) * s, 2, None),
    "None": (lambda a, s: a * 2 if s is None else a, None, None),
    "among arrays": (
        lambda a, s: a * s["w"] * len(s["name"]),
        {"name": "x", "w": np.float32(2)},
        {"name": None, "w": P()},
    ),
    "beside arrays": (
        lambda a, s: a * s[0] * len(s[1]),
        [np.float32(2), "x"],
        None,
    ),
}

PLACES: dict[str, Callable[..., Any]] = {
    "eager": lambda f, a, s: f(a, s),
    "jit": lambda f, a, s: minijax.jit(lambda a: f(a, s))(a),
    "vmap": lambda f, a, s: minijax.vmap(lambda a: f(a, s))(a[None])[0],
    "grad": lambda f, a, s: minijax.grad(lambda a: (f(a, s) * a).sum() / 2)(a),
}


@pytest.mark.feature("UX-07")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("case", STATIC_ARGUMENTS)
def test_what_is_no_array_reaches_the_function(mesh: Mesh, case: str, place: str) -> None:
    function, given, spec = STATIC_ARGUMENTS[case]
    f = minijax.shard_map(function, mesh=mesh, in_specs=(P("x"), spec), out_specs=P("x"))
    np.testing.assert_allclose(PLACES[place](f, X, given), X * 2, rtol=1e-6)


@pytest.mark.feature("UX-07")
def test_static_arguments_of_jit_reach_the_function(mesh: Mesh) -> None:
    traces = []

    def scaled(a: Any, name: str) -> Any:
        traces.append(name)
        return a * len(name)

    f = minijax.shard_map(scaled, mesh=mesh, in_specs=(P("x"), None), out_specs=P("x"))
    jitted = minijax.jit(f, static_argnums=1)
    for name in ("ab", "abc", "ab"):
        np.testing.assert_allclose(jitted(X, name), X * len(name), rtol=1e-6)
    assert traces == ["ab", "abc"]


@pytest.mark.feature("UX-07")
def test_what_is_no_array_and_has_a_spec_is_refused(mesh: Mesh) -> None:
    f = minijax.shard_map(lambda a, s: a, mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"))
    expected = r"the argument s is neither an array nor a number(.|\n)*None in in_specs"
    with pytest.raises(TypeError, match=expected):
        f(X, "double")


def test_step_by_step_also_passes_what_is_no_array(mesh: Mesh) -> None:
    f = minijax.shard_map(
        lambda a, s: s(a) * 2, mesh=mesh, in_specs=(P("x"), None), out_specs=P("x")
    )
    with minijax.disable_jit():
        np.testing.assert_allclose(f(X, jnp.abs), np.abs(X) * 2, rtol=1e-6)
