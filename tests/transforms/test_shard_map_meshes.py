"""`shard_map` and meshes: abstract ones, those in force, parts of them, and Explicit axes."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import minijax
from minijax import lax
from minijax import numpy as jnp
from minijax.core import monitoring
from minijax.lowering.device_assignment import DeviceAssignmentMismatchError
from minijax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P

X = np.arange(64, dtype=np.float32).reshape(8, 8)
AUTO = (AxisType.Auto,) * 2
ABSTRACT = AbstractMesh((4, 2), ("x", "y"), axis_types=AUTO)


@pytest.fixture(scope="module")
def mesh() -> Iterator[Mesh]:
    with minijax.cpu_devices(8):
        yield minijax.make_mesh((4, 2), ("x", "y"), axis_types=AUTO)


@pytest.fixture(scope="module")
def explicit(mesh: Mesh) -> Mesh:
    return minijax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


def twice(a: Any) -> Any:
    return a * 2


def on(mesh: Mesh, *spec: Any) -> Any:
    return minijax.device_put(X, NamedSharding(mesh, P(*spec)))


class Counts:
    """How often programs were traced, lowered and compiled since the last time."""

    def __init__(self) -> None:
        self.before = self._now()

    def _now(self) -> tuple[int, int, int]:
        counters = monitoring.tracing, monitoring.lowering, monitoring.compilation
        return tuple(counter.misses for counter in counters)  # type: ignore[return-value]

    def since(self) -> tuple[int, ...]:
        now = self._now()
        found = tuple(b - a for a, b in zip(self.before, now, strict=True))
        self.before = now
        return found


@pytest.mark.feature("SM-02", "SM-03")
def test_abstract_mesh_serves_several_sets_of_devices(mesh: Mesh) -> None:
    devices = mesh.devices.reshape(-1)
    first, second = Mesh(devices[:2], ("x",)), Mesh(devices[2:4], ("x",))
    f = minijax.jit(
        minijax.shard_map(
            lambda a: lax.psum(a, "x"),
            mesh=AbstractMesh((2,), ("x",)),
            in_specs=P("x"),
            out_specs=P(),
        )
    )
    a, b = (minijax.device_put(X, NamedSharding(m, P())) for m in (first, second))
    counts = Counts()
    f(a)
    assert counts.since() == (1, 1, 1)
    assert f(b).sharding.mesh == second
    assert counts.since() == (0, 0, 1)
    f(a)
    f(b)
    assert counts.since() == (0, 0, 0)


@pytest.mark.feature("SM-02")
def test_eager_calls_share_one_program(mesh: Mesh) -> None:
    f = minijax.shard_map(
        lambda a: a / lax.psum(a, "x"), mesh=mesh, in_specs=P("x"), out_specs=P("x")
    )
    x = on(mesh, "x")
    f(x)
    counts = Counts()
    f(x)
    assert counts.since()[1:] == (0, 0)


@pytest.mark.feature("SM-02", "SM-03")
def test_mesh_with_devices_refuses_arrays_on_others(mesh: Mesh) -> None:
    devices = mesh.devices.reshape(-1)
    first, second = Mesh(devices[:2], ("x",)), Mesh(devices[2:4], ("x",))
    f = minijax.jit(minijax.shard_map(twice, mesh=first, in_specs=P("x"), out_specs=P("x")))
    with pytest.raises(DeviceAssignmentMismatchError, match=r"argument a of twice"):
        f(minijax.device_put(X, NamedSharding(second, P())))


@pytest.mark.feature("SM-02", "SM-03")
def test_abstract_mesh_takes_the_devices_of_arguments(mesh: Mesh) -> None:
    f = minijax.shard_map(twice, mesh=ABSTRACT, in_specs=P("x"), out_specs=P("x"))
    assert f(on(mesh)).sharding == NamedSharding(mesh, P("x"))


@pytest.mark.feature("SM-02", "SM-03")
@pytest.mark.parametrize("given", [None, ABSTRACT], ids=["none", "abstract"])
def test_mesh_in_force_serves(given: Any, mesh: Mesh) -> None:
    with minijax.set_mesh(mesh):
        f = minijax.shard_map(twice, mesh=given, in_specs=P("x"), out_specs=P("x"))
        found = f(X)
    assert found.sharding == NamedSharding(mesh, P("x"))
    np.testing.assert_array_equal(found, X * 2)


@pytest.mark.feature("SM-02", "SM-03")
def test_mesh_is_looked_up_at_each_call(mesh: Mesh) -> None:
    f = minijax.shard_map(lambda a: a + lax.axis_index("x"), in_specs=P("x"), out_specs=P("x"))
    for devices, sizes in ((8, (8,)), (2, (2,))):
        small = Mesh(mesh.devices.reshape(-1)[:devices], ("x",))
        with minijax.set_mesh(small):
            expected = X + np.repeat(np.arange(devices), 8 // devices).reshape(8, 1)
            np.testing.assert_array_equal(f(X), expected)
            assert f(X).sharding.mesh.shape_tuple == (("x", sizes[0]),)


@pytest.mark.feature("SM-01")
def test_mesh_of_some_devices(mesh: Mesh) -> None:
    small = Mesh(mesh.devices.reshape(-1)[[5, 2]], ("x",))
    f = minijax.shard_map(
        lambda a: a + lax.axis_index("x"), mesh=small, in_specs=P("x"), out_specs=P("x")
    )
    found = f(X)
    assert [d.id for d in found.sharding.mesh.devices] == [5, 2]
    np.testing.assert_array_equal(found, X + np.repeat([0, 1], 4).reshape(8, 1))


@pytest.mark.feature("SM-01")
@pytest.mark.parametrize("under_jit", [False, True])
def test_mesh_of_one_device(under_jit: bool, mesh: Mesh) -> None:
    one = Mesh(mesh.devices.reshape(-1)[3:4].reshape(1, 1), ("x", "y"))

    def f(a: Any) -> Any:
        gathered = lax.all_gather(lax.psum(a, "x"), "y", tiled=True)
        return lax.ppermute(gathered, "x", [(0, 0)]) + lax.axis_index("x")

    g = minijax.shard_map(f, mesh=one, in_specs=P("x", "y"), out_specs=P("x", "y"))
    np.testing.assert_array_equal((minijax.jit(g) if under_jit else g)(X), X)


@pytest.mark.feature("SM-07")
@pytest.mark.parametrize("under_jit", [False, True])
def test_other_axes_stay_with_the_compiler(under_jit: bool, mesh: Mesh) -> None:
    def f(a: Any) -> Any:
        assert a.shape == (2, 8)
        b = lax.with_sharding_constraint(a * 2, P(None, "y"))
        return b + lax.axis_index("x") + lax.psum(jnp.sum(b), "x")

    g = minijax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    found = (minijax.jit(g) if under_jit else g)(X)
    np.testing.assert_allclose(
        found, X * 2 + np.repeat(np.arange(4), 2).reshape(8, 1) + (2 * X).sum()
    )


@pytest.mark.feature("SM-07", "SM-10")
def test_gradient_where_other_axes_stay_with_the_compiler(mesh: Mesh) -> None:
    f = minijax.shard_map(
        lambda w, a: lax.psum(jnp.sin(a @ w), "x"),
        mesh=mesh,
        in_specs=(P(), P("x")),
        out_specs=P(),
        axis_names={"x"},
    )
    found = minijax.jit(minijax.grad(lambda w: jnp.sum(f(w, X))))(X[:, :3] / 100)
    np.testing.assert_allclose(found, X.T @ np.cos(X @ X[:, :3] / 100), rtol=1e-3, atol=1e-2)


def nested(inner: Callable[..., Any], checked: bool) -> Callable[..., Any]:
    specs = {"in_specs": P(None, "y"), "out_specs": P(None, "y")}
    return minijax.shard_map(inner, **specs, axis_names={"y"}, check_vma=checked)


@pytest.mark.feature("SM-08")
@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize("under_jit", [False, True])
def test_nested_over_other_axes(under_jit: bool, checked: bool, mesh: Mesh) -> None:
    def inner(b: Any) -> Any:
        assert b.shape == (2, 4)
        return b * lax.axis_index("y") + lax.psum(jnp.sum(b), ("x", "y")) * lax.axis_index("x")

    f = minijax.shard_map(
        lambda a: nested(inner, checked)(a) + a,
        mesh=mesh,
        in_specs=P("x"),
        out_specs=P("x"),
        axis_names={"x"},
        check_vma=checked,
    )
    rows, columns = np.repeat(np.arange(4), 2).reshape(8, 1), np.repeat([0, 1], 4)
    found = (minijax.jit(f) if under_jit else f)(X)
    np.testing.assert_allclose(found, X * columns + X.sum() * rows + X)


@pytest.mark.feature("SM-08", "SM-10")
@pytest.mark.parametrize("checked", [True, False])
def test_gradient_of_nested(checked: bool, mesh: Mesh) -> None:
    f = minijax.shard_map(
        lambda a: nested(lambda b: jnp.sin(b) * lax.psum(b, "y"), checked)(a) * a,
        mesh=mesh,
        in_specs=P("x"),
        out_specs=P("x"),
        axis_names={"x"},
        check_vma=checked,
    )

    def whole(x: Any) -> Any:
        halves = x.reshape(8, 2, 4)
        both = jnp.broadcast_to(jnp.sum(halves, 1, keepdims=True), (8, 2, 4))
        return jnp.sin(x) * both.reshape(8, 8) * x

    found = minijax.jit(minijax.grad(lambda x: jnp.sum(f(x))))(X / 50)
    np.testing.assert_allclose(
        found, minijax.grad(lambda x: jnp.sum(whole(x)))(X / 50), rtol=1e-4, atol=1e-5
    )


@pytest.mark.feature("SM-01")
def test_explicit_axes_tell_in_specs(explicit: Mesh) -> None:
    seen = []

    def f(a: Any) -> Any:
        seen.append(str(minijax.typeof(a)))
        return a * 2

    out = minijax.shard_map(f, mesh=explicit, out_specs=P("x", "y"))(on(explicit, "x", "y"))
    assert seen == ["f32[2,4]{V:(x,y)}"]
    assert str(minijax.typeof(out)) == "f32[8@x,8@y]"


@pytest.mark.feature("SM-07")
@pytest.mark.parametrize("under_jit", [False, True])
def test_explicit_axes_outside_stay_in_types(under_jit: bool, explicit: Mesh) -> None:
    seen = []

    def f(a: Any) -> Any:
        seen.append(str(minijax.typeof(a)))
        return a + lax.axis_index("x")

    g = minijax.shard_map(f, mesh=explicit, out_specs=P("x"), axis_names={"x"})
    out = (minijax.jit(g) if under_jit else g)(on(explicit, "x", "y"))
    assert seen == ["f32[2,8@y]{V:x}"]
    assert str(minijax.typeof(out)) == "f32[8@x,8@y]"


@pytest.mark.feature("SM-04")
def test_explicit_axes_must_fit_in_specs(explicit: Mesh) -> None:
    f = minijax.shard_map(twice, mesh=explicit, in_specs=P("y"), out_specs=P("y"))
    with pytest.raises(ValueError, match=r"split otherwise than in_specs says.*\n.*f32\[8@x,8\]"):
        f(on(explicit, "x"))


@pytest.mark.feature("SM-04")
def test_unsplit_arguments_are_cut_on_explicit_axes(explicit: Mesh) -> None:
    f = minijax.shard_map(twice, mesh=explicit, in_specs=P("x"), out_specs=P("x"))
    assert str(minijax.typeof(f(X))) == "f32[8@x,8]"


@pytest.mark.feature("SM-10")
def test_gradients_on_explicit_axes_are_split_as_arguments(explicit: Mesh) -> None:
    f = minijax.shard_map(
        lambda a: jnp.sin(a) * lax.psum(a, "x"), mesh=explicit, out_specs=P("x", "y")
    )
    found = minijax.grad(lambda x: jnp.sum(f(x)))(on(explicit, "x", "y"))
    assert str(minijax.typeof(found)) == "f32[8@x,8@y]"


@pytest.mark.feature("VT-01")
def test_summands_leave_as_unreduced_on_explicit_axes(explicit: Mesh) -> None:
    f = minijax.shard_map(
        lambda a: lax.pcast(a, "x", to="unreduced"),
        mesh=explicit,
        out_specs=P(None, "y", unreduced={"x"}),
    )
    assert str(minijax.typeof(f(on(explicit, "x", "y")))) == "f32[2,8@y]{U:x}"
