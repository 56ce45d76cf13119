"""`pmap` operation by operation: `disable_jit` with `eager_pmap`."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.core import config
from minijax.core.axes import Axis
from minijax.transforms.pmap.mapped import PmapFunction, stepwise
from minijax.transforms.pmap.stepwise import MapTrace, MapTracer
from tests.transforms.mapped import NUMBERS, ROWS, nested


@pytest.fixture(autouse=True)
def devices() -> Iterator[list[Any]]:
    with minijax.cpu_devices(8), minijax.disable_jit():
        yield minijax.devices()


def kinds_of(f: Any, x: Any) -> list[type]:
    """The types of the values that a mapped function sees."""
    seen: list[type] = []
    minijax.pmap(lambda x: (seen.append(type(x)), f(x))[1], "i")(x)
    return seen


@pytest.mark.feature("EP-01")
@pytest.mark.parametrize("disabled", [True, False])
@pytest.mark.parametrize("eager", [True, False])
def test_both_settings_switch_it_on(disabled: bool, eager: bool) -> None:
    with minijax.disable_jit(disabled), config.eager_pmap(eager):
        (kind,) = kinds_of(lambda x: x, NUMBERS)
    assert (kind is MapTracer) == (disabled and eager)


@pytest.mark.feature("EP-01")
@pytest.mark.parametrize("options", [{"axis_size": 4}, {"donate_argnums": 0}])
def test_sizes_and_donation_leave_it_off(options: dict[str, Any]) -> None:
    seen = []
    f = minijax.pmap(lambda x: (seen.append(type(x)), x + 1)[1], **options)
    assert f(NUMBERS).tolist() == [1, 2, 3, 4]
    assert seen != [MapTracer]


@pytest.mark.feature("EP-02")
@pytest.mark.parametrize("options", [{"axis_size": 4}, {"donate_argnums": (0,)}])
def test_sizes_and_donation_are_refused(options: dict[str, Any]) -> None:
    half: PmapFunction = minijax.pmap(lambda x: x, **options).pmap_function
    with pytest.raises(NotImplementedError, match="cannot run operation by operation"):
        half.call_eagerly(NUMBERS)


@pytest.mark.feature("EP-03")
def test_values_show_all_slices() -> None:
    shown: list[str] = []
    minijax.pmap(lambda x: shown.append(str(x + 1)), "i")(NUMBERS)
    assert shown == ["Array([1., 2., 3., 4.], dtype=float32){i: 0}"]


@pytest.mark.feature("EP-03")
def test_constants_are_shared() -> None:
    trace = MapTrace(MapTrace, "i")  # type: ignore[arg-type]
    assert trace.split(2.0) == (2.0, {})
    assert trace.tracer(2.0, {}) == 2.0
    tracer = trace.tracer(ROWS[None], {"i": 1})
    assert (tracer.shape, tracer.dims) == ((1, 4), {"i": 1})


@pytest.mark.feature("EP-03")
def test_values_have_no_one_truth() -> None:
    with pytest.raises(minijax.errors.ConcretizationTypeError):
        minijax.pmap(lambda x: x if x > 0 else -x)(NUMBERS)


@pytest.mark.feature("EP-04")
def test_dimensions_are_counted_as_others_go() -> None:
    assert stepwise.schedule([0, 3, 4]) == [0, 2, 2]
    assert stepwise.schedule([2, 0, 1]) == [2, 0, 0]


@pytest.mark.feature("EP-04")
def test_operations_are_kept_by_parameters() -> None:
    f = minijax.pmap(lambda x: jnp.sin(x) * 2, "i")
    minijax.clear_caches()
    f(NUMBERS)
    count = len(stepwise._programs)
    assert count
    f(NUMBERS)
    assert len(stepwise._programs) == count


@pytest.mark.feature("EP-05")
@pytest.mark.parametrize("outer", [minijax.pmap, minijax.vmap])
@pytest.mark.parametrize("inner", [minijax.pmap, minijax.vmap])
def test_maps_nest(outer: Any, inner: Any) -> None:
    actual = nested(outer, inner)
    for x, y in zip(actual, nested(minijax.vmap, minijax.vmap), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.feature("EP-05")
def test_inner_maps_may_be_compiled() -> None:
    seen = []

    def inner(x: Any) -> Any:
        seen.append(type(x))
        return lax.psum(x, "j") + lax.psum(x, "i") + lax.axis_index("i")

    def outer(x: Any) -> Any:
        with minijax.disable_jit(False):
            return minijax.pmap(inner, "j")(x)

    x = ROWS[:2]
    found = minijax.pmap(outer, "i")(x)
    assert MapTracer not in seen
    expected = x.sum(1, keepdims=True) + x.sum(0) + np.arange(2)[:, None]
    assert found.tolist() == expected.tolist()


@pytest.mark.feature("EP-05", "CR-07")
def test_inner_axes_hide_outer_ones_of_the_same_name() -> None:
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    f = minijax.pmap(minijax.pmap(lambda x: lax.psum(x, "i"), "i"), "i")
    assert f(x).tolist() == [[6] * 4, [22] * 4]


@pytest.mark.feature("EP-06")
def test_functions_with_rules_of_their_own_run() -> None:
    @minijax.custom_jvp
    def double(x: Any) -> Any:
        return x * 2

    double.defjvps(lambda t, ans, x: 5 * t)

    @minijax.custom_vjp
    def triple(x: Any) -> Any:
        return x * 3

    triple.defvjp(lambda x: (x * 3, None), lambda _, ct: (7 * ct,))

    f = minijax.pmap(lambda x: (double(x), triple(x)))
    assert [y.tolist() for y in f(NUMBERS)] == [[0, 2, 4, 6], [0, 3, 6, 9]]
    for function, derivative in ((double, 5), (triple, 7)):
        assert minijax.pmap(minijax.grad(function))(NUMBERS).tolist() == [derivative] * 4


@pytest.mark.feature("EP-06", "AD-03")
def test_rules_of_users_reach_transformations_around_the_map() -> None:
    @minijax.custom_vjp
    def total(x: Any) -> Any:
        return lax.psum(x, "i")

    total.defvjp(lambda x: (lax.psum(x, "i"), x), lambda x, ct: (7 * lax.pmean(ct, "i") + x,))

    @minijax.custom_jvp
    def double(x: Any) -> Any:
        return 2 * x

    double.defjvps(lambda t, ans, x: 5 * t)

    @minijax.custom_batching.custom_vmap
    def plus_one(x: Any) -> Any:
        return x + 1

    plus_one.def_vmap(lambda size, is_mapped, x: (x + 100, True))

    mapped = minijax.pmap(lambda x: total(x) + double(x), "i")
    slope = minijax.grad(lambda x: mapped(x).sum())(NUMBERS)
    assert slope.tolist() == [7 + x + 5 for x in NUMBERS]
    batch = minijax.vmap(minijax.pmap(plus_one, "i"))(NUMBERS[None])
    assert batch.tolist() == [(NUMBERS + 100).tolist()]


@pytest.mark.feature("EP-07")
def test_axis_index_is_that_of_the_device() -> None:
    x = ROWS.reshape(2, 2, 4)

    def function(x: Any) -> Any:
        return lax.axis_index("j") * 10 + lax.axis_index("i") + 0 * x.sum()

    assert minijax.pmap(minijax.pmap(function, "j"), "i")(x).tolist() == [[0, 10], [1, 11]]


@pytest.mark.feature("EP-08")
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_results_have_the_axis_where_it_is_wanted(axis: int) -> None:
    x = np.arange(24, dtype=np.float32).reshape(3, 4, 2)
    y = minijax.pmap(lambda x: x + 1, in_axes=1, out_axes=axis)(x)
    assert y.tolist() == np.moveaxis(x + 1, 1, axis).tolist()


@pytest.mark.feature("EP-08")
def test_shared_results_are_repeated() -> None:
    f = minijax.pmap(lambda x: jnp.arange(2) + 1, out_axes=1)
    assert f(NUMBERS).tolist() == [[1] * 4, [2] * 4]
    f = minijax.pmap(lambda x, y: y + 1, in_axes=(0, None), out_axes=None)
    assert f(NUMBERS, 2.0) == 3


@pytest.mark.feature("EP-08")
def test_results_that_differ_need_an_axis() -> None:
    with pytest.raises(NotImplementedError, match="out_axes is None for a result that differs"):
        minijax.pmap(lambda x: x, out_axes=None)(NUMBERS)


@pytest.mark.feature("EP-08")
def test_axes_are_matched_next_to_others() -> None:
    value = np.zeros((2, 3, 4, 5))
    moved, dims = stepwise.matched((value, {"i": 1, "j": 2}), Axis("j", 4, "pmap"), 0)
    assert (moved.shape, dims) == ((4, 2, 3, 5), {"i": 2})
    moved, dims = stepwise.matched((value, {"i": 1}), Axis("j", 7, "pmap"), 3)
    assert (moved.shape, dims) == ((2, 3, 4, 5, 7), {"i": 1})


@pytest.mark.feature("EP-09")
@pytest.mark.parametrize("axis", [0, 1])
def test_results_live_where_compiled_ones_do(devices: list[Any], axis: int) -> None:
    f = minijax.pmap(lambda x: x * 2, out_axes=axis, devices=devices[:3:-1])
    with minijax.disable_jit(False):
        expected = f(ROWS).sharding
    assert f(ROWS).sharding == expected


@pytest.mark.feature("EP-10")
def test_jaxprs_of_compiled_functions_run() -> None:
    with minijax.disable_jit(False):
        closed = minijax.make_jaxpr(minijax.jit(lambda x: x * 2))(1.0)
    f = minijax.pmap(lambda x: minijax.eval_jaxpr(closed.jaxpr, closed.consts, x)[0])
    assert f(NUMBERS).tolist() == [0, 2, 4, 6]


def test_derivatives_pass_through() -> None:
    def loss(x: Any, y: Any) -> Any:
        f = minijax.pmap(lambda x, y: lax.psum(jnp.sin(x) * y, "i") * x, "i", in_axes=(0, None))
        return f(x, y).sum()

    dx, dy = minijax.grad(loss, (0, 1))(NUMBERS, 2.0)
    s, c = np.sin(NUMBERS), np.cos(NUMBERS)
    np.testing.assert_allclose(dx, 2 * s.sum() + 2 * c * NUMBERS.sum(), rtol=1e-5)
    np.testing.assert_allclose(dy, s.sum() * NUMBERS.sum(), rtol=1e-5)


def test_control_flow_of_slices_is_compiled() -> None:
    def count(x: Any) -> Any:
        return lax.while_loop(lambda n: n < x, lambda n: n + 1, np.float32(0))

    assert minijax.pmap(count)(NUMBERS).tolist() == [0, 1, 2, 3]


def test_errors_end_the_map() -> None:
    with pytest.raises(ZeroDivisionError):
        minijax.pmap(lambda x: 1 / 0, "i")(NUMBERS)
    with pytest.raises(NameError, match="unbound axis name 'i'"):
        lax.psum(jnp.ones(3), "i")
