"""How cores are simulated: how many there are by default, and whether each is followed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from minijax.core import config


@dataclass(frozen=True, kw_only=True)
class InterpretParams:
    """How to simulate cores.

    Source:     mirrors jax.experimental.pallas.tpu.InterpretParams (0.10).

    Attributes:
        detect_races: whether `core_map` follows each core step by step before it runs, and refuses
            a program in which two write one place.
        num_cores_or_threads: how many cores a mesh has whose number is not given.

    Example:
        >>> from minijax.experimental.pallas import tpu as pltpu
        >>> pltpu.InterpretParams(num_cores_or_threads=2)
        InterpretParams(detect_races=False, num_cores_or_threads=2)
    """

    detect_races: bool = False
    num_cores_or_threads: int = 1


@contextmanager
def force_tpu_interpret_mode(params: InterpretParams | None = None) -> Iterator[None]:
    """Simulates the cores of programs in a `with` block in this way.

    Source: mirrors jax.experimental.pallas.tpu.force_tpu_interpret_mode (0.10).

    Args:
        params: how; by default as `InterpretParams()` says.

    Example:
        >>> from minijax.experimental.pallas import tpu as pltpu
        >>> with pltpu.force_tpu_interpret_mode(pltpu.InterpretParams(num_cores_or_threads=4)):
        ...     print(pltpu.create_tensorcore_mesh("core"))
        TensorCoreMesh('core': 4)
    """
    chosen = params or InterpretParams()
    with (
        config.num_simulated_cores(chosen.num_cores_or_threads),
        config.detect_core_races(chosen.detect_races),
    ):
        yield
