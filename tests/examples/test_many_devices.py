"""The examples over many devices run on eight of the host, and say what is so."""

from __future__ import annotations

import importlib
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import minijax as jax
from minijax.explain import Collective

pytestmark = pytest.mark.turns(3)

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The module that the test names, where the host is eight devices."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    with jax.cpu_devices(8):
        yield importlib.import_module(request.param)


def runs(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("example", [name], indirect=True, ids=[name])


def kinds(collectives: Any) -> Counter[tuple[str, tuple[str, ...] | None]]:
    return Counter((each.kind, each.axes) for each in collectives)


@pytest.mark.slow
@runs("data_parallel")
def test_data_parallel_training_adds_up_gradients_once_in_a_step(example: ModuleType) -> None:
    result = example.main()

    network = jax.eval_shape(example.digits.init_network, jax.random.key(0))
    gradient = sum(4 * leaf.size for leaf in jax.tree.leaves(network))
    (only,) = result.collectives
    assert isinstance(only, Collective)
    assert (only.kind, only.axes) == ("all_reduce", ("data",))
    assert only.bytes == gradient + 4
    assert result.accuracy > 0.95


@pytest.mark.slow
@runs("data_parallel")
def test_data_parallel_training_prints_what_lies_where(
    example: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    example.main(epochs=1)

    text = capsys.readouterr().out
    assert "1.images   (64, 8, 8, 1)     data    f32[8,8,8,1]" in text
    for mark in ["CPU 7", "CPU 0,1,2,3,4,5,6,7", "all_reduce over data: 7 arrays"]:
        assert mark in text


@pytest.mark.slow
@runs("sharded_parameters")
def test_devices_hold_an_eighth_of_sharded_parameters(example: ModuleType) -> None:
    result = example.main(epochs=1)

    assert result.whole / 8 <= result.held < 1.01 * result.whole / 8


@pytest.mark.slow
@runs("sharded_parameters")
def test_sharded_training_has_the_losses_of_data_parallel_training(example: ModuleType) -> None:
    copies = importlib.import_module("data_parallel").main(epochs=1)

    split = example.main(epochs=1)

    np.testing.assert_allclose(split.losses, copies.losses, rtol=1e-5)


@pytest.mark.slow
@runs("tensor_parallel")
def test_tensor_parallel_training_follows_one_device(example: ModuleType) -> None:
    found = example.main(steps=5).bits

    charlm, rng = example.charlm, random.Random(0)
    model = charlm.init_model(jax.random.key(0))
    state = example.adam_init(model)
    expected = []
    for number in range(1, 6):
        rows = charlm.encode([charlm.sentence(rng) for _ in range(example.BATCH)])
        rate = np.float32(example.RATE * number / 30)
        value, model, state = charlm.train_step(model, state, rows, rate)
        expected.append(float(value))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.slow
@runs("tensor_parallel")
def test_tensor_parallel_layers_add_up_twice_each_way(example: ModuleType) -> None:
    result = example.main(steps=1)

    assert kinds(result.collectives) == {
        ("all_reduce", ("model",)): 4 * example.charlm.LAYERS,
        ("all_reduce", ("data",)): 1,
    }


@pytest.mark.turns(9)
@pytest.mark.slow
@runs("mesh_or_one_device")
def test_losses_do_not_depend_on_the_mesh(example: ModuleType) -> None:
    result = example.main()

    assert list(result.losses) == [(1, 1), (8, 1), (4, 2)]
    assert result.apart < 1e-5
