"""`testing.simulate` computes what per-device programs mean, device by device, without XLA.

The formulas here are those of the definition: on the stacked view of a value, an array with one
leading dimension for each mesh axis.
"""

import itertools
import math
import sys
import time

import ml_dtypes
import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.core import axes
from minijax.core.primitive import PRIMITIVES
from minijax.core.trace import current
from minijax.sharding import AbstractMesh
from minijax.sharding import PartitionSpec as P
from minijax.testing import device_trace, numpy_model, simulate, simulate_devices

X = np.arange(16, dtype=np.float32).reshape(4, 4)
FOUR = {"x": 4}
THREE_AXES = {"a": 2, "b": 3, "c": 2}
ORDERS = [names for n in (1, 2, 3) for names in itertools.permutations(THREE_AXES, n)]


def on_stacked(f, mesh):
    """`f` of one device's value, as a function of stacked values."""
    k = len(mesh)
    one = (1,) * k
    return simulate(
        lambda x: (y := f(x.reshape(x.shape[k:]))).reshape(one + y.shape),
        mesh,
        P(*mesh),
        P(*mesh),
        check_vma=False,
    )


def by_group(h, x, mesh, names):
    """`h(blocks in the order of the group, position)` for each device, on the stacked view."""
    outs = {}
    for place in itertools.product(*map(range, mesh.values())):
        at = dict(zip(mesh, place, strict=True))
        group = [
            x[tuple({**at, **dict(zip(names, other, strict=True))}.values())]
            for other in itertools.product(*(range(mesh[name]) for name in names))
        ]
        outs[place] = h(group, position(at, mesh, names))
    return np.stack([outs[p] for p in sorted(outs)]).reshape(*mesh.values(), *outs[place].shape)


def position(at, mesh, names):
    found = 0
    for name in names:
        found = found * mesh[name] + at[name]
    return found


def stacked(mesh, *shape, dtype=np.int32):
    whole = (*mesh.values(), *shape)
    return np.random.default_rng(0).integers(-50, 50, whole).astype(dtype)


REDUCTIONS = [
    (lax.psum, np.add.reduce),
    (lax.pmax, np.maximum.reduce),
    (lax.pmin, np.minimum.reduce),
    (lax.pmean, lambda b: (sum(b) / len(b)).astype(np.float32)),
]


@pytest.mark.parametrize("names", ORDERS)
@pytest.mark.parametrize(("collective", "formula"), REDUCTIONS)
@pytest.mark.feature("CO-01", "CO-02", "CO-03")
def test_reductions_are_those_of_their_groups(collective, formula, names):
    x = stacked(THREE_AXES, 3)
    expected = by_group(lambda b, j: formula(b), x, THREE_AXES, names)
    np.testing.assert_array_equal(
        on_stacked(lambda v: collective(v, names), THREE_AXES)(x), expected
    )


@pytest.mark.parametrize("names", ORDERS)
@pytest.mark.feature("CO-15")
def test_all_gather_orders_blocks_by_the_first_name(names):
    x = stacked(THREE_AXES, 2, 3)
    untiled = on_stacked(lambda v: lax.all_gather(v, names, axis=1), THREE_AXES)(x)
    tiled = on_stacked(lambda v: lax.all_gather(v, names, tiled=True), THREE_AXES)(x)
    np.testing.assert_array_equal(
        untiled, by_group(lambda b, j: np.stack(b, 1), x, THREE_AXES, names)
    )
    np.testing.assert_array_equal(
        tiled, by_group(lambda b, j: np.concatenate(b, 0), x, THREE_AXES, names)
    )


@pytest.mark.parametrize("names", ORDERS)
@pytest.mark.feature("CO-18")
def test_psum_scatter_gives_each_its_part_of_the_sum(names):
    n = math.prod(THREE_AXES[name] for name in names)
    x = stacked(THREE_AXES, 3, n)
    scatter = on_stacked(lambda v: lax.psum_scatter(v, names, scatter_dimension=1), THREE_AXES)
    np.testing.assert_array_equal(
        scatter(x), by_group(lambda b, j: sum(b)[:, j], x, THREE_AXES, names)
    )


