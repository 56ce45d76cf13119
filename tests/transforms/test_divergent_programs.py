"""Programs whose devices would wait for others that never come are refused while they are traced.

Nothing is run where it could hang: the refused programs are only staged.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.core import config
from minijax.experimental import io_callback
from minijax.sharding import AxisType, NamedSharding
from minijax.sharding import PartitionSpec as P

X = np.arange(8.0, dtype=np.float32)
ROWS = np.ones((8, 3), np.float32)


@pytest.fixture(scope="module", autouse=True)
def mesh() -> Iterator[Any]:
    with jax.cpu_devices(8):
        yield jax.make_mesh((8,), ("x",))


def unchecked(f: Any, mesh: Any) -> Any:
    return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))


def by_shard_map(f: Any, mesh: Any) -> Any:
    return lambda: unchecked(f, mesh).lower(np.ones((8, 3), np.float32))


def by_pmap(f: Any, mesh: Any) -> Any:
    return lambda: jax.pmap(f, "x").lower(ROWS[:, None])


def by_vmap_of_pmap(f: Any, mesh: Any) -> Any:
    mapped = jax.vmap(jax.pmap(f, "x"))
    return lambda: jax.make_jaxpr(mapped)(np.ones((2, 8, 1, 3), np.float32))


MAPS = [by_shard_map, by_pmap, by_vmap_of_pmap]


def answer(x: Any) -> Any:
    return jax.pure_callback(lambda v: np.asarray(v).sum() > 1, bool_struct(), x)


def bool_struct() -> Any:
    return jax.ShapeDtypeStruct((), np.bool_)


def total(x: Any) -> Any:
    return lax.psum(x, "x")


def twice(x: Any) -> Any:
    return x * 2


def in_scan(x: Any) -> Any:
    def step(carry: Any, _: Any) -> Any:
        return lax.cond(carry.sum() > 1, total, twice, carry), None

    return lax.scan(step, x * 0, None, length=2)[0] + lax.scan(step, x, None, length=2)[0]


def carried(x: Any) -> Any:
    # The first step has the same carry everywhere, later ones have not.
    return lax.while_loop(lambda c: c.sum() < 9, lambda c: total(c) + x, jnp.zeros_like(x))


DIVERGENT: dict[str, Callable[[Any], Any]] = {
    "cond by an argument": lambda x: lax.cond(x.sum() > 1, total, twice, x),
    "cond by the place": lambda x: lax.cond(lax.axis_index("x") > 1, total, twice, x),
    "cond by a callback": lambda x: lax.cond(answer(x), total, twice, x),
    "switch": lambda x: lax.switch(lax.axis_index("x"), [total, twice, jnp.sin], x),
    "while by an argument": lambda x: lax.while_loop(lambda c: c.sum() < 9, total, x),
    "while that waits in its condition": lambda x: lax.while_loop(
        lambda c: (total(c).sum() < 9) & (c.sum() < 3), twice, x
    ),
    "while whose carry comes to differ": carried,
    "loop as long as the place": lambda x: lax.fori_loop(
        0, lax.axis_index("x"), lambda _, c: total(c), x
    ),
    "cond inside of a scan": in_scan,
    "cond inside of jit": lambda x: jax.jit(lambda v: lax.cond(v.sum() > 1, total, twice, v))(x),
    "cond inside of checkpoint": lambda x: jax.checkpoint(
        lambda v: lax.cond(v.sum() > 1, total, twice, v)
    )(x),
    "waits deep inside of a branch": lambda x: lax.cond(
        x.sum() > 1, lambda v: lax.fori_loop(0, 2, lambda _, c: jax.jit(total)(c), v), twice, x
    ),
    "permutes in a branch": lambda x: lax.cond(
        x.sum() > 1, lambda v: lax.ppermute(v, "x", [(0, 1)]), twice, x
    ),
    "by a part of a sum": lambda x: lax.cond(
        lax.psum_scatter(jnp.ones(8) * x.sum(), "x") > 1, total, twice, x
    ),
    "by a group's sum": lambda x: lax.cond(
        lax.psum(x.sum(), "x", axis_index_groups=[[0, 1, 2, 3], [4, 5, 6, 7]]) > 1, total, twice, x
    ),
}


@pytest.mark.parametrize("mapped", MAPS)
@pytest.mark.parametrize("name", DIVERGENT)
def test_collectives_under_predicates_that_differ_are_refused(
    mesh: Any, mapped: Any, name: str
) -> None:
    with pytest.raises(ValueError, match="has a collective over an axis over which the predicate"):
        mapped(DIVERGENT[name], mesh)()


@pytest.mark.parametrize("mapped", MAPS)
def test_the_refusal_names_both_lines_and_the_fix(mesh: Any, mapped: Any) -> None:
    def f(x: Any) -> Any:
        def branch(v: Any) -> Any:
            return lax.psum(v, "x")

        return lax.cond(x.sum() > 1, branch, twice, x)

    with pytest.raises(ValueError, match=r"lax\.cond in (shard_map|pmap)") as caught:
        mapped(f, mesh)()
    text = str(caught.value)
    line = f.__code__.co_firstlineno
    assert f"psum at test_divergent_programs.py:{line + 2} in" in text
    assert f"at        test_divergent_programs.py:{line + 4} in" in text
    assert "lax.pmax(predicate, axis)" in text


def same_everywhere(x: Any) -> Any:
    count = jnp.int32(0)
    return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, total(c[1])), (count, x))[1]


UNIFORM: dict[str, Callable[[Any], Any]] = {
    "by a sum": lambda x: lax.cond(total(x).sum() > 1, total, twice, x),
    "by a maximum": lambda x: lax.cond(lax.pmax(x.sum(), "x") > 1, total, twice, x),
    "by a gather": lambda x: lax.cond(lax.all_gather(x, "x").sum() > 1, total, twice, x),
    "by what one device sends": lambda x: lax.cond(
        lax.pbroadcast(x.sum(), "x", 0) > 1, total, twice, x
    ),
    "by a constant": lambda x: lax.cond(jnp.float32(3) > 1, total, twice, x),
    "by a counter": same_everywhere,
    "a loop of a number of steps": lambda x: lax.fori_loop(0, 3, lambda _, c: total(c) / 8, x),
    "a scan": lambda x: lax.scan(lambda c, _: (total(c) / 8, None), x, None, length=3)[0],
    "permutes in a loop": lambda x: lax.fori_loop(
        0, 3, lambda _, c: lax.ppermute(c, "x", [(i, (i + 1) % 8) for i in range(8)]), x
    ),
    "no collective in it": lambda x: total(lax.cond(x.sum() > 1, jnp.sin, twice, x)),
    "selected": lambda x: jnp.where(x.sum() > 1, total(x), x),
    "until it has converged": lambda x: lax.while_loop(
        lambda c: lax.pmax(jnp.abs(c).max(), "x") > 0.1, lambda c: lax.pmean(c, "x") / 2, x
    ),
}


@pytest.mark.parametrize("name", UNIFORM)
def test_predicates_that_are_the_same_everywhere_pass(mesh: Any, name: str) -> None:
    f = UNIFORM[name]
    expected = jax.vmap(f, axis_name="x")(ROWS[:, None])
    found = unchecked(lambda x: f(x[None])[0], mesh)(ROWS)
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-6)
    np.testing.assert_allclose(jax.pmap(f, "x")(ROWS[:, None]), expected, rtol=1e-6)


def test_arguments_that_all_devices_get_are_the_same(mesh: Any) -> None:
    def f(x: Any, flag: Any) -> Any:
        return lax.cond(flag, total, twice, x)

    shared = jax.shard_map(f, mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"), check_vma=False)
    expected = np.full(8, X.sum())
    np.testing.assert_array_equal(shared(X, True), expected)
    np.testing.assert_array_equal(jax.pmap(f, "x", in_axes=(0, None))(X, True), expected)


def test_an_example_s_own_predicate_becomes_a_selection() -> None:
    f = jax.vmap(lambda v: lax.cond(v.sum() > 1, total, twice, v))
    found = jax.pmap(f, "x")(np.ones((8, 2, 3), np.float32))
    np.testing.assert_array_equal(found, np.full((8, 2, 3), 8))


def test_the_setting_accepts_what_may_diverge(mesh: Any) -> None:
    def f(x: Any) -> Any:
        return lax.cond(x.sum() < 100, total, twice, x)

    with config.allow_divergent_collectives(True):
        np.testing.assert_array_equal(unchecked(f, mesh)(X), np.full(8, X.sum()))


def test_outer_axes_are_followed_into_inner_maps() -> None:
    def inner(w: Any) -> Any:
        return lax.cond(lax.axis_index("i") > 0, lambda v: lax.psum(v, "i"), twice, w)

    with pytest.raises(ValueError, match="has a collective over an axis"):
        jax.pmap(jax.pmap(inner, "j"), "i").lower(np.ones((4, 2), np.float32))


def test_devices_that_all_take_part_may_be_chosen_by_another_axis() -> None:
    def inner(w: Any) -> Any:
        return lax.cond(lax.axis_index("i") > 1, lambda v: lax.psum(v, "j"), twice, w)

    found = jax.pmap(jax.pmap(inner, "j"), "i")(np.ones((4, 2), np.float32))
    np.testing.assert_array_equal(found, np.full((4, 2), 2))


@pytest.mark.parametrize("check_vma", [True, False])
def test_permutations_wait_for_all_devices_of_the_host(mesh: Any, check_vma: bool) -> None:
    # XLA's collective-permute on the host waits for every device of the program.
    def f(x: Any) -> Any:
        def swapped(v: Any) -> Any:
            return lax.ppermute(v, "y", [(0, 1), (1, 0)])

        return lax.cond(lax.axis_index("x") > 1, swapped, twice, x)

    both = jax.make_mesh((4, 2), ("x", "y"))
    mapped = jax.shard_map(
        f, mesh=both, in_specs=P(("x", "y")), out_specs=P(("x", "y")), check_vma=check_vma
    )
    with pytest.raises(ValueError, match="all devices of the program wait for each other"):
        jax.make_jaxpr(mapped)(X)


@pytest.mark.parametrize(
    "ask", [lambda: jax.pure_callback(bool, bool_struct(), 1), lambda: _io(), lambda: _random()]
)
def test_what_is_asked_outside_may_differ_whatever_types_say(mesh: Any, ask: Any) -> None:
    def f(x: Any) -> Any:
        return lax.cond(ask(), lambda v: lax.psum(v, "x"), lambda v: lax.pmax(v, "x"), x)

    mapped = jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P())
    with pytest.raises(ValueError, match="has a collective over an axis"):
        jax.make_jaxpr(mapped)(X)


def _io() -> Any:
    return io_callback(lambda: np.bool_(True), bool_struct())


def _random() -> Any:
    return lax.rng_uniform(np.float32(0), np.float32(1), ()) > 0.5


@pytest.mark.parametrize("kind", ["roll", "flip", "loop"])
def test_the_compiler_s_own_permutations_in_branches_are_refused(kind: str) -> None:
    both = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    split = NamedSharding(both, P("x", "y"))

    def rolled(v: Any) -> Any:
        return jnp.roll(v, 1, 1)

    def f(x: Any) -> Any:
        place = lax.axis_index("x")
        if kind == "loop":
            return lax.fori_loop(0, place, lambda _, c: rolled(c), x)
        return lax.cond(place > 1, rolled if kind == "roll" else lambda v: v[:, ::-1], twice, x)

    mapped = jax.shard_map(f, mesh=both, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    lowered = jax.jit(mapped, in_shardings=split, out_shardings=split).lower(np.ones((8, 8)))
    with pytest.raises(NotImplementedError, match="branch or a loop that not all devices enter"):
        lowered.compile()


def test_loops_of_a_known_length_may_hold_the_compiler_s_permutations() -> None:
    both = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    split = NamedSharding(both, P("x", "y"))

    def f(x: Any) -> Any:
        x = lax.fori_loop(0, 3, lambda _, c: jnp.roll(c, 1, 1), x)
        return lax.cond(lax.axis_index("x") > 1, lambda v: v * 2, lambda v: v, x)

    mapped = jax.shard_map(f, mesh=both, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    x = np.arange(64.0, dtype=np.float32).reshape(8, 8)
    found = jax.jit(mapped, in_shardings=split, out_shardings=split)(x)
    expected = np.roll(x, 3, 1) * np.repeat([1, 1, 2, 2], 2)[:, None]
    np.testing.assert_array_equal(found, expected)


def test_shard_map_inside_pmap_is_refused(mesh: Any) -> None:
    inner = jax.shard_map(lambda u: u + 1, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    with pytest.raises(NotImplementedError, match="shard_map: cannot be inside pmap"):
        jax.pmap(inner, "i")(np.ones((2, 8), np.float32))


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["pmap", "jit of pmap"])
def test_pmap_inside_shard_map_is_refused(mesh: Any, wrap: Any) -> None:
    mapped = jax.shard_map(
        wrap(jax.pmap(lambda u: u + 1)), mesh=mesh, in_specs=P("x"), out_specs=P("x")
    )
    with pytest.raises(ValueError, match="pmap cannot be inside a program over a mesh"):
        jax.jit(mapped)(np.ones(64, np.float32))


def test_replicas_and_partitions_never_meet(mesh: Any) -> None:
    # XLA ends the process where a program is both copied and cut.
    split = jax.shard_map(lambda u: u + 1, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    with pytest.raises(ValueError, match="pmap cannot be inside a program over a mesh"):
        jax.jit(lambda v: (jax.pmap(twice)(v), split(v)))(np.ones((8, 8), np.float32))


@pytest.mark.parametrize("inner", [lambda f: f, lambda f: jax.pmap(f)])
def test_more_devices_than_there_are_are_refused(inner: Any) -> None:
    shape = (100_000,) if inner(twice) is twice else (8, 100_000)
    with pytest.raises(ValueError, match="needs more devices than there are"):
        jax.pmap(inner(twice))(np.ones(shape, np.float32))


def test_huge_meshes_are_traced_without_devices() -> None:
    huge = jax.sharding.AbstractMesh((4096, 4096), ("a", "b"))
    mapped = jax.shard_map(
        lambda v: lax.psum(v, ("a", "b")), mesh=huge, in_specs=P("a", "b"), out_specs=P()
    )
    jaxpr = jax.make_jaxpr(mapped)(jax.ShapeDtypeStruct((8192, 8192), np.float32))
    assert jaxpr.out_avals[0].shape == (2, 2)


def test_deleted_arrays_are_refused_before_anything_starts(mesh: Any) -> None:
    x = jnp.array(X)
    x.delete()
    for mapped in (unchecked(total, mesh), jax.pmap(total, "x")):
        with pytest.raises(RuntimeError, match="the array has been deleted"):
            mapped(x)


def test_donated_arrays_are_gone_on_every_device(mesh: Any) -> None:
    add = jax.pmap(lambda v: v + 1, "x", donate_argnums=0)
    x = jax.pmap(lambda v: v)(X)
    np.testing.assert_array_equal(add(x), X + 1)
    with pytest.raises(RuntimeError, match="the array has been deleted"):
        add(x)


def test_an_array_is_not_donated_and_read_at_once() -> None:
    x = jax.pmap(lambda v: v)(X)
    with pytest.raises(RuntimeError, match="donated argument 0 is given more than once"):
        jax.pmap(lambda a, b: a + b, donate_argnums=0)(x, x)


def test_ragged_exchanges_of_replicas_are_decomposed() -> None:
    # XLA's own instruction ends the process where the devices are replicas.
    def i32(rows: list[list[int]]) -> Any:
        return np.array(rows, np.int32)

    found = jax.pmap(lambda *a: lax.ragged_all_to_all(*a, axis_name="x"), "x")(
        i32([[1, 2, 2], [3, 4, 0]]),
        np.zeros((2, 4), np.int32),
        i32([[0, 1], [0, 1]]),
        i32([[1, 2], [1, 1]]),
        i32([[0, 0], [1, 2]]),
        i32([[1, 1], [2, 1]]),
    )
    np.testing.assert_array_equal(found, [[1, 3, 0, 0], [2, 2, 4, 0]])
