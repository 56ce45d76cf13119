"""`pmap`: slices on devices, by replicas, as `shard_map`, and operation by operation."""

import contextlib
import functools
import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.core import axes, config, monitoring
from minijax.experimental.legacy.older import replicate
from minijax.interpreters import passes
from minijax.sharding import Mesh, NamedSharding, PmapSharding
from minijax.sharding import PartitionSpec as P
from tests.transforms.mapped import NUMBERS, PROGRAMS, ROWS, nested


@pytest.fixture(autouse=True)
def devices() -> Iterator[list[Any]]:
    with minijax.cpu_devices(8):
        yield minijax.devices()


@pytest.fixture(params=["replicas", "shard_map"])
def pipeline(request: pytest.FixtureRequest) -> Iterator[str]:
    """Both ways to compile a map."""
    with config.pmap_via_shard_map(request.param == "shard_map"):
        yield request.param


def assert_same(actual: Any, expected: Any) -> None:
    """Equal values, dtypes and trees."""
    assert minijax.tree.structure(actual) == minijax.tree.structure(expected)
    for x, y in zip(minijax.tree.leaves(actual), minijax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)
        assert x.dtype == y.dtype


def counts() -> tuple[int, ...]:
    stats = minijax.cache_stats()
    return tuple(stats[step].misses for step in ("trace", "lower", "compile"))


@pytest.mark.feature("PM-01")
@pytest.mark.parametrize("name", PROGRAMS)
def test_maps_agree_with_vmap(pipeline: str, name: str) -> None:
    program = PROGRAMS[name]
    assert_same(program.by(minijax.pmap), program.by(minijax.vmap))


@pytest.mark.feature("EP-01")
@pytest.mark.parametrize("name", PROGRAMS)
def test_maps_run_by_operations_agree_with_vmap(name: str) -> None:
    program = PROGRAMS[name]
    with minijax.disable_jit():
        actual = program.by(minijax.pmap)
    assert_same(actual, program.by(minijax.vmap))


@pytest.mark.feature("PM-01")
def test_groups_of_devices_sum_apart(pipeline: str) -> None:
    groups = [[0, 1], [2, 3]]
    sums = minijax.pmap(lambda x: lax.psum(x, "i", axis_index_groups=groups), "i")
    assert sums(NUMBERS).tolist() == [1, 1, 5, 5]
    assert sums(ROWS).tolist() == [[4, 6, 8, 10]] * 2 + [[20, 22, 24, 26]] * 2


@pytest.mark.feature("PM-01")
def test_groups_gather_in_their_order(pipeline: str) -> None:
    groups = [[0, 2], [3, 1]]
    rows = minijax.pmap(lambda x: lax.all_gather(x, "i", axis_index_groups=groups), "i")(ROWS)
    assert rows[0].tolist() == rows[2].tolist() == ROWS[[0, 2]].tolist()
    assert rows[1].tolist() == rows[3].tolist() == ROWS[[3, 1]].tolist()


@pytest.mark.feature("PM-01")
def test_groups_scatter_sums(pipeline: str) -> None:
    scatter = functools.partial(
        lax.psum_scatter, axis_name="i", axis_index_groups=[[0, 2], [3, 1]], tiled=True
    )
    found = minijax.pmap(scatter, "i")(ROWS)
    assert found.tolist() == [[8, 10], [20, 22], [12, 14], [16, 18]]


@pytest.mark.feature("PM-11")
def test_results_are_split_over_devices(devices: list[Any]) -> None:
    with config.pmap_results_unstacked(True):
        y = minijax.pmap(lambda x: x * 2)(np.ones((8, 3), np.float32))
    assert y.sharding == PmapSharding.default((8, 3), devices=devices)
    assert y.committed
    assert y.addressable_shards[2].index == (2, slice(None))
    assert y.addressable_shards[2].data.shape == (3,)


