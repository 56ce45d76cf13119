"""What collectives compute, against the oracle: by shard_map, vmap, pmap, and vmap inside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest

from minijax import lax
from tests.lax.collectives import stacked

ONE = {"x": 4}
TWO = {"x": 4, "y": 2}


class Case(NamedTuple):
    """A collective: on one device's value, and on stacked ones."""

    feature: pytest.MarkDecorator
    name: str
    call: Callable[[Any, Any], Any]
    oracle: Callable[[Any], Any]
    shape: tuple[int, ...] = (8, 3)
    # In which order the oracle takes the names of several axes.
    in_mesh_order: bool = False


def _case(
    feature: pytest.MarkDecorator, name: str, call: Any, oracle: Any, *shape: int, **kwargs: Any
) -> Case:
    return Case(feature, name, call, oracle, shape or (8, 3), **kwargs)


ROTATION = [(0, 1), (1, 2), (2, 3), (3, 0)]
CASES = [
    _case(pytest.mark.feature("CO-01"), "psum", lax.psum, stacked.psum),
    _case(
        pytest.mark.feature("CO-02"),
        "pmean",
        lax.pmean,
        lambda y: stacked.psum(y) / np.float32(len(y)),
    ),
    _case(pytest.mark.feature("CO-03"), "pmax", lax.pmax, stacked.pmax),
    _case(pytest.mark.feature("CO-03"), "pmin", lax.pmin, stacked.pmin),
    _case(
        pytest.mark.feature("CO-15"),
        "all_gather",
        lax.all_gather,
        lambda y: stacked.gather(y, 0, False),
    ),
    _case(
        pytest.mark.feature("CO-15"),
        "all_gather behind",
        lambda v, a: lax.all_gather(v, a, axis=-1),
        lambda y: stacked.gather(y, y.ndim - 1, False),
    ),
    _case(
        pytest.mark.feature("CO-15"),
        "all_gather tiled",
        lambda v, a: lax.all_gather(v, a, axis=1, tiled=True),
        lambda y: stacked.gather(y, 1, True),
    ),
    _case(
        pytest.mark.feature("CO-16"),
        "all_gather_invariant",
        lambda v, a: lax.all_gather_invariant(v, a, axis=1),
        lambda y: stacked.gather(y, 1, False),
    ),
    _case(
        pytest.mark.feature("CO-18"),
        "psum_scatter tiled",
        lambda v, a: lax.psum_scatter(v, a, scatter_dimension=-2, tiled=True),
        lambda y: stacked.scatter(y, 0, True),
    ),
    _case(
        pytest.mark.feature("CO-18"),
        "psum_scatter",
        lambda v, a: lax.psum_scatter(v[:, : lax.axis_size(a)], a, scatter_dimension=1),
        lambda y: stacked.scatter(y[:, :, : len(y)], 1, False),
        2,
        8,
    ),
    _case(
        pytest.mark.feature("CO-13"),
        "all_to_all tiled",
        lambda v, a: lax.all_to_all(v, a, 0, 1, tiled=True),
        lambda y: stacked.exchange(y, 0, 1, True),
    ),
    _case(
        pytest.mark.feature("CO-13"),
        "all_to_all tiled in place",
        lambda v, a: lax.all_to_all(v, a, -2, 0, tiled=True),
        lambda y: stacked.exchange(y, 0, 0, True),
    ),
    _case(
        pytest.mark.feature("CO-13"),
        "all_to_all",
        lambda v, a: lax.all_to_all(v[: lax.axis_size(a)], a, 0, 1),
        lambda y: stacked.exchange(y[:, : len(y)], 0, 1, False),
    ),
    _case(
        pytest.mark.feature("CO-13"),
        "all_to_all backwards",
        lambda v, a: lax.all_to_all(v[:, : lax.axis_size(a)], a, 1, 0),
        lambda y: stacked.exchange(y[:, :, : len(y)], 1, 0, False),
        3,
        8,
    ),
    _case(
        pytest.mark.feature("CO-12"),
        "pswapaxes",
        lambda v, a: lax.pswapaxes(v[: lax.axis_size(a)], a, 0),
        lambda y: stacked.exchange(y[:, : len(y)], 0, 0, False),
    ),
    _case(
        pytest.mark.feature("CO-08"),
        "ppermute",
        lambda v, a: lax.ppermute(v, a, ROTATION),
        lambda y: stacked.permute(y, ROTATION),
        in_mesh_order=True,
    ),
    _case(
        pytest.mark.feature("CO-08"),
        "ppermute in part",
        lambda v, a: lax.ppermute(v, a, [(0, -1), (1, 0)]),
        lambda y: stacked.permute(y, [(0, len(y) - 1), (1, 0)]),
        in_mesh_order=True,
    ),
    _case(
        pytest.mark.feature("CO-09"),
        "pshuffle",
        lambda v, a: lax.pshuffle(v, a, [2, 0, 3, 1]),
        lambda y: stacked.permute(y, [(2, 0), (0, 1), (3, 2), (1, 3)]),
        in_mesh_order=True,
    ),
    _case(
        pytest.mark.feature("CO-07"),
        "pbroadcast",
        lambda v, a: lax.pbroadcast(v, a, 2),
        lambda y: stacked.broadcast(y, 2),
    ),
]
by_case = pytest.mark.parametrize(
    "case",
    [pytest.param(c, id=c.name, marks=c.feature) for c in CASES],
)