@pytest.mark.parametrize("names", ORDERS)
@pytest.mark.parametrize(("split", "concat"), [(0, 0), (0, 1), (1, 0)])
@pytest.mark.feature("CO-13")
def test_tiled_all_to_all_exchanges_chunks(names, split, concat):
    n = math.prod(THREE_AXES[name] for name in names)
    x = stacked(THREE_AXES, n, 2 * n)
    exchange = on_stacked(lambda v: lax.all_to_all(v, names, split, concat, tiled=True), THREE_AXES)

    def formula(b, j):
        return np.concatenate([np.split(v, n, split)[j] for v in b], concat)

    np.testing.assert_array_equal(exchange(x), by_group(formula, x, THREE_AXES, names))


@pytest.mark.parametrize(("split", "concat"), [(0, 0), (0, 2), (2, 0), (1, 2)])
@pytest.mark.feature("CO-12", "CO-13")
def test_untiled_all_to_all_stacks_slices(split, concat):
    x = stacked(FOUR, 4, 4, 4)
    exchange = on_stacked(lambda v: lax.all_to_all(v, "x", split, concat), FOUR)

    def formula(b, j):
        return np.stack([np.take(v, j, split) for v in b], concat)

    np.testing.assert_array_equal(exchange(x), by_group(formula, x, FOUR, ("x",)))


@pytest.mark.feature("CO-08")
def test_ppermute_gives_zeros_to_who_is_no_destination():
    moved = on_stacked(lambda v: lax.ppermute(v, "x", [(0, 2), (3, 1)]), FOUR)(X)
    np.testing.assert_array_equal(moved, np.stack([0 * X[0], X[3], X[0], 0 * X[0]]))


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
@pytest.mark.feature("CO-08")
def test_ppermute_counts_in_the_order_of_the_mesh(names):
    mesh = {"a": 2, "b": 3}
    x = stacked(mesh, 2)
    pairs = [(i, (i + 1) % 6) for i in range(6)]
    moved = on_stacked(lambda v: lax.ppermute(v, names, pairs), mesh)(x)
    np.testing.assert_array_equal(moved, np.roll(x.reshape(6, 2), 1, 0).reshape(2, 3, 2))


@pytest.mark.feature("CO-09")
def test_pshuffle_takes_from_where_the_permutation_says():
    moved = on_stacked(lambda v: lax.pshuffle(v, "x", [2, 0, 3, 1]), FOUR)(X)
    np.testing.assert_array_equal(moved, X[[2, 0, 3, 1]])


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
@pytest.mark.feature("CO-07")
def test_pbroadcast_gives_all_the_value_of_the_source(names):
    mesh = {"a": 2, "b": 3}
    x = stacked(mesh, 2)
    given = on_stacked(lambda v: lax.pbroadcast(v, names, 4), mesh)(x)
    np.testing.assert_array_equal(given, by_group(lambda b, j: b[4], x, mesh, names))


@pytest.mark.parametrize("names", ORDERS)
@pytest.mark.feature("CO-21")
def test_axis_index_counts_the_first_name_as_the_most_significant(names):
    shape = tuple(THREE_AXES.values())
    found = on_stacked(lambda v: lax.axis_index(names), THREE_AXES)(np.zeros(shape, np.int32))
    expected = [
        position(dict(zip(THREE_AXES, place, strict=True)), THREE_AXES, names)
        for place in np.ndindex(shape)
    ]
    np.testing.assert_array_equal(found, np.reshape(expected, shape))


@pytest.mark.feature("CO-05", "CO-06")
def test_pargmax_finds_the_first_of_the_largest():
    x = np.array([[1, 5], [3, 5], [3, 2], [0, 5]], np.float32)
    found = simulate(lambda v: lax.pargmax(v[0], "x"), FOUR, P("x"), P(), check_vma=False)(x)
    np.testing.assert_array_equal(found, np.argmax(x, 0))