@pytest.mark.feature("PM-01")
@pytest.mark.feature("UX-04")
def test_results_are_named(devices: list[Any], pipeline: str) -> None:
    y = minijax.pmap(lambda x: x * 2, "i", out_axes=1)(ROWS)
    assert y.sharding == NamedSharding(Mesh(np.array(devices[:4]), "i"), P(None, "i"))
    assert y.addressable_shards[2].data.shape == (4, 1)
    whole = minijax.pmap(lambda x: lax.psum(x, "i"), "i", out_axes=None)(NUMBERS)
    assert whole.sharding == NamedSharding(Mesh(np.array(devices[:4]), "i"), P())


@pytest.mark.feature("PM-11")
def test_slices_with_several_replicas_are_outermost(devices: list[Any]) -> None:
    with config.pmap_results_unstacked(True):
        y = minijax.pmap(minijax.pmap(lambda x: x))(ROWS[:2])
    assert [d.id for d in y.sharding.device_assignment] == list(range(8))
    assert [index[0] for index in y.sharding.indices((2, 4))] == [0] * 4 + [1] * 4


@pytest.mark.feature("PM-11")
def test_arrays_cut_over_a_mesh_are_used_where_they_are(devices: list[Any]) -> None:
    sharding = NamedSharding(Mesh(np.array(devices), "x"), P("x"))
    x = minijax.device_put(np.arange(8.0, dtype=np.float32), sharding)
    f = minijax.pmap(lambda x: x + 1)
    f(x)
    before = monitoring.transfers.copy()
    assert f(x).tolist() == list(range(1, 9))
    assert monitoring.transfers == before


@pytest.mark.feature("PM-11")
def test_results_are_operands_of_other_programs(pipeline: str) -> None:
    y = minijax.pmap(lambda x: x * 2)(ROWS)
    assert minijax.jit(lambda y: y.T @ y)(y).tolist() == (4 * ROWS.T @ ROWS).tolist()
    assert (y + 1).sum() == 2 * ROWS.sum() + 16


@pytest.mark.feature("PM-12")
@pytest.mark.parametrize("outer", [minijax.pmap, minijax.vmap])
@pytest.mark.parametrize("inner", [minijax.pmap, minijax.vmap])
def test_maps_nest(pipeline: str, outer: Any, inner: Any) -> None:
    assert_same(nested(outer, inner), nested(minijax.vmap, minijax.vmap))


@pytest.mark.feature("PM-12")
def test_gathered_results_keep_every_bit() -> None:
    x = np.array([[-0.0, np.inf], [np.nan, -1.0]], np.float32)
    y = minijax.pmap(minijax.pmap(lambda x: x))(x)
    assert np.asarray(y).tobytes() == x.tobytes()


@pytest.mark.feature("PM-12")
def test_inner_names_hide_outer_ones() -> None:
    f = minijax.pmap(minijax.pmap(lambda x: lax.psum(x, "i"), "i"), "i")
    assert f(ROWS[:2]).tolist() == [[6] * 4, [22] * 4]


@pytest.mark.feature("PM-12", "PM-19")
def test_inner_maps_may_use_fewer_replicas_than_others() -> None:
    def function(x: Any) -> Any:
        two = minijax.pmap(lambda y: lax.psum(y, "j"), "j")(x[:2])
        four = minijax.pmap(lambda y: lax.psum(y, ("i", "j")), "j")(x)
        return two, four

    two, four = minijax.pmap(function, "i")(ROWS[:2])
    assert two.tolist() == [[1, 1], [9, 9]]
    assert four.tolist() == [[28] * 4] * 2


@pytest.mark.feature("PM-13")
def test_modules_say_how_they_are_copied() -> None:
    f = minijax.pmap(lambda x, y: x * y, "i", in_axes=(0, None))
    text = f.lower(NUMBERS, 2.0).as_text()
    assert "module @pmap__lambda" in text
    assert "mhlo.num_replicas = 4" in text
    assert "mhlo.num_partitions = 1" in text
    assert text.count("mhlo.is_same_data_across_replicas = true") == 1


