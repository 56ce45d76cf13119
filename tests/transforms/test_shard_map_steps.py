"""`shard_map` run step by step: what Python sees of blocks."""

import contextlib
import io
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import minijax
from minijax import lax, random
from minijax import numpy as jnp
from minijax.core.errors import TracerBoolConversionError, UnexpectedTracerError
from minijax.sharding import AxisType, Mesh
from minijax.sharding import PartitionSpec as P

X = np.arange(8, dtype=np.float32).reshape(4, 2)
pytestmark = pytest.mark.feature("SM-06")


@pytest.fixture(scope="module")
def mesh() -> Iterator[Mesh]:
    with minijax.cpu_devices(8):
        yield minijax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def mapped(mesh: Mesh, function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return minijax.shard_map(
        function, **{"mesh": mesh, "in_specs": P("x", "y"), "out_specs": P("x", "y"), **options}
    )


def test_blocks_print_with_devices_and_coordinates(
    mesh: Mesh, golden: Callable[[str, str], None]
) -> None:
    def f(a: Any) -> Any:
        print(a)  # noqa: T201
        print(repr(lax.psum(a, "x")))  # noqa: T201
        print(f"the sum of all: {lax.psum(jnp.sum(a), ('x', 'y')):.1f}")  # noqa: T201
        return a

    printed = io.StringIO()
    with minijax.disable_jit(), contextlib.redirect_stdout(printed):
        mapped(mesh, f)(X)
    golden("shard_map_steps.txt", printed.getvalue())


def test_blocks_print_under_grad(mesh: Mesh) -> None:
    seen = []

    def f(a: Any) -> Any:
        seen.append(str(a))
        return a * a

    with minijax.disable_jit():
        minijax.grad(lambda x: jnp.sum(mapped(mesh, f)(x)))(X)
    assert seen[0].startswith("On cpu:0 at mesh coordinates (x, y) = (0, 0):\n[[0.]]\n")


def test_blocks_of_some_axes_name_all_devices_that_hold_them(mesh: Mesh) -> None:
    seen = []

    def f(a: Any) -> Any:
        seen.append(str(a))
        return a

    with minijax.disable_jit():
        mapped(mesh, f, in_specs=P("y"), out_specs=P("y"), axis_names={"y"})(X)
    assert seen[0].startswith("On cpu:0, cpu:2, cpu:4, cpu:6 at mesh coordinates (y,) = (0,):\n")


def test_keys_print(mesh: Mesh) -> None:
    seen = []

    def f(keys: Any) -> Any:
        seen.append(str(keys))
        return keys

    with minijax.disable_jit():
        mapped(mesh, f, in_specs=P("x"), out_specs=P("x"))(random.split(random.key(0), 4))
    assert "On cpu:2, cpu:3" not in seen[0]
    assert "On cpu:2 at mesh coordinates (x, y) = (1, 0):\nArray((1,), dtype=key<fry>)" in seen[0]


def test_python_looks_at_what_is_the_same_everywhere(mesh: Mesh) -> None:
    def f(a: Any) -> Any:
        total = lax.psum(jnp.sum(a), ("x", "y"))
        assert (int(total), float(total), bool(total > 0)) == (28, 28.0, True)
        np.testing.assert_array_equal(np.asarray(lax.pmax(a, ("x", "y"))), [[7.0]])
        return a * [3.0, 4.0][lax.psum(1, "y") - 2]

    np.testing.assert_array_equal(mapped(mesh, f)(X), X * 3)


def test_python_looks_under_grad(mesh: Mesh) -> None:
    def f(a: Any) -> Any:
        return a * a if lax.psum(jnp.sum(a), ("x", "y")) > 0 else a

    found = minijax.grad(lambda x: jnp.sum(mapped(mesh, f)(x)))(X)
    np.testing.assert_array_equal(found, 2 * X)


def test_python_cannot_look_at_what_varies(mesh: Mesh) -> None:
    with pytest.raises(TracerBoolConversionError, match=r"may differ between devices along 'x'"):
        mapped(mesh, lambda a: a if jnp.sum(lax.psum(a, "y")) > 0 else -a)(X)


def test_python_cannot_look_without_types(mesh: Mesh) -> None:
    f = mapped(mesh, lambda a: a if lax.psum(a, ("x", "y"))[0, 0] else -a, check_vma=False)
    with pytest.raises(TracerBoolConversionError, match=r"may differ between devices"):
        f(X)


def test_python_cannot_look_under_jit(mesh: Mesh) -> None:
    f = mapped(mesh, lambda a: a if lax.psum(a, ("x", "y"))[0, 0] else -a)
    with pytest.raises(TracerBoolConversionError):
        minijax.jit(f)(X)


def test_nested_shard_map_runs_step_by_step_too(mesh: Mesh) -> None:
    calls = []

    def inner(b: Any) -> Any:
        calls.append(b)
        return b + lax.axis_index("y") if lax.psum(1, "y") == 2 else b

    def outer(a: Any) -> Any:
        return minijax.shard_map(
            inner, in_specs=P(None, "y"), out_specs=P(None, "y"), axis_names={"y"}
        )(a) * lax.axis_index("x")

    options = {"in_specs": P("x"), "out_specs": P("x"), "axis_names": {"x"}}
    expected = minijax.jit(mapped(mesh, outer, **options))(X)
    with minijax.disable_jit():
        found = mapped(mesh, outer, **options)(X)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(found, (X + np.array([0, 1])) * np.arange(4).reshape(4, 1))


@pytest.mark.parametrize("checked", [True, False])
def test_steps_inside_vmap(checked: bool, mesh: Mesh) -> None:
    f = mapped(mesh, lambda a: a * lax.psum(a, "x"), check_vma=checked)
    xs = np.stack([X, X + 1])
    with minijax.disable_jit():
        found = minijax.vmap(f)(xs)
    np.testing.assert_array_equal(found, xs * xs.sum(1, keepdims=True))


def test_custom_rules_serve_traces_around(mesh: Mesh) -> None:
    @minijax.custom_vjp
    def f(a: Any) -> Any:
        return a * 2

    f.defvjp(lambda a: (a * 2, None), lambda _, ct: (ct * 10,))
    with minijax.disable_jit():
        found = minijax.grad(lambda x: jnp.sum(mapped(mesh, f)(x)))(X)
    np.testing.assert_array_equal(found, np.full((4, 2), 10.0))


def test_references_of_arguments_are_written(mesh: Mesh) -> None:
    ref = minijax.new_ref(jnp.asarray(X))

    def f(r: Any) -> None:
        r[...] = r[...] * lax.axis_index("x")

    with minijax.disable_jit():
        mapped(mesh, f, in_specs=P("x"), out_specs=None)(ref)
    np.testing.assert_array_equal(ref[...], X * np.arange(4).reshape(4, 1))


def test_references_from_outside_take_what_is_the_same(mesh: Mesh) -> None:
    ref = minijax.new_ref(jnp.zeros(()))

    def f(a: Any) -> Any:
        ref[...] = lax.psum(jnp.sum(a), ("x", "y"))
        return a

    with minijax.disable_jit():
        mapped(mesh, f)(X)
    assert ref[...] == 28


def test_blocks_do_not_leak(mesh: Mesh) -> None:
    kept = []

    def f(a: Any) -> Any:
        kept.append(a)
        return a

    with minijax.disable_jit():
        mapped(mesh, f)(X)
        with pytest.raises(UnexpectedTracerError):
            kept[0] + 1


def test_steps_with_an_axis_name_of_the_user_around_do_not_change_meaning(mesh: Mesh) -> None:
    f = mapped(mesh, lambda a: a * lax.psum(a, "x"), in_specs=P("x"), out_specs=P("x"))
    xs = np.stack([X, X + 1])
    with minijax.disable_jit():
        found = minijax.vmap(f, spmd_axis_name="y")(xs)
    np.testing.assert_array_equal(found, xs * xs.sum(1, keepdims=True))
