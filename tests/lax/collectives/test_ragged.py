"""Exchanges of slices of lengths of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minijax
from minijax import lax
from minijax.lax.collectives.exchanges import _outside
from tests.lax.collectives import stacked

RUNNERS = ["checked", "unchecked", "pmap"]


def exchange(*args: Any) -> Any:
    return lax.ragged_all_to_all(*args, axis_name="x")


def consistent(rng: np.random.Generator, devices: int, per_device: int, rows: int) -> list[Any]:
    """Operand, output and four arrays of numbers, stacked, of an exchange without overlaps."""
    count = devices * per_device
    sizes = rng.integers(0, 3, (devices, count)).astype(np.int32)
    starts = np.cumsum(sizes, 1) - sizes + rng.integers(0, 2)
    # received[r, s, i] is how long slice i from s to r is.
    received = sizes.reshape(devices, devices, per_device).transpose(1, 0, 2).reshape(devices, -1)
    places = np.cumsum(received, 1) - received
    targets = places.reshape(devices, devices, per_device).transpose(1, 0, 2).reshape(devices, -1)
    length = int(max((starts + sizes).max(), received.sum(1).max())) + rows
    operand = rng.integers(-9, 9, (devices, length, 2)).astype(np.float32)
    output = rng.integers(-9, 9, (devices, length + 1, 2)).astype(np.float32)
    wanted = [a.astype(np.int32) for a in (starts, sizes, targets, received)]
    return [operand, output, *wanted]


@pytest.mark.feature("CO-14", "CO-33")
@pytest.mark.parametrize("runner", RUNNERS)
def test_worked_case(runner: str) -> None:
    args = [
        np.array([[1, 2, 2], [3, 4, 0]], np.float32),
        np.zeros((2, 4), np.float32),
        *(
            np.array(a, np.int32)
            for a in (
                [[0, 1], [0, 1]],
                [[1, 2], [1, 1]],
                [[0, 0], [1, 2]],
                [[1, 1], [2, 1]],
            )
        ),
    ]
    found = stacked.RUNNERS[runner](exchange, {"x": 2})(*args)
    np.testing.assert_array_equal(found, [[1, 3, 0, 0], [2, 2, 4, 0]])


@pytest.mark.feature("CO-14")
@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize(("devices", "per_device"), [(2, 1), (4, 1), (4, 2), (2, 3)])
def test_the_oracle_agrees(runner: str, devices: int, per_device: int) -> None:
    args = consistent(np.random.default_rng(devices + per_device), devices, per_device, 1)
    found = stacked.RUNNERS[runner](exchange, {"x": devices})(*args)
    np.testing.assert_array_equal(found, stacked.ragged(*args))


@pytest.mark.feature("CO-14", "CO-24")
@pytest.mark.parametrize("runner", ["unchecked", "pmap"])
def test_groups_exchange_among_themselves(runner: str) -> None:
    parts = [
        consistent(np.random.default_rng(3), 2, 1, 1),
        consistent(np.random.default_rng(4), 2, 1, 1),
    ]
    rows = max(p[0].shape[1] for p in parts)
    for p in parts:
        p[0] = np.pad(p[0], ((0, 0), (0, rows - p[0].shape[1]), (0, 0)))
        p[1] = np.pad(p[1], ((0, 0), (0, rows + 1 - p[1].shape[1]), (0, 0)))
    groups = [[0, 2], [3, 1]]
    args = [np.zeros((4, *a.shape[1:]), a.dtype) for a in parts[0]]
    expected = np.zeros_like(args[1])
    for group, part in zip(groups, parts, strict=True):
        for whole, own in zip(args, part, strict=True):
            whole[group] = own
        expected[group] = stacked.ragged(*part)
    run = stacked.RUNNERS[runner](
        lambda *a: lax.ragged_all_to_all(*a, axis_name="x", axis_index_groups=groups), {"x": 4}
    )
    np.testing.assert_array_equal(run(*args), expected)


@pytest.mark.feature("CO-14")
def test_uniform_slices_are_a_tiled_exchange() -> None:
    def f(v: Any) -> Any:
        n = lax.axis_size("x")
        each = v.shape[0] // n
        ones = np.full(n, each, np.int32)
        at = np.arange(n, dtype=np.int32) * each
        mine = lax.axis_index("x") * each + np.zeros(n, np.int32)
        return lax.ragged_all_to_all(v, 0 * v, at, ones, mine, ones, axis_name="x")

    x = stacked.numbers({"x": 4}, (8, 2))
    found = stacked.by_shard_map(f, {"x": 4})(x)
    np.testing.assert_array_equal(found, stacked.exchange(x, 0, 0, True))


@pytest.mark.feature("CO-14", "VT-09")
def test_what_is_the_same_everywhere_is_cast_first() -> None:
    def f(v: Any) -> Any:
        numbers = np.ones(4, np.int32)
        return lax.ragged_all_to_all(v, np.zeros((4,), np.float32), *[numbers] * 4, axis_name="x")

    found = stacked.by_shard_map(f, {"x": 4})(stacked.numbers({"x": 4}, (4,)))
    assert found.shape == (4, 4)


@pytest.mark.feature("CO-14", "CO-28")
@pytest.mark.parametrize("runner", RUNNERS)
def test_the_exchange_and_its_transpose_are_adjoint(runner: str) -> None:
    rng = np.random.default_rng(0)
    operand, output, *numbers = consistent(rng, 4, 2, 1)
    ct = rng.integers(-9, 9, output.shape).astype(np.float32)

    def back(x: Any, y: Any, c: Any, *n: Any) -> Any:
        return minijax.linear_transpose(lambda a, b: exchange(a, b, *n), x, y)(c)

    sizes = {"x": 4}
    there = stacked.RUNNERS[runner](exchange, sizes)(operand, output, *numbers)
    x_ct, y_ct = stacked.RUNNERS[runner](back, sizes)(operand, output, ct, *numbers)
    assert np.vdot(there, ct) == np.vdot(operand, x_ct) + np.vdot(output, y_ct)


@pytest.mark.feature("CO-14", "CO-28")
@pytest.mark.parametrize("wrt", [(0,), (1,), (0, 1)])
def test_tangents_are_exchanged_likewise(wrt: tuple[int, ...]) -> None:
    args = consistent(np.random.default_rng(1), 4, 1, 1)

    def f(*a: Any) -> Any:
        def moved(*chosen: Any) -> Any:
            full = list(a)
            for i, x in zip(wrt, chosen, strict=True):
                full[i] = x
            return exchange(*full)

        primals = tuple(a[i] for i in wrt)
        return minijax.jvp(moved, primals, primals)[1]

    moving = [x if i in wrt or i > 1 else np.zeros_like(x) for i, x in enumerate(args)]
    found = stacked.by_shard_map(f, {"x": 4})(*args)
    np.testing.assert_array_equal(found, stacked.ragged(*moving))


@pytest.mark.feature("CO-14", "CO-29")
@pytest.mark.parametrize("mapped", [(0,), (1,), (0, 1), (2,), (0, 3, 5), tuple(range(6))])
def test_batches_are_exchanged_example_by_example(mapped: tuple[int, ...]) -> None:
    one = consistent(np.random.default_rng(5), 4, 2, 2)
    other = consistent(np.random.default_rng(5), 4, 2, 2)
    other[0], other[1] = other[0] + 1, other[1] - 1
    pairs = [
        np.stack([a, b], 1) if i in mapped else a
        for i, (a, b) in enumerate(zip(one, other, strict=True))
    ]
    dims = [0 if i in mapped else None for i in range(6)]
    run = stacked.by_shard_map(minijax.vmap(exchange, in_axes=dims), {"x": 4})
    expected = [
        stacked.ragged(*[p[:, e] if i in mapped else p for i, p in enumerate(pairs)])
        for e in range(2)
    ]
    np.testing.assert_array_equal(run(*pairs), np.stack(expected, 1))


@pytest.mark.feature("CO-14")
@pytest.mark.parametrize("shape", [(0, 2), (3, 0)])
def test_empty_arrays_are_exchanged(shape: tuple[int, ...]) -> None:
    zeros = np.zeros((2, 2), np.int32)
    x = np.zeros((2, *shape), np.float32)
    found = stacked.by_shard_map(exchange, {"x": 2})(x, x, zeros, zeros, zeros, zeros)
    assert found.shape == x.shape


@pytest.mark.feature("CO-14")
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=5),
)
@settings(max_examples=40)
def test_positions_outside_of_intervals(intervals: list[tuple[int, int]]) -> None:
    length = 8
    expected = [not any(a <= i < a + n for a, n in intervals) for i in range(length)]
    starts, sizes = (np.array(column, np.int32) for column in zip(*intervals, strict=True))
    np.testing.assert_array_equal(_outside(starts, sizes, length), expected)


@pytest.mark.feature("CO-14")
def test_numbers_may_be_of_any_integer_dtype() -> None:
    args = consistent(np.random.default_rng(2), 2, 1, 1)
    args[2:] = [a.astype(d) for a, d in zip(args[2:], ("u1", "i2", "u4", "i4"), strict=True)]
    found = stacked.by_shard_map(exchange, {"x": 2})(*args)
    np.testing.assert_array_equal(found, stacked.ragged(*args))