@pytest.mark.feature("PM-13")
def test_collectives_name_replicas() -> None:
    f = minijax.pmap(minijax.pmap(lambda x: lax.psum(x, "i")), "i")
    text = f.lower(ROWS[:2]).as_text()
    assert "dense<[[0, 4], [1, 5], [2, 6], [3, 7]]>" in text
    assert "channel_handle" not in text
    assert "replica_id" in text


@pytest.mark.feature("PM-14")
def test_ordered_effects_are_refused() -> None:
    f = minijax.pmap(lambda x: minijax.debug.print("{}", x, ordered=True))
    with pytest.raises(ValueError, match=r"ordered effects need one device.*\n.* on 4 devices"):
        f(NUMBERS)


@pytest.mark.feature("PM-14")
def test_each_device_prints(pipeline: str, capsys: pytest.CaptureFixture[str]) -> None:
    minijax.pmap(lambda x: minijax.debug.print("slice {}", x))(NUMBERS)
    minijax.effects_barrier()
    assert sorted(capsys.readouterr().out.split("\n")) == ["", *(f"slice {x}" for x in NUMBERS)]


@pytest.mark.feature("PM-15")
def test_second_calls_make_nothing(pipeline: str) -> None:
    f = minijax.pmap(lambda x: lax.psum(x, "i"), "i")
    y = f(NUMBERS)
    f(y)
    before = counts()
    f(y)
    assert counts() == before


@pytest.mark.feature("PM-15")
def test_wrappers_of_one_function_share_programs() -> None:
    def function(x: Any) -> Any:
        return x + 1

    minijax.pmap(function)(NUMBERS)
    before = counts()
    minijax.pmap(function)(NUMBERS)
    assert counts() == before


@pytest.mark.feature("PM-16")
def test_keyword_arguments_are_mapped_in_front(pipeline: str) -> None:
    f = minijax.pmap(lambda x, *, y: x + y["a"], in_axes=1)
    assert f(ROWS, y={"a": NUMBERS}).tolist() == (ROWS.T + NUMBERS[:, None]).tolist()


@pytest.mark.feature("PM-16")
def test_static_arguments_are_part_of_the_signature(pipeline: str) -> None:
    seen = []

    def function(n: int, x: Any) -> Any:
        seen.append(n)
        return x * n

    f = minijax.pmap(function, static_broadcasted_argnums=0, in_axes=(None, 0))
    assert f(3, NUMBERS).tolist() == [0, 3, 6, 9]
    assert f(2, NUMBERS).tolist() == [0, 2, 4, 6]
    f(3, NUMBERS)
    assert seen == [3, 2]


@pytest.mark.feature("PM-16")
def test_donated_arguments_are_gone(pipeline: str) -> None:
    x = minijax.pmap(lambda x: x)(NUMBERS)
    y = minijax.pmap(lambda n, x: x + n, static_broadcasted_argnums=0, donate_argnums=1)(1, x)
    assert y.tolist() == [1, 2, 3, 4]
    assert x.is_deleted()


@pytest.mark.feature("PM-16")
def test_donation_is_written_for_the_argument_behind_static_ones() -> None:
    f = minijax.pmap(
        lambda x, n, y: (x, y + n),
        static_broadcasted_argnums=1,
        donate_argnums=2,
        in_axes=(None, None, 0),
        out_axes=(None, 0),
    )
    text = f.lower(1.0, 2, NUMBERS).as_text()
    assert "%arg1: tensor<1xf32> {tf.aliasing_output = 1 : i32}" in text


@pytest.mark.feature("PM-17")
def test_results_without_axis_come_from_one_device(pipeline: str) -> None:
    f = minijax.pmap(lambda x: (x, lax.psum(x, "i")), "i", out_axes=(0, None))
    slices, total = f(NUMBERS)
    assert slices.shape == (4,)
    assert (total.shape, total) == ((), 6)
    assert total.sharding.is_fully_replicated