def _check(case: Case, sizes: Mapping[Any, int], names: tuple[Any, ...], runner: str) -> None:
    x = stacked.numbers(sizes, case.shape)
    run = stacked.RUNNERS[runner](lambda v: case.call(v, names), sizes)
    ordered = tuple(n for n in sizes if n in names) if case.in_mesh_order else names
    np.testing.assert_allclose(run(x), stacked.on_axes(case.oracle, x, sizes, ordered), rtol=1e-6)


@by_case
@pytest.mark.parametrize("runner", ["checked", "unchecked", "vmap", "pmap"])
def test_along_one_axis_the_oracle_agrees(case: Case, runner: str) -> None:
    _check(case, ONE, ("x",), runner)


@by_case
@pytest.mark.parametrize("names", [("x",), ("x", "y"), ("y", "x")], ids="-".join)
@pytest.mark.parametrize("runner", ["checked", "vmap", "vmap inside", "vmap inside unchecked"])
def test_along_several_axes_the_oracle_agrees(
    case: Case, runner: str, names: tuple[Any, ...]
) -> None:
    _check(case, TWO, names, runner)


GROUPED = [
    ("psum", lax.psum, stacked.psum),
    ("pmax", lax.pmax, stacked.pmax),
    ("pmin", lax.pmin, stacked.pmin),
    ("all_gather", lax.all_gather, lambda y, g: stacked.gather(y, 0, False, g)),
    (
        "psum_scatter",
        lambda v, a, **k: lax.psum_scatter(v, a, tiled=True, **k),
        lambda y, g: stacked.scatter(y, 0, True, g),
    ),
    (
        "all_to_all",
        lambda v, a, **k: lax.all_to_all(v, a, 0, 1, tiled=True, **k),
        lambda y, g: stacked.exchange(y, 0, 1, True, g),
    ),
]


@pytest.mark.feature("CO-24")
@pytest.mark.parametrize(("call", "oracle"), [c[1:] for c in GROUPED], ids=[c[0] for c in GROUPED])
@pytest.mark.parametrize("groups", [[[0, 1], [2, 3]], [[0, 2], [3, 1]], [[1], [3], [0], [2]]])
@pytest.mark.parametrize("runner", ["unchecked", "pmap"])
def test_groups_communicate_each_for_themselves(
    call: Any, oracle: Any, groups: Any, runner: str
) -> None:
    x = stacked.numbers(ONE, (8, 3))
    run = stacked.RUNNERS[runner](lambda v: call(v, "x", axis_index_groups=groups), ONE)
    np.testing.assert_array_equal(run(x), oracle(x, groups))


@pytest.mark.feature("CO-24")
def test_groups_of_reductions_may_differ_in_size() -> None:
    x = stacked.numbers(ONE, (3,))
    groups = [[0, 1, 3], [2]]
    run = stacked.unchecked(lambda v: lax.psum(v, "x", axis_index_groups=groups), ONE)
    np.testing.assert_array_equal(run(x), stacked.psum(x, groups))


@pytest.mark.feature("CO-03", "CO-24")
def test_maxima_of_groups_stay_varying() -> None:
    x = stacked.numbers(ONE, (3,))
    groups = [[0, 1], [2, 3]]
    run = stacked.by_shard_map(lambda v: lax.pmax(v, "x", axis_index_groups=groups), ONE)
    np.testing.assert_array_equal(run(x), stacked.pmax(x, groups))


