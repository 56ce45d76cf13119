"""Python functions that programs on several devices call: once, on the first device."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import minijax
from minijax import NamedSharding, P
from minijax.core import config
from minijax.experimental import io_callback
from minijax.sharding.mesh import Mesh


@pytest.fixture(params=[True, False], ids=["shardy", "gspmd"])
def x(request: pytest.FixtureRequest) -> Iterator[Any]:
    """An array split over eight devices, under either partitioner."""
    with minijax.cpu_devices(8), config.use_shardy_partitioner(request.param):
        mesh = Mesh(np.array(minijax.devices()).reshape(4, 2), ("x", "y"))
        values = np.arange(32, dtype=np.float32).reshape(8, 4)
        yield minijax.device_put(values, NamedSharding(mesh, P("x", "y")))


class Doubling:
    """Doubles, and remembers what it was given."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def __call__(self, value: Any) -> Any:
        self.seen.append(np.asarray(value))
        return 2 * np.asarray(value)


@pytest.mark.parametrize("call", [minijax.pure_callback, io_callback])
def test_callback_gets_the_whole_array_once(x: Any, call: Callable[..., Any]) -> None:
    double = Doubling()
    minijax.jit(lambda x: call(double, x, x))(x)
    (seen,) = double.seen
    np.testing.assert_array_equal(seen, np.asarray(x))


def test_results_of_a_callback_reach_every_device(x: Any) -> None:
    both = minijax.jit(lambda x: minijax.pure_callback(lambda a: (a, -np.asarray(a)), (x, x), x))(x)
    for out, expected in zip(both, (np.asarray(x), -np.asarray(x)), strict=True):
        for shard in out.addressable_shards:
            np.testing.assert_array_equal(np.asarray(shard.data), expected[shard.index])


def test_result_of_a_callback_is_split_as_the_user_says(x: Any) -> None:
    double = minijax.jit(
        lambda x: minijax.pure_callback(Doubling(), x, x), out_shardings=x.sharding
    )
    assert double(x).sharding == x.sharding
    np.testing.assert_array_equal(double(x), 2 * np.asarray(x))


def test_callback_in_a_scan_is_called_once_a_step(x: Any) -> None:
    double = Doubling()

    def step(total: Any, row: Any) -> Any:
        return total + minijax.pure_callback(double, row, row), None

    total = minijax.jit(lambda x: minijax.lax.scan(step, 0.0 * x[0], x)[0])(x)
    np.testing.assert_array_equal(total, 2 * np.asarray(x).sum(axis=0))
    assert len(double.seen) == 8


def test_debug_print_prints_once(x: Any, capfd: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        minijax.debug.print("total {}", x.sum())
        return x + 1.0

    minijax.jit(f)(x)
    minijax.effects_barrier()
    assert capfd.readouterr().out == "total 496.0\n"


def test_failing_callback_raises_its_own_error_where_devices_wait_for_it(x: Any) -> None:
    def fail(_: Any) -> Any:
        raise KeyError("lost")

    summed = minijax.jit(lambda x: (minijax.pure_callback(fail, x, x) + x).sum())
    with pytest.raises(KeyError, match="lost"):
        summed(x)
    assert minijax.jit(lambda x: x.sum())(x) == 496


def test_failing_effect_raises_its_own_error(x: Any) -> None:
    def fail(_: Any) -> None:
        raise KeyError("lost")

    def f(x: Any) -> Any:
        minijax.debug.callback(fail, x)
        return x + 1.0

    with pytest.raises(KeyError, match="lost"):
        minijax.jit(f)(x)


def test_ordered_effect_is_refused(x: Any) -> None:
    def f(x: Any) -> Any:
        minijax.debug.print("{}", x, ordered=True)
        return x

    with pytest.raises(ValueError, match=r"ordered effects need one device.*\n.*on 8 devices"):
        minijax.jit(f)(x)