@pytest.mark.feature("CO-33")
@pytest.mark.parametrize(
    ("f", "x", "expected"),
    [
        (lambda v: lax.psum(v, "x"), np.arange(4), [6, 6, 6, 6]),
        (lambda v: v / lax.psum(v, "x"), np.arange(4.0), [0, 1 / 6, 1 / 3, 1 / 2]),
        (
            lambda v: lax.psum(v, "x", axis_index_groups=[[0, 1], [2, 3]]),
            np.arange(4),
            [1, 1, 5, 5],
        ),
        (lambda v: lax.psum(v, "x"), X, [[24, 28, 32, 36]] * 4),
        (
            lambda v: lax.psum(v, "x", axis_index_groups=[[0, 1], [2, 3]]),
            X,
            [[4, 6, 8, 10]] * 2 + [[20, 22, 24, 26]] * 2,
        ),
        (lambda v: lax.pmean(v, "x"), np.arange(4.0), [1.5] * 4),
        (lambda v: v / lax.pmean(v, "x"), np.arange(4.0), [0, 2 / 3, 4 / 3, 2]),
        (lambda v: lax.all_gather(v, "x"), np.arange(4), [[0, 1, 2, 3]] * 4),
        (
            lambda v: lax.all_gather(v, "x", axis_index_groups=[[0, 2], [3, 1]]),
            X,
            [X[[0, 2]], X[[3, 1]]] * 2,
        ),
        (lambda v: lax.psum_scatter(v, "x"), X, [24, 28, 32, 36]),
        (lambda v: lax.psum_scatter(v, "x", tiled=True), X, [[24], [28], [32], [36]]),
        (
            lambda v: lax.psum_scatter(v, "x", axis_index_groups=[[0, 2], [3, 1]], tiled=True),
            X,
            [[8, 10], [20, 22], [12, 14], [16, 18]],
        ),
    ],
)
def test_worked_figures(f, x, expected):
    found = on_stacked(f, FOUR)(x)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.feature("CO-33", "CO-22")
def test_worked_figures_of_indices():
    def f(_):
        index = lax.axis_index(("i", "j")), lax.axis_index(("j", "i"))
        return tuple(i.reshape(1, 1) for i in index), lax.axis_size(("i", "j"))

    specs = (P("i", "j"), P("i", "j")), P()
    (first, second), size = simulate(f, {"i": 4, "j": 2}, P(), specs)(0.0)
    np.testing.assert_array_equal(first, [[0, 1], [2, 3], [4, 5], [6, 7]])
    np.testing.assert_array_equal(second, [[0, 4], [1, 5], [2, 6], [3, 7]])
    assert size == 8


@pytest.mark.feature("CO-25")
def test_positional_axes_are_reduced_within_each_device():
    x = stacked(FOUR, 2, 3)
    found = on_stacked(lambda v: lax.psum(v, ("x", 1)), FOUR)(x)
    np.testing.assert_array_equal(found, np.broadcast_to(x.sum((0, 2)), (4, 2)))


@pytest.mark.feature("CO-01")
def test_booleans_are_summed_as_integers():
    flags = np.array([True, False, True, True])
    found = simulate(lambda v: lax.psum(v, "x"), FOUR, P("x"), P())(flags)
    assert found.dtype == np.int32
    assert found == [3]


@pytest.mark.feature("CO-03")
def test_pmax_keeps_booleans():
    flags = np.array([True, False, True, True])
    found = simulate(lambda v: lax.pmin(v, "x"), FOUR, P("x"), P())(flags)
    assert found.dtype == np.bool_
    assert found == [False]


def test_every_collective_has_a_model():
    talking = {name for name, p in PRIMITIVES.items() if axes.communicates.of(p)}
    known = numpy_model
    simulated = {*known.MODELS, *known.STARTS, *known.ENDS, *device_trace.PROGRAMS}
    assert talking - simulated == set()


class _Start:
    """A collective that only starts."""

    name = "ppermute_start"
    discharge = None

    def abstract_eval(self, aval, **_):
        return aval


class _Done(_Start):
    name = "ppermute_done"


axes.axis_params.set(("axis_name",), _Start)
axes.axis_params.set((), _Done)


def test_a_collective_that_has_started_brings_its_result_when_it_is_done():
    def f(v):
        trace = current.value
        perm = ((0, 1), (1, 2), (2, 3), (3, 0))
        (promise,) = trace.process(_Start(), [v], {"axis_name": ("x",), "perm": perm})
        (result,) = trace.process(_Done(), [promise], {})
        return result + v

    found = simulate(f, FOUR, P("x"), P("x"))(X)
    np.testing.assert_array_equal(found, X + np.roll(X, 1, 0))