@pytest.mark.feature("PM-17")
def test_results_without_axis_may_differ_unseen(pipeline: str) -> None:
    assert minijax.pmap(lambda x: x + 5, out_axes=None)(NUMBERS) == 5


def test_weak_types_pass(pipeline: str) -> None:
    x = minijax.pmap(lambda x, y: y * 2, in_axes=(0, None))(NUMBERS, 1.0)
    assert x.weak_type


def test_random_keys_are_slices(pipeline: str) -> None:
    keys = minijax.random.split(minijax.random.key(0), 4)
    draw = functools.partial(minijax.random.normal, shape=(2,))
    split = minijax.pmap(minijax.random.split)(keys)
    assert minijax.pmap(draw)(keys).tolist() == minijax.vmap(draw)(keys).tolist()
    expected = minijax.vmap(minijax.random.split)(keys)
    data = minijax.random.key_data
    assert data(split).tolist() == data(expected).tolist()
    assert split.addressable_shards[1].data.size == 2


def test_closed_over_arrays_are_constants(pipeline: str) -> None:
    small, large = jnp.arange(3.0), jnp.arange(5000, dtype=np.int32)
    found = minijax.pmap(lambda x: x + small.sum() + large.sum())(NUMBERS)
    assert found.tolist() == (NUMBERS + 3 + 12497500).tolist()


def test_functions_without_results_run() -> None:
    assert minijax.pmap(lambda x: None)(NUMBERS) is None


def test_empty_slices_pass(pipeline: str) -> None:
    assert minijax.pmap(lambda x: x + 1)(np.ones((4, 0), np.float32)).shape == (4, 0)


def test_one_device_is_enough_for_one_slice(pipeline: str) -> None:
    assert minijax.pmap(lambda x: lax.psum(x, "i") + 1, "i")(np.ones((1, 2))).tolist() == [[2, 2]]


@pytest.mark.feature("PM-20", "AD-04")
@pytest.mark.parametrize("mapping", [minijax.pmap, minijax.vmap])
def test_derivatives_agree_with_vmap(pipeline: str, mapping: Any) -> None:
    def loss(x: Any, y: Any) -> Any:
        f = mapping(
            lambda x, y: lax.psum(jnp.sin(x) * y, "i") * x, axis_name="i", in_axes=(0, None)
        )
        return f(x, y).sum()

    dx, dy = minijax.grad(loss, (0, 1))(NUMBERS, 2.0)
    s, c = np.sin(NUMBERS), np.cos(NUMBERS)
    np.testing.assert_allclose(dx, 2 * s.sum() + 2 * c * NUMBERS.sum(), rtol=1e-5)
    np.testing.assert_allclose(dy, s.sum() * NUMBERS.sum(), rtol=1e-5)


@pytest.mark.feature("AD-04")
def test_derivatives_of_results_without_axis_count_once(pipeline: str) -> None:
    f = minijax.pmap(lambda x: lax.psum(x**2, "i"), "i", out_axes=None)
    assert minijax.grad(f)(NUMBERS).tolist() == [0, 2, 4, 6]


@pytest.mark.feature("AD-04")
def test_axes_of_arguments_and_cotangents_agree(pipeline: str) -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    f = minijax.pmap(lambda x: (x**2).T, in_axes=1, out_axes=2)
    grad = minijax.grad(lambda x: (f(x) * np.arange(24.0).reshape(3, 2, 4)).sum())(x)
    np.testing.assert_allclose(grad, 2 * x * np.arange(24.0).reshape(3, 2, 4).transpose(1, 2, 0))