@pytest.mark.feature("CO-05", "CO-06")
@pytest.mark.parametrize("runner", ["checked", "unchecked", "vmap", "pmap"])
def test_positions_of_extremes_are_the_lowest(runner: str) -> None:
    x = np.array([[3, 1, 7, 0], [5, 1, 7, 0], [5, 0, 2, 0], [4, 9, 2, 0]], np.float32)
    run = stacked.RUNNERS[runner](lambda v: (lax.pargmax(v, "x"), lax.pargmin(v, "x")), ONE)
    greatest, least = run(x)
    np.testing.assert_array_equal(greatest, [x.argmax(0)] * 4)
    np.testing.assert_array_equal(least, [x.argmin(0)] * 4)


@pytest.mark.feature("CO-05")
def test_no_position_holds_a_nan() -> None:
    x = np.array([1, np.nan, 2, 3], np.float32)
    found = stacked.by_vmap(lambda v: lax.pargmax(v, "x"), ONE)(x)
    np.testing.assert_array_equal(found, [np.iinfo(np.int32).max] * 4)


@pytest.mark.feature("CO-21")
@pytest.mark.parametrize("names", [("x",), ("y",), ("x", "y"), ("y", "x")], ids="-".join)
@pytest.mark.parametrize("runner", ["checked", "unchecked", "vmap", "vmap inside"])
def test_axis_index_counts_the_first_name_as_most_significant(
    runner: str, names: tuple[Any, ...]
) -> None:
    x = stacked.numbers(TWO, (), np.int32)
    found = stacked.RUNNERS[runner](lambda v: lax.axis_index(names) + 0 * v, TWO)(x)
    np.testing.assert_array_equal(found, stacked.axis_index(TWO, names))


@pytest.mark.feature("CO-22")
def test_axis_size_is_a_python_int() -> None:
    found = []

    def f(v: Any) -> Any:
        found.extend([lax.axis_size("x"), lax.axis_size(("x", "y")), lax.axis_size(())])
        return v

    stacked.by_vmap(f, TWO)(stacked.numbers(TWO, ()))
    assert found == [4, 8, 1]
    assert all(type(n) is int for n in found)


@pytest.mark.feature("CO-33")
@pytest.mark.parametrize("runner", ["checked", "unchecked", "vmap", "pmap"])
class TestWorkedFigures:
    """The figures of the reference's documents, by each way to map."""

    rows = np.arange(16, dtype=np.float32).reshape(4, 4)
    four = np.arange(4, dtype=np.float32)

    def run(self, runner: str, f: Any, x: Any) -> Any:
        return stacked.RUNNERS[runner](f, ONE)(x)

    def test_shares_of_a_sum(self, runner: str) -> None:
        found = self.run(runner, lambda v: v / lax.psum(v, "x"), self.four)
        np.testing.assert_allclose(found, [0, 1 / 6, 1 / 3, 1 / 2], rtol=1e-6)

    def test_sum_of_rows(self, runner: str) -> None:
        found = self.run(runner, lambda v: lax.psum(v, "x"), self.rows)
        np.testing.assert_array_equal(found, [[24, 28, 32, 36]] * 4)

    def test_shares_of_a_mean(self, runner: str) -> None:
        found = self.run(runner, lambda v: v / lax.pmean(v, "x"), self.four)
        np.testing.assert_allclose(found, [0, 2 / 3, 4 / 3, 2], rtol=1e-6)

    def test_gather(self, runner: str) -> None:
        found = self.run(runner, lambda v: lax.all_gather(v, "x"), self.four)
        np.testing.assert_array_equal(found, [[0, 1, 2, 3]] * 4)

    def test_scatter(self, runner: str) -> None:
        found = self.run(runner, lambda v: lax.psum_scatter(v, "x"), self.rows)
        np.testing.assert_array_equal(found, [24, 28, 32, 36])

    def test_tiled_scatter(self, runner: str) -> None:
        found = self.run(runner, lambda v: lax.psum_scatter(v, "x", tiled=True), self.rows)
        np.testing.assert_array_equal(found, [[24], [28], [32], [36]])