def test_worked_ragged_exchange_of_the_model():
    operands = np.array([[1, 2, 2], [3, 4, 0]])
    group = [
        (operands[d], np.zeros(4, int), *map(np.array, (starts, sent, targets, received)))
        for d, (starts, sent, targets, received) in enumerate(
            [([0, 1], [1, 2], [0, 0], [1, 1]), ([0, 1], [1, 1], [1, 2], [2, 1])]
        )
    ]
    (first,), (second,) = numpy_model.exchange("ragged_all_to_all", {}, group)
    np.testing.assert_array_equal(first, [1, 3, 0, 0])
    np.testing.assert_array_equal(second, [2, 2, 4, 0])


def test_arguments_are_cut_and_results_joined_by_products_of_axes():
    mesh = AbstractMesh((2, 3), ("a", "b"))
    x = np.arange(24.0, dtype=np.float32).reshape(12, 2)
    spec = P(("b", "a"))
    blocks = simulate_devices(lambda v: v, mesh, spec)(x)
    np.testing.assert_array_equal(blocks[1, 2], x[10:12])
    np.testing.assert_array_equal(blocks[0, 1], x[4:6])
    np.testing.assert_array_equal(simulate(lambda v: v, mesh, spec, spec)(x), x)


def test_trees_take_specs_as_prefixes():
    def f(params, x):
        return {"y": x * params["w"] + params["b"], "n": lax.psum(1, "x")}

    params = {"w": np.float32(2), "b": np.ones(2, np.float32)}
    found = simulate(f, FOUR, (P(), P("x")), {"y": P("x"), "n": None})(params, X[:, :2])
    np.testing.assert_array_equal(found["y"], X[:, :2] * 2 + 1)
    assert found["n"] == 4


def test_axis_names_leave_other_axes_whole():
    mesh = {"x": 2, "y": 3}
    total = simulate(lambda v: lax.psum(v, "x"), mesh, P("x"), P(), axis_names={"x"})(X)
    np.testing.assert_array_equal(total, X[:2] + X[2:])


def test_python_branches_on_values_of_the_device():
    def f(v):
        if v.sum() > 20:
            return -v
        return v * lax.axis_index("x")

    found = simulate(f, FOUR, P("x"), P("x"))(X)
    np.testing.assert_array_equal(found, np.stack([X[0] * 0, -X[1], -X[2], -X[3]]))


def test_values_can_be_printed(capsys):
    def f(v):
        sys.stdout.write(f"{lax.axis_index('x')}: {v} {v!r}\n")
        return v

    simulate(f, {"x": 2}, P("x"), P("x"))(np.arange(2))
    assert capsys.readouterr().out == (
        "0: [0] i32[1]{V:x} on (x=0): [0]\n1: [1] i32[1]{V:x} on (x=1): [1]\n"
    )


