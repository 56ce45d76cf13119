"""What a module does that `launch.run` has started: it takes part, and reports."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import minijax as jax


def take_part(facts: Callable[[], dict[str, Any]], devices: int = 2) -> None:
    """Joins the other processes with so many devices, and writes down the facts."""
    jax.config.update("num_cpu_devices", devices)
    jax.distributed.initialize(initialization_timeout=30, heartbeat_timeout_seconds=20)
    found = facts()
    Path(sys.argv[1]).write_text(json.dumps(found), encoding="utf-8")


def pieces(x: jax.Array) -> list[Any]:
    """What this process holds of an array, by device."""
    return [shard.data.tolist() for shard in x.addressable_shards]


def refusal(function: Callable[[], Any]) -> str:
    """The class and the text of the error that a call raises."""
    try:
        function()
    except (Exception, KeyboardInterrupt) as error:
        return f"{type(error).__name__}: {error}"
    return "not refused"
