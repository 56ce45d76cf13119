"""Arrays with memory in common: what is gone raises an error, what is needed stays."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minijax as jax
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P

PROGRAM = Path(__file__).with_name("shared_memory.py")
ALL = (2 * np.arange(16.0)).tolist()


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Any]:
    """What became of each case, as far as the process got."""
    found = subprocess.run(
        [sys.executable, str(PROGRAM)], capture_output=True, text=True, check=False, timeout=120
    )
    return dict(map(json.loads, found.stdout.splitlines()))


@pytest.mark.slow
@pytest.mark.feature("AR-01")
@pytest.mark.parametrize(
    "name",
    [
        "whole_without_a_piece",
        "piece_of_a_deleted_whole",
        "deleted_under_its_own_name",
        "whole_whose_piece_is_donated",
        "whole_whose_part_is_deleted",
        "whole_whose_part_is_donated",
        "part_of_a_donated_whole",
    ],
)
def test_use_of_missing_memory_is_an_exception_not_an_abort(
    outcomes: dict[str, Any], name: str
) -> None:
    assert outcomes[name] == "DeletedArrayError"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "other_notation_of_a_deleted_array",
        "other_notation_of_a_donated_array",
        "array_whose_other_notation_is_donated",
        "array_whose_half_is_deleted_elsewhere",
        "array_whose_copy_on_one_device_is_deleted",
        "one_of_two_wholes",
        "whole_whose_part_has_another_name",
    ],
)
def test_array_keeps_memory_that_another_gives_away(outcomes: dict[str, Any], name: str) -> None:
    assert outcomes[name] == ALL


@pytest.mark.slow
def test_integers_of_keys_outlive_the_keys(outcomes: dict[str, Any]) -> None:
    keys = jax.random.split(jax.random.key(0), 8)
    expected = (jax.random.key_data(keys) * 2).tolist()
    assert outcomes["integers_of_deleted_keys"] == expected


def test_donation_of_an_array_alone_takes_its_memory() -> None:
    with jax.cpu_devices(4):
        mesh = Mesh(np.array(jax.devices()), ("x",))
        x = jax.device_put(np.ones(8, np.float32), NamedSharding(mesh, P("x")))
        pointers = _pointers(x)
        y = jax.jit(lambda x: x + 1, donate_argnums=0)(x)
        assert _pointers(y) == pointers


def _pointers(x: Any) -> list[int]:
    return [shard.data.unsafe_buffer_pointer() for shard in x.addressable_shards]