@pytest.mark.feature("PE-04", "PE-05")
def test_residuals_of_a_map_are_stacked_in_front() -> None:
    f = minijax.pmap(lambda x, y: jnp.sin(x) * y, in_axes=(1, None), out_axes=1)
    x = np.arange(8.0, dtype=np.float32).reshape(2, 4)
    jaxpr = minijax.make_jaxpr(lambda y: minijax.linearize(lambda y: f(x, y), y)[1](y))(2.0)
    known, staged = [e for e in jaxpr.jaxpr.eqns if e.primitive.name == "pmap"]
    assert known.params["out_axes"] == (1, 0)
    assert staged.params["in_axes"] == (0, None)
    assert staged.params["out_axes"] == (1,)
    assert known.params["donated_invars"] == ()


@pytest.mark.feature("PE-04")
def test_linearized_maps_agree_with_vmap(pipeline: str) -> None:
    def derivative(mapping: Any) -> Any:
        f = mapping(lambda x, y: jnp.sin(x) * lax.psum(y, "i"), axis_name="i")
        return minijax.linearize(f, NUMBERS, NUMBERS)[1](NUMBERS, NUMBERS)

    assert_same(derivative(minijax.pmap), derivative(minijax.vmap))


@pytest.mark.feature("PM-20")
def test_jacobians_batch_the_map(pipeline: str) -> None:
    f = minijax.pmap(lambda x: lax.psum(x, "i") * x, "i")
    expected = NUMBERS[:, None] + 6 * np.eye(4)
    assert minijax.jacfwd(f)(NUMBERS).tolist() == expected.tolist()
    assert minijax.jacrev(f)(NUMBERS).tolist() == expected.tolist()


@pytest.mark.feature("PM-20")
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_batches_of_maps_agree(pipeline: str, axis: int) -> None:
    x = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    x = np.moveaxis(x, 2, axis)

    def run(mapping: Any) -> Any:
        f = mapping(
            lambda x: (x - lax.psum(x, "i"), jnp.ones(2)), axis_name="i", out_axes=(1, None)
        )
        return minijax.vmap(f, in_axes=axis, out_axes=(0, None))(x)

    assert_same(run(minijax.pmap), run(minijax.vmap))


@pytest.mark.feature("PM-20")
def test_checkpoints_divide_maps(pipeline: str) -> None:
    def loss(x: Any) -> Any:
        save = minijax.checkpoint_policies.save_only_these_names("sine")

        @functools.partial(minijax.checkpoint, policy=save)
        def f(x: Any) -> Any:
            sine = minijax.ad_checkpoint.checkpoint_name(jnp.sin(x), "sine")
            return jnp.sin(sine * lax.psum(sine, "i"))

        return minijax.pmap(f, "i")(x).sum()

    grad = minijax.grad(loss)(NUMBERS)
    s, c = np.sin(NUMBERS), np.cos(NUMBERS)
    outer = np.cos(s * s.sum())
    np.testing.assert_allclose(grad, c * (outer * s.sum() + (outer * s).sum()), rtol=1e-5)


@pytest.mark.feature("PM-20")
def test_checkpoints_around_maps_recompute_them() -> None:
    policy = minijax.checkpoint_policies.dots_saveable

    def loss(x: Any) -> Any:
        inner = minijax.pmap(lambda x: jnp.sin(x @ x), "i", in_axes=1, out_axes=1)
        return minijax.checkpoint(lambda x: jnp.sin(inner(x)), policy=policy)(x).sum()

    x = np.arange(16, dtype=np.float32).reshape(2, 4, 2)
    expected = minijax.vmap(lambda x: jnp.sin(jnp.sin(x @ x)), in_axes=1, out_axes=1)
    grad = minijax.grad(lambda x: expected(x).sum())(x)
    np.testing.assert_allclose(minijax.grad(loss)(x), grad, rtol=1e-4)