@pytest.mark.feature("CO-33")
@pytest.mark.parametrize("runner", ["unchecked", "pmap"])
class TestWorkedFiguresOfGroups:
    """The figures for groups, which neither vmap nor checked types know."""

    rows = np.arange(16, dtype=np.float32).reshape(4, 4)

    def run(self, runner: str, f: Any, x: Any) -> Any:
        return stacked.RUNNERS[runner](f, ONE)(x)

    def test_sums(self, runner: str) -> None:
        groups = [[0, 1], [2, 3]]
        found = self.run(runner, lambda v: lax.psum(v, "x", axis_index_groups=groups), self.rows)
        expected = [[4, 6, 8, 10]] * 2 + [[20, 22, 24, 26]] * 2
        np.testing.assert_array_equal(found, expected)

    def test_gather(self, runner: str) -> None:
        groups = [[0, 2], [3, 1]]
        found = self.run(
            runner, lambda v: lax.all_gather(v, "x", axis_index_groups=groups), self.rows
        )
        even, odd = self.rows[[0, 2]], self.rows[[3, 1]]
        np.testing.assert_array_equal(found, [even, odd, even, odd])

    def test_tiled_scatter(self, runner: str) -> None:
        groups = [[0, 2], [3, 1]]
        found = self.run(
            runner,
            lambda v: lax.psum_scatter(v, "x", axis_index_groups=groups, tiled=True),
            self.rows,
        )
        np.testing.assert_array_equal(found, [[8, 10], [20, 22], [12, 14], [16, 18]])


@pytest.mark.feature("CO-33", "CO-21")
def test_worked_indices_of_two_axes() -> None:
    def f(v: Any) -> Any:
        return lax.axis_index(("i", "j")) + v, lax.axis_index(("j", "i")) + v

    sizes = {"i": 4, "j": 2}
    first, second = stacked.by_shard_map(f, sizes)(np.zeros((4, 2), np.int32))
    np.testing.assert_array_equal(first, [[0, 1], [2, 3], [4, 5], [6, 7]])
    np.testing.assert_array_equal(second, [[0, 4], [1, 5], [2, 6], [3, 7]])


@pytest.mark.feature("CO-13")
@pytest.mark.parametrize(
    ("split", "concat", "tiled", "expected"),
    [(0, 3, False, (8, 8, 3, 8)), (1, 0, True, (64, 1, 8, 3))],
)
def test_worked_shapes_of_exchanges(
    split: int, concat: int, tiled: bool, expected: tuple[int, ...]
) -> None:
    sizes = {"x": 8}
    run = stacked.by_shard_map(lambda v: lax.all_to_all(v, "x", split, concat, tiled=tiled), sizes)
    assert run(np.zeros((8, 8, 8, 8, 3), np.float32)).shape == (8, *expected)


@pytest.mark.feature("CO-01", "CO-15")
def test_trees_are_mapped_leaf_by_leaf() -> None:
    x = {"a": stacked.numbers(ONE, (2,)), "b": [stacked.numbers(ONE, ())]}
    found = stacked.by_vmap(lambda v: lax.psum(v, "x"), ONE)(x)
    np.testing.assert_array_equal(found["a"], stacked.psum(x["a"]))
    np.testing.assert_array_equal(found["b"][0], stacked.psum(x["b"][0]))


@pytest.mark.feature("CO-15", "CO-18", "CO-13")
@pytest.mark.parametrize("runner", ["checked", "unchecked", "vmap", "pmap"])
def test_arrays_without_elements_communicate_too(runner: str) -> None:
    def f(v: Any) -> Any:
        return {
            "psum": lax.psum(v, "x"),
            "pmax": lax.pmax(v, "x"),
            "gather": lax.all_gather(v, "x", tiled=True),
            "started": v if runner == "vmap" else lax.all_gather_start(v, "x", tiled=True).done(),
            "stack": lax.all_gather(v, "x"),
            "scatter": lax.psum_scatter(v, "x", scatter_dimension=1),
            "tiled scatter": lax.psum_scatter(v, "x", tiled=True),
            "exchange": lax.all_to_all(v, "x", 1, 0, tiled=True),
            "permute": lax.ppermute(v, "x", ROTATION),
            "broadcast": lax.pbroadcast(v, "x", 1),
        }

    found = stacked.RUNNERS[runner](f, ONE)(np.zeros((4, 0, 4), np.float32))
    assert {name: x.shape[1:] for name, x in found.items()} == {
        "psum": (0, 4),
        "pmax": (0, 4),
        "gather": (0, 4),
        "started": (0, 4),
        "stack": (4, 0, 4),
        "scatter": (0,),
        "tiled scatter": (0, 4),
        "exchange": (0, 1),
        "permute": (0, 4),
        "broadcast": (0, 4),
    }


@pytest.mark.feature("CO-08")
def test_over_no_axes_a_permutation_may_still_send_nothing() -> None:
    def f(v: Any) -> Any:
        return lax.ppermute(v, (), [(0, 0)]), lax.ppermute(v, (), [])

    own, nothing = stacked.by_shard_map(f, ONE)(np.ones((4, 2), np.float32))
    assert own.all()
    assert not nothing.any()
