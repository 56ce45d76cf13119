"""Programs inside `shard_map`, found by comparing generated programs with JAX 0.10.2.

What is expected was recorded from JAX, or is the derivative of the same program on one device where
JAX takes the first device's way through control flow for all.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import minijax
from minijax import lax
from minijax import numpy as jnp
from minijax.sharding import AxisType, Mesh
from minijax.sharding import PartitionSpec as P

pytestmark = pytest.mark.feature("SM-01")

A = np.arange(4, dtype=np.float32)
B = np.array([0.5, -1.0, 2.0], np.float32)


@pytest.fixture
def mesh() -> Iterator[Mesh]:
    with minijax.cpu_devices(8):
        yield minijax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))


def of_device(branch: Callable[..., Any]) -> Callable[..., Any]:
    """A function of one device whose predicate holds on some devices only."""
    return lambda a, b: lax.cond(
        a.sum() > 1.5, lambda v: branch(a, v), lambda v: a * 2 * v.sum(), b
    )


@pytest.mark.parametrize(
    "branch",
    [
        lambda a, b: a * (b * b).sum(),
        lambda a, b: (minijax.jit(lambda v: v * 3 + 1)(b) * a).sum()[None],
        lambda a, b: minijax.checkpoint(lambda v: jnp.sin(v) * a)(b).sum()[None],
        lambda a, b: lax.fori_loop(0, 3, lambda _, c: c * b, b).sum()[None] + a,
        lambda a, b: lax.scan(lambda c, v: (c + v * a, None), 0 * a, b)[0],
        lambda a, b: lax.cond(b.sum() > 0, lambda v: v * v, lambda v: v, b).sum()[None] * a,
        lambda a, b: minijax.vmap(lambda v: v * a[0])(b).sum()[None],
        lambda a, b: minijax.grad(lambda v: (v**3).sum())(b).sum()[None] + a,
    ],
    ids=["plain", "jit", "checkpoint", "fori", "scan", "cond", "vmap", "grad"],
)
def test_divergent_branches_use_what_was_the_same_everywhere(mesh: Mesh, branch: Any) -> None:
    f = minijax.shard_map(of_device(branch), mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"))
    found = minijax.jit(minijax.grad(lambda a, b: f(a, b).sum(), (0, 1)))(A, B)

    def one_device(a: Any, b: Any) -> Any:
        return sum(of_device(branch)(a[i : i + 1], b).sum() for i in range(4))

    wanted = minijax.jit(minijax.grad(one_device, (0, 1)))(A, B)
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)


def test_divergent_loop_makes_its_whole_carry_vary(mesh: Mesh) -> None:
    def body(a: Any, b: Any) -> Any:
        def step(state: Any) -> Any:
            count, value = state
            return count + 1, minijax.jit(lambda v: v * 2)(lax.pvary(b, "x") * 0 + value)

        def until(state: Any) -> Any:
            return state[0] < a.sum()

        return lax.while_loop(until, step, (0.0, lax.pvary(b, "x")))[1]

    f = minijax.shard_map(body, mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"))
    wanted = np.concatenate([B * 2**i for i in range(4)])
    np.testing.assert_array_equal(minijax.jit(f)(A, B), wanted)


KEYS = 8
PAIRS = [(0, 1), (1, 2), (2, 3), (3, 0)]


@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize(
    ("move", "order"),
    [
        (lambda k: lax.ppermute(k, "x", PAIRS), np.roll(np.arange(KEYS), 2)),
        (lambda k: lax.all_gather(k, "x", tiled=True), np.tile(np.arange(KEYS), 4)),
        (lambda k: lax.all_gather(k, "x").reshape(-1), np.tile(np.arange(KEYS), 4)),
        (
            lambda k: minijax.vmap(lambda q: lax.pshuffle(q, "x", [1, 0, 3, 2]))(k),
            [2, 3, 0, 1, 6, 7, 4, 5],
        ),
    ],
    ids=["ppermute", "tiled gather", "gather", "batched shuffle"],
)
def test_random_keys_move_between_devices(
    mesh: Mesh, move: Any, order: Any, check_vma: bool
) -> None:
    keys = minijax.random.split(minijax.random.key(0), KEYS)
    options = {"in_specs": P("x"), "out_specs": P("x"), "check_vma": check_vma}
    moved = minijax.jit(minijax.shard_map(move, mesh=mesh, **options))(keys)
    found = np.asarray(minijax.random.key_data(moved))[: len(order)]
    np.testing.assert_array_equal(found, np.asarray(minijax.random.key_data(keys))[np.array(order)])


@pytest.mark.parametrize("combine", [lax.psum, lax.pmax, lax.psum_scatter])
def test_random_keys_cannot_be_combined(mesh: Mesh, combine: Any) -> None:
    f = minijax.shard_map(
        lambda k: combine(k, "x"), mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False
    )
    with pytest.raises(TypeError, match=r"lax\.\w+: cannot combine arrays of key<fry>"):
        f(minijax.random.split(minijax.random.key(0), 16))


@pytest.mark.parametrize("check_vma", [True, False])
def test_collectives_refuse_an_axis_that_is_named_twice(mesh: Mesh, check_vma: bool) -> None:
    f = minijax.shard_map(
        lambda a: lax.psum(a, ("x", "x")),
        mesh=mesh,
        in_specs=P("x"),
        out_specs=P(),
        check_vma=check_vma,
    )
    with pytest.raises(ValueError, match=r"lax\.psum: axis_name names an axis twice"):
        f(A)


def test_results_that_are_reduced_are_refused_where_specs_do_not_say_so(mesh: Mesh) -> None:
    f = minijax.shard_map(
        lambda a: lax.pcast(a, "x", to="reduced"), mesh=mesh, in_specs=P(), out_specs=P()
    )
    with pytest.raises(ValueError, match="is reduced over 'x', which out_specs does not say"):
        f(A)


Casts = tuple[Callable[[Any], Any], Callable[[Any], Any]]

# How a program makes summands of what varies, and how it uses what is the same everywhere.
CASTS: dict[str, Casts] = {
    "sums": (
        lambda v: lax.pcast(v, "x", to="unreduced"),
        lambda v: lax.pcast(v, "x", to="reduced"),
    ),
    "varying": (lambda v: v, lambda v: lax.pcast(v, "x", to="varying")),
}


def derivatives(program: Callable[..., Any], casts: Casts) -> Callable[..., Any]:
    """First and second derivatives of the sum over devices of what a program computes."""
    f = minijax.shard_map(
        lambda a, w: lax.psum(program(*casts, a, w), "x"), in_specs=(P("x"), P()), out_specs=P()
    )
    first = minijax.grad(lambda *xs: (f(*xs) ** 2).sum(), (0, 1))
    second = minijax.grad(lambda *xs: sum((v**2).sum() for v in first(*xs)), (0, 1))
    return minijax.jit(lambda *xs: (*first(*xs), *second(*xs)))


NONLINEAR: dict[str, Callable[..., Any]] = {
    "product": lambda u, r, a, w: u(a) * r(w),
    "square": lambda u, r, a, w: r(w) * r(w) * a,
    "jit": lambda u, r, a, w: minijax.jit(lambda v: jnp.sin(v) * v)(r(w)) * a,
    "checkpoint": lambda u, r, a, w: minijax.checkpoint(jnp.sin)(r(w)) * a,
    "cond": lambda u, r, a, w: a * lax.cond(w[0] > 0, lambda v: v * v, lambda v: v, r(w)),
    "scan": lambda u, r, a, w: a * lax.fori_loop(0, 3, lambda _, v: v * v, r(w)),
    "vmap": lambda u, r, a, w: a * minijax.vmap(jnp.sin)(r(w)),
    "outer": lambda u, r, a, w: jnp.outer(u(a), r(w)).sum(1),
    "mean": lambda u, r, a, w: a * r(w).mean() / r(w),
}


@pytest.mark.parametrize("name", NONLINEAR)
def test_second_derivatives_keep_summands_and_reduced_values(name: str) -> None:
    a, w = np.arange(1, 9, dtype=np.float32) / 8, np.array([0.3, 0.7], np.float32)
    with minijax.cpu_devices(4):
        mesh = minijax.make_mesh((4,), ("x",), axis_types=(AxisType.Explicit,))
        with minijax.set_mesh(mesh):
            whole = minijax.device_put(a, P("x")), minijax.device_put(w, P())
            found = {kind: derivatives(NONLINEAR[name], CASTS[kind])(*whole) for kind in CASTS}
    for x, y in zip(found["sums"], found["varying"], strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4)


def test_summands_enter_a_region_wherever_they_come_from() -> None:
    summands = minijax.shard_map(
        lambda v: lax.pcast(v, "x", to="unreduced"), in_specs=P("x"), out_specs=P(unreduced={"x"})
    )
    total = minijax.shard_map(
        lambda v: lax.psum(v, "x"), in_specs=P(unreduced={"x"}), out_specs=P()
    )
    a = np.arange(1, 9, dtype=np.float32)
    with minijax.cpu_devices(4):
        mesh = minijax.make_mesh((4,), ("x",), axis_types=(AxisType.Explicit,))
        with minijax.set_mesh(mesh):
            x = minijax.device_put(a, P("x"))
            found = [
                total(summands(x)),
                *minijax.jit(lambda u, v: (total(u), total(u + summands(v))))(summands(x), x),
                minijax.jit(lambda v: total(lax.cond(v.sum() > 0, summands, summands, v)))(x),
                minijax.jit(lambda v: total(lax.fori_loop(0, 2, lambda _, u: u + u, summands(v))))(
                    x
                ),
            ]
    expected = a.reshape(4, 2).sum(0)
    for value, factor in zip(found, (1, 1, 2, 1, 4), strict=True):
        np.testing.assert_array_equal(value, factor * expected)


def test_reduced_values_that_derivatives_need_are_refused_on_auto_axes(mesh: Mesh) -> None:
    f = minijax.shard_map(
        lambda a, w: lax.psum(a * jnp.sin(lax.pcast(w, "x", to="reduced")).sum(), "x"),
        mesh=mesh,
        in_specs=(P("x"), P()),
        out_specs=P(),
    )
    with pytest.raises(ValueError, match="kept for the derivative, which types outside can say of"):
        minijax.grad(lambda a, w: f(a, w).sum(), (0, 1))(A, B)