@pytest.mark.feature("PE-07", "PM-20")
def test_dead_slices_are_dropped() -> None:
    f = minijax.pmap(lambda x, y: (x + 1, y * 2), in_axes=(0, None), out_axes=(0, None))
    (whole,) = minijax.make_jaxpr(f)(NUMBERS, 1.0).jaxpr.eqns
    eqn = passes.dce.of(whole.primitive)(whole, [False, True])
    assert eqn.params["in_axes"] == (None,)
    assert eqn.params["out_axes"] == (None,)
    assert len(eqn.params["donated_invars"]) == 1
    assert len(eqn.invars) == len(eqn.outvars) == 1


@pytest.mark.feature("PE-09")
def test_donation_follows_the_arguments_that_are_left() -> None:
    f = minijax.pmap(lambda x, y: (x + 1, y * 2), donate_argnums=1)
    (whole,) = minijax.make_jaxpr(f)(NUMBERS, NUMBERS).jaxpr.eqns
    assert whole.params["donated_invars"] == (False, True)
    for used, donated in (([True, False], (False,)), ([False, True], (True,))):
        eqn = passes.dce.of(whole.primitive)(whole, used)
        assert eqn.params["donated_invars"] == donated


@pytest.mark.feature("PE-09")
def test_gradients_of_a_map_keep_what_it_would_donate() -> None:
    x, w = jnp.asarray(NUMBERS), jnp.float32(3)
    f = minijax.pmap(lambda x, w: jnp.sin(x) * w, in_axes=(0, None), donate_argnums=(0, 1))
    dx, dw = minijax.grad(lambda x, w: f(x, w).sum(), (0, 1))(x, w)
    np.testing.assert_allclose(dx, 3 * np.cos(NUMBERS), rtol=1e-6)
    np.testing.assert_allclose(dw, np.sin(NUMBERS).sum(), rtol=1e-6)
    assert not x.is_deleted()
    assert not w.is_deleted()


@pytest.mark.feature("PE-06")
def test_maps_nobody_reads_go() -> None:
    f = minijax.pmap(lambda x: x + 1)
    closed = minijax.make_jaxpr(lambda x: (f(x), x)[1])(NUMBERS)
    (eqn,) = closed.jaxpr.eqns
    assert passes.dce.of(eqn.primitive)(eqn, [False]) is None


@pytest.mark.feature("CR-10")
def test_substitution_leaves_the_axis_of_a_map() -> None:
    f = minijax.pmap(lambda x: lax.psum(x, "i"), "i")
    jaxpr = minijax.make_jaxpr(f)(NUMBERS).jaxpr
    renamed = axes.substitute(jaxpr, {"i": "j"})
    assert renamed.eqns[0].params["axis_name"] == "i"
    assert renamed.eqns[0].params["jaxpr"].jaxpr.eqns[0].params["axes"] == ("i",)


@pytest.mark.feature("AO-04")
def test_stages_lead_to_the_same_results(pipeline: str) -> None:
    f = minijax.pmap(lambda x, y: {"a": x * y}, in_axes=(0, None))
    lowered = f.lower(minijax.ShapeDtypeStruct((4,), np.float32), 2.0)
    compiled = lowered.compile()
    assert compiled(NUMBERS, 2.0)["a"].tolist() == [0, 2, 4, 6]
    assert compiled.out_info["a"].shape == (4,)
    assert compiled.in_avals[0][0].shape == (4,)
    assert "HloModule" in compiled.as_text()
    with pytest.raises(TypeError, match="types of arguments differ"):
        compiled(ROWS, 2.0)


@pytest.mark.feature("AO-04")
def test_shapes_of_results_are_known_before(pipeline: str) -> None:
    f = minijax.pmap(lambda x: x.astype(np.int32), out_axes=1)
    assert f.eval_shape(ROWS).shape == (4, 4)
    assert f.trace(ROWS).out_info.dtype == np.int32


@pytest.mark.feature("PM-01")
def test_jaxprs_show_the_map() -> None:
    f = minijax.pmap(lambda x: x * 2, "i")
    text = str(minijax.make_jaxpr(f)(NUMBERS))
    for shown in ("pmap[", "axis_name=i", "axis_size=4", "in_axes=(0,)", "out_axes=(0,)"):
        assert shown in text
    assert "donated_invars=(False,)" in text
    assert "global_axis_size=4" in text