def test_loops_may_run_a_different_number_of_times():
    def halved(v):
        return lax.while_loop(lambda c: c[0] > 1, lambda c: (c[0] // 2, c[1] + 1), (v, 0 * v))[1]

    found = simulate(lambda v: jax.vmap(halved)(v), FOUR, P("x"), P("x"))(
        np.array([1, 2, 5, 9, 16, 3, 64, 1])
    )
    np.testing.assert_array_equal(found, [0, 1, 2, 3, 4, 1, 6, 0])


def test_collectives_inside_of_scan_cond_and_jit_take_place():
    @jax.jit
    def f(v):
        def step(carry, row):
            total = lax.psum(row, "x")
            carry = lax.cond(total[0] > 10, lambda c: c + total, lambda c: c, carry)
            return carry, lax.all_gather(row, "x")

        return lax.scan(step, jnp.zeros(4), v)

    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    carry, rows = simulate(f, FOUR, P("x"), (P(), P(None, None, "x")), check_vma=False)(x)
    sums = x[0::2].sum(0), x[1::2].sum(0)
    np.testing.assert_array_equal(carry, sum(s for s in sums if s[0] > 10))
    np.testing.assert_array_equal(rows[1, :, :4], x[1::2])


@pytest.mark.parametrize(("check_vma", "factor"), [(True, 1), (False, 4)])
@pytest.mark.feature("CO-01")
def test_gradients_inside_count_as_types_say(check_vma, factor):
    f = simulate(
        jax.grad(lambda v: lax.psum(jnp.sin(v).sum(), "x")),
        FOUR,
        P("x"),
        P("x"),
        check_vma=check_vma,
    )
    np.testing.assert_allclose(f(X), factor * np.cos(X), rtol=1e-6)


def test_gradient_of_what_is_the_same_everywhere_is_summed():
    def loss(w, v):
        return ((v @ w) ** 2).sum()

    w = np.ones(4, np.float32)
    found = simulate(jax.grad(loss), FOUR, (P(), P("x")), P())(w, X)
    np.testing.assert_allclose(found, 2 * X.T @ (X @ w), rtol=1e-6)


def test_jvp_and_vmap_inside_go_through_collectives():
    def f(v):
        y, dy = jax.jvp(lambda u: lax.psum(u * u, "x"), (v,), (jnp.ones_like(v),))
        return y, jax.vmap(lambda u: lax.psum(u, "x"), in_axes=1)(v), dy

    y, rows, dy = simulate(f, FOUR, P("x"), (P(), P(), P()))(X)
    np.testing.assert_array_equal(y, (X * X).sum(0, keepdims=True))
    np.testing.assert_array_equal(dy, 2 * X.sum(0, keepdims=True))
    np.testing.assert_array_equal(rows, X.sum(0)[:, None])


def test_a_vmapped_axis_and_a_mesh_axis_are_reduced_together():
    def f(v):
        return jax.vmap(lambda u: lax.psum(u, ("x", "i")), axis_name="i")(v)[0]

    found = simulate(f, {"x": 2}, P("x"), P())(X)
    np.testing.assert_array_equal(found, X.sum(0))


def test_custom_rules_and_checkpoint_are_followed():
    @jax.custom_vjp
    def mean(v):
        return lax.pmean(v, "x")

    mean.defvjp(lambda v: (mean(v), None), lambda _, ct: (ct * 7,))

    @jax.checkpoint
    def f(v):
        return (mean(v) ** 2).sum()

    found = simulate(jax.grad(f), FOUR, P("x"), P("x"), check_vma=False)(X)
    np.testing.assert_allclose(found, np.tile(14 * X.mean(0), (4, 1)), rtol=1e-6)


def test_a_closed_jaxpr_can_be_simulated():
    with axes.extend("x", 4, "mesh"):
        closed = jax.make_jaxpr(lambda v: lax.psum(v * 2, "x"))(np.float32(0))
    (found,) = simulate(closed, FOUR, P(), P(), check_vma=False)(np.float32(3))
    assert found == 24


def test_keys_and_random_numbers_are_those_of_one_device():
    def f(key, v):
        own = jax.random.fold_in(key, lax.axis_index("x"))
        return v + jax.random.uniform(own, v.shape)

    key = jax.random.key(3)
    found = simulate(f, FOUR, (P(), P("x")), P("x"))(key, X)
    expected = [X[i] + jax.random.uniform(jax.random.fold_in(key, i), (1, 4))[0] for i in range(4)]
    np.testing.assert_allclose(found, np.stack(expected), rtol=1e-6)


def test_keys_can_be_gathered():
    keys = jax.random.split(jax.random.key(0), 4)
    found = simulate(lambda k: lax.all_gather(k, "x", tiled=True), FOUR, P("x"), P())(keys)
    np.testing.assert_array_equal(jax.random.key_data(found), jax.random.key_data(keys))


def test_references_live_on_their_device():
    def f(v):
        total = jax.new_ref(v)
        for _ in range(2):
            total[...] += lax.psum(total[...], "x")
        return total[...]

    found = simulate(f, FOUR, P("x"), P("x"), check_vma=False)(np.arange(4, dtype=np.float32))
    np.testing.assert_array_equal(found, [36, 37, 38, 39])


def test_narrow_floats_stay_narrow():
    x = np.arange(4).astype(ml_dtypes.bfloat16)
    found = simulate(lambda v: lax.psum(jnp.sin(v) * 2, "x"), FOUR, P("x"), P())(x)
    assert found.dtype == ml_dtypes.bfloat16


def test_an_exchange_is_recorded_with_what_moved():
    f = simulate(lambda v: lax.ppermute(v, "x", [(0, 1)]), FOUR, P("x"), P("x"), trace=True)
    result, exchanges = f(np.arange(4))
    (exchange,) = exchanges
    assert exchange.name == "ppermute"
    assert exchange.members == tuple((("x", i),) for i in range(4))
    assert [int(x[0]) for (x,) in exchange.inputs] == [0, 1, 2, 3]
    assert [int(x[0]) for (x,) in exchange.outputs] == result.tolist() == [0, 0, 0, 0]
    assert exchange.line.startswith("test_oracle.py:")


def test_what_differs_where_the_spec_says_it_is_the_same_is_refused():
    f = simulate(lambda v: v.sum().reshape(1), {"x": 2, "y": 2}, P("x", "y"), P("x"))
    with pytest.raises(ValueError, match=r"result differs along 'y'") as info:
        f(X)
    assert "(x=0, y=0)  [10.]" in str(info.value)
    assert "(x=0, y=1)  [18.]" in str(info.value)


def test_unchecked_results_are_those_of_the_first_device():
    f = simulate(lambda v: v, FOUR, P("x"), P(), check_vma=False)
    np.testing.assert_array_equal(f(X), X[:1])


def test_nans_are_the_same_as_themselves():
    found = simulate(lambda v: lax.psum(v, "x"), FOUR, P("x"), P())(np.full(4, np.nan))
    assert np.isnan(found).all()


@pytest.mark.parametrize(
    ("specs", "text"),
    [
        (P("z"), "names an axis along which there are no devices"),
        (P(None, None, "x"), "more entries than there are dimensions"),
        (P("y"), "cannot be cut into equal parts"),
    ],
)
def test_specs_that_do_not_fit_are_refused_by_name(specs, text):
    def f(weights):
        return weights

    with pytest.raises(ValueError, match=text) as info:
        simulate(f, {"x": 2, "y": 3}, specs, P())(X)
    assert "weights" in str(info.value)


def test_settings_of_the_caller_hold_on_devices():
    x = np.arange(4, dtype=np.float64)
    with jax.enable_x64(True):
        found = simulate(lambda v: lax.psum(v / 3, "x"), FOUR, P("x"), P())(x)
    assert found.dtype == np.float64


def test_two_runs_are_the_same():
    order = []

    def f(v):
        order.append(int(lax.axis_index("x")))
        total = lax.psum(v, "x")
        order.append(int(lax.axis_index("x")))
        return total

    simulate(f, FOUR, P("x"), P())(X)
    assert order == [0, 1, 2, 3] * 2


def test_a_simulation_of_eight_devices_takes_milliseconds():
    def f(v):
        for _ in range(5):
            v = jnp.tanh(v) + lax.psum(v, "x") * 0.1
        return v

    run = simulate(f, {"x": 8}, P("x"), P("x"))
    run(np.ones((8, 4), np.float32))
    begin = time.perf_counter()
    for _ in range(5):
        run(np.ones((8, 4), np.float32))
    assert time.perf_counter() - begin < 1.0


@pytest.mark.parametrize("transform", [jax.vmap, jax.jit])
def test_a_simulation_itself_cannot_be_transformed(transform):
    f = transform(simulate(lambda v: v, FOUR, P("x"), P("x")))
    with pytest.raises(jax.errors.TracerArrayConversionError, match="transform the function"):
        f(np.stack([X, X]) if transform is jax.vmap else X)


def test_results_that_are_no_arrays_are_named():
    with pytest.raises(TypeError, match=r"result\['name'\]"):
        simulate(lambda v: {"name": "v", "v": v}, FOUR, P("x"), P("x"))(X)


def test_results_of_different_shapes_are_refused():
    f = simulate(lambda v: v[0, : lax.axis_index("x") + 1], FOUR, P("x"), P("x"))
    with pytest.raises(ValueError, match=r"different types for result") as info:
        f(X)
    assert "(x=0): f32[1]{V:x}   (x=1): f32[2]{V:x}" in str(info.value)


def test_axes_that_the_mesh_lacks_are_refused():
    with pytest.raises(ValueError, match="axis_names has no axis of the mesh: 'data'"):
        simulate(lambda v: v, FOUR, P("x"), P("x"), axis_names="data")(X)


def test_callbacks_and_prints_run_on_each_device(capsys):
    def f(v):
        jax.debug.print("{}", lax.axis_index("x"), ordered=True)
        shape = jax.ShapeDtypeStruct(v.shape, v.dtype)
        return jax.pure_callback(lambda u: 2 * np.asarray(u), shape, v)

    np.testing.assert_array_equal(simulate(f, FOUR, P("x"), P("x"))(X), 2 * X)
    assert capsys.readouterr().out == "0\n1\n2\n3\n"
