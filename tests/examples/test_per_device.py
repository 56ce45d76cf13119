"""The examples written for each device of eight: what they give is what one device gives.

Each program compares its results with one device's itself, and counts its collectives; here stands
what the numbers must be besides.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import minijax as jax

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


@runs("ring_all_reduce")
def test_ring_sends_less_than_two_vectors(example: ModuleType) -> None:
    result = example.main()

    vector = result.sums[0].nbytes
    assert result.ring_bytes == 2 * vector * 7 // 8
    assert result.gather_bytes == 7 * vector


@runs("ring_all_reduce")
def test_ring_adds_up_what_psum_adds_up(example: ModuleType) -> None:
    add_up, (vectors,) = example.workload()

    rows = jax.P("ring")
    psum = jax.shard_map(lambda x: jax.lax.psum(x, "ring"), in_specs=rows, out_specs=jax.P())
    with jax.set_mesh(vectors.sharding.mesh):
        expected = np.asarray(psum(vectors))

    np.testing.assert_allclose(add_up(vectors), np.tile(expected, (8, 1)), atol=1e-4)


@pytest.mark.slow
@runs("ring_attention")
def test_ring_attention_and_its_gradient_are_those_of_one_device(example: ModuleType) -> None:
    result = example.main()

    assert len(result.ring) == 4
    for found, expected in zip(result.ring, result.alone, strict=True):
        assert found.shape == (example.LENGTH, example.HEADS, example.WIDTH)
        np.testing.assert_allclose(found, expected, atol=2e-5)


@pytest.mark.slow
@runs("ring_attention")
def test_ring_attention_does_not_look_ahead(example: ModuleType) -> None:
    run, (query, key, value) = example.workload()

    later = np.arange(example.LENGTH)[:, None, None] >= 300
    changed = jax.device_put(np.where(later, 9, value).astype(np.float32), value.sharding)

    before, after = (np.asarray(run(query, key, v)[0]) for v in (value, changed))
    np.testing.assert_array_equal(before[:300], after[:300])
    assert np.abs(before[300:] - after[300:]).min() > 0


@pytest.mark.slow
@runs("tensor_parallel_by_hand")
def test_tensor_parallel_training_by_hand_follows_one_device(example: ModuleType) -> None:
    result = example.main()

    np.testing.assert_allclose(result.losses, result.alone, rtol=1e-3)
    assert result.accuracy > 0.85


@pytest.mark.slow
@runs("fsdp_by_hand")
def test_sharded_training_by_hand_follows_one_device(example: ModuleType) -> None:
    result = example.main()

    np.testing.assert_allclose(result.losses, result.alone, rtol=1e-3)
    assert result.losses[-1] < 0.2
    assert result.held < 1.001 * result.whole / 8


@pytest.mark.slow
@runs("pipeline")
def test_pipeline_trains_as_one_device_does(example: ModuleType) -> None:
    result = example.main()

    np.testing.assert_allclose(result.losses, result.alone, rtol=1e-4)
    assert result.losses[-1] < 0.5 * result.losses[0]
    assert result.idle == pytest.approx(7 / 23)


@pytest.mark.slow
@runs("expert_mixture")
def test_experts_learn_as_on_one_device(example: ModuleType) -> None:
    result = example.main()

    np.testing.assert_allclose(result.losses, result.alone, rtol=2e-3)
    assert result.losses[-1] < 0.25 * result.losses[0]
    assert result.placed > 0.9


@runs("halo_exchange")
def test_life_on_a_torus_of_devices_is_life(example: ModuleType) -> None:
    result = example.main()

    board = example.first_board()
    for _ in range(example.GENERATIONS):
        shifts = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
        block = sum(np.roll(board, shift, axis=(0, 1)) for shift in shifts)
        board = ((block == 3) | ((block == 4) & (board == 1))).astype(np.int32)
    np.testing.assert_array_equal(result.board, board)
    assert result.exchanges == {1: example.GENERATIONS, 4: example.GENERATIONS // 4}


@runs("summa")
def test_summa_sends_panels_where_the_compiler_gathers_blocks(example: ModuleType) -> None:
    result = example.main()

    assert result.panel_bytes == 4 * example.PANEL * (64 + 64)
    assert result.gathered_bytes == 4 * (64 * 256 + 128 * 64)


@pytest.mark.slow
@runs("pmap_training")
def test_copies_of_a_network_stay_the_same_under_pmap(example: ModuleType) -> None:
    result = example.main()

    np.testing.assert_allclose(result.losses, result.alone, rtol=1e-3)
    assert result.losses[-1] < 0.5 * result.losses[0]
    assert result.apart == 0


@runs("transpose_fft")
def test_transform_over_devices_finds_the_tones(example: ModuleType) -> None:
    result = example.main()

    assert sorted(result.loudest) == sorted(example.TONES)
    np.testing.assert_allclose(result.spectrum, result.expected, atol=2e-2)


@runs("transpose_fft")
@pytest.mark.parametrize("length", [1, 2, 8, 64])
def test_transform_of_rows_is_that_of_numpy(example: ModuleType, length: int) -> None:
    x = np.random.default_rng(0).normal(size=(3, length, 2)).view(np.complex128)[..., 0]

    found = example.fft(jax.numpy.asarray(x, np.complex64))

    np.testing.assert_allclose(found, np.fft.fft(x), atol=1e-4)