@pytest.mark.feature("JT-32")
def test_jit_of_a_map_warns_and_copies_to_all(devices: list[Any]) -> None:
    f = minijax.jit(minijax.pmap(lambda x: lax.psum(x, "i"), "i"))
    with pytest.warns(UserWarning, match="jit of pmap copies all arguments"):
        y = f(NUMBERS)
    assert y.tolist() == [6] * 4
    assert y.committed
    assert y.sharding.is_fully_replicated
    assert y.sharding.device_set == set(devices[:4])
    # A plan is made, and warned of, once for each program.
    assert "mhlo.num_replicas = 4" in f.lower(NUMBERS).as_text()
    with pytest.warns(UserWarning, match="jit of pmap"):
        text = minijax.jit(minijax.pmap(lambda x: lax.psum(x, "i"), "i")).lower(NUMBERS).as_text()
    assert "mhlo.num_replicas = 4" in text
    assert "sharding" not in text


@pytest.mark.feature("JT-32")
def test_jit_of_a_map_needs_devices() -> None:
    f = minijax.jit(minijax.pmap(lambda x: x))
    with pytest.raises(ValueError, match="16 replicas, 8 devices"):
        f(np.ones(16))


@pytest.mark.feature("JT-32")
def test_programs_are_not_both_copied_and_cut(devices: list[Any]) -> None:
    sharding = NamedSharding(Mesh(np.array(devices), "x"), P())
    f = minijax.jit(minijax.pmap(lambda x: x), in_shardings=sharding)
    with pytest.raises(ValueError, match="pmap cannot be inside a program over a mesh"):
        f(NUMBERS)


@pytest.mark.feature("JT-32")
def test_jit_of_the_other_pipeline_is_an_ordinary_program() -> None:
    with config.pmap_via_shard_map(True):
        y = minijax.jit(minijax.pmap(lambda x: lax.psum(x, "i"), "i"))(NUMBERS)
    assert y.tolist() == [6] * 4


@pytest.mark.feature("AR-11")
def test_replicate_stacks_copies(devices: list[Any]) -> None:
    x = replicate(np.arange(3.0), 2, 8)
    assert x.tolist() == [[0, 1, 2]] * 2
    assert [s.index[0] for s in x.addressable_shards] == [0] * 4 + [1] * 4
    assert replicate(1.0, 4, 4, in_axis=None).shape == ()
    with pytest.raises(ValueError, match=r"8 device\(s\): cpu:0, .*\n.*16 devices"):
        replicate(1.0, 16, 16)


@pytest.mark.feature("LG-03")
def test_runs_are_logged_where_wanted(caplog: pytest.LogCaptureFixture) -> None:
    f = minijax.pmap(lambda x: x)
    with config.distributed_debug(True), caplog.at_level("WARNING", "minijax"):
        f(NUMBERS)
    (record,) = caplog.records
    for fact in ("Running pmapped function: <lambda>", "devices: ", "abstract args", "fingerprint"):
        assert fact in record.getMessage()


@pytest.mark.feature("LG-04")
def test_compilations_of_maps_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG", "minijax"):
        minijax.pmap(lambda x: x - 7, "i")(NUMBERS)
    assert any("axis 'i' of size 4, 4 replica(s)" in text for text in caplog.messages)


def test_errors_in_the_function_leave_no_axis_behind() -> None:
    def fail(x: Any) -> Any:
        raise RuntimeError("no")

    with contextlib.suppress(RuntimeError):
        minijax.pmap(fail, "i")(NUMBERS)
    with pytest.raises(NameError, match="unbound axis name 'i'"):
        lax.psum(jnp.ones(3), "i")


def test_clear_caches_forgets_maps() -> None:
    seen = []
    f = minijax.pmap(lambda x: (seen.append(1), x)[1])
    f(NUMBERS)
    minijax.clear_caches()
    f(NUMBERS)
    assert len(seen) == 2


def test_maps_of_traced_values_are_part_of_the_program(pipeline: str) -> None:
    def function(z: Any) -> Any:
        return minijax.pmap(lambda x: x * z)(NUMBERS)

    assert minijax.jvp(function, (2.0,), (1.0,))[1].tolist() == NUMBERS.tolist()
    assert minijax.vmap(function)(np.arange(2.0)).tolist() == [[0] * 4, NUMBERS.tolist()]


@pytest.mark.feature("PM-01")
def test_ragged_exchanges_work_without_help_of_xla(pipeline: str) -> None:
    def function(*args: Any) -> Any:
        return lax.ragged_all_to_all(*args, axis_name="i")

    pairs = [[[1, 2, 2], [3, 4, 0]], [[0] * 4] * 2, [[0, 1]] * 2, [[1, 2], [1, 1]]]
    pairs += [[[0, 0], [1, 2]], [[1, 1], [2, 1]]]
    args = [np.array(x, np.int32) for x in pairs]
    assert minijax.pmap(function, "i")(*args).tolist() == [[1, 3, 0, 0], [2, 2, 4, 0]]


@pytest.mark.feature("PM-19")
def test_positions_count_along_both_axes(pipeline: str) -> None:
    def function(x: Any) -> Any:
        return lax.axis_index(("i", "j")), lax.axis_index(("j", "i")), lax.axis_size(("i", "j"))

    f = minijax.pmap(minijax.pmap(function, "j"), "i")
    first, second, size = f(np.zeros((4, 2)))
    assert first.tolist() == np.arange(8).reshape(4, 2).tolist()
    assert second.tolist() == np.arange(8).reshape(2, 4).T.tolist()
    assert size.tolist() == [[8] * 2] * 4


def test_regions_over_meshes_are_not_mapped(devices: list[Any]) -> None:
    mesh = Mesh(np.array(devices[:2]), "m")
    region = functools.partial(minijax.shard_map, mesh=mesh, in_specs=P("m"), out_specs=P("m"))
    with pytest.raises(NotImplementedError, match="shard_map: cannot be inside pmap"):
        minijax.pmap(region(lambda x: lax.psum(x, "m")))(ROWS)
    with pytest.raises(ValueError, match="pmap cannot be inside a program over a mesh"):
        minijax.jit(region(minijax.pmap(lambda x: x)))(ROWS)


def test_references_from_outside_are_refused() -> None:
    ref = minijax.new_ref(jnp.zeros(4))

    def function(x: Any) -> Any:
        ref[0] = x
        return x

    with pytest.raises(NotImplementedError, match="function uses a reference from outside"):
        minijax.pmap(function)(NUMBERS)


def test_references_inside_are_fine(pipeline: str) -> None:
    def function(x: Any) -> Any:
        ref = minijax.new_ref(x)
        ref[...] += 1
        return ref[...]

    assert minijax.pmap(function)(NUMBERS).tolist() == [1, 2, 3, 4]


def test_keys_are_used_once() -> None:
    keys = minijax.random.split(minijax.random.key(0), 4)
    f = minijax.pmap(minijax.random.normal)
    with config.debug_key_reuse(True):
        f(keys)
        with pytest.raises(minijax.errors.KeyReuseError):
            f(keys)


def test_committed_arguments_move(devices: list[Any], pipeline: str) -> None:
    x = minijax.device_put(NUMBERS, devices[5])
    assert minijax.pmap(lambda x: x + 1)(x).tolist() == [1, 2, 3, 4]


@pytest.mark.usefixtures("young_heap")
def test_mapped_functions_die() -> None:
    def function(x: Any) -> Any:
        return x + 1

    minijax.pmap(function)(NUMBERS)
    reference = weakref.ref(function)
    del function
    gc.collect()
    assert reference() is None
