"""Meshes of cores: the parts of one device that run a program side by side.

There are none on a host, so they are simulated; `transforms/core_map.py` runs programs on them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import config
from minijax.core.errors import error


class TensorCore(NamedTuple):
    """One core of a device, by its number."""

    id: int


class TensorCoreMesh:
    """The cores of one device, along a named axis.  Made by `create_tensorcore_mesh`.

    Attributes:
        devices: the cores, an array of one dimension.
        axis_names: the name of that dimension.
    """

    __slots__ = ("axis_names", "devices")

    def __init__(self, devices: Any, axis_names: Sequence[str]) -> None:
        # NumPy would take the cores, which are tuples, for rows of numbers.
        cores = np.empty(len(devices), object)
        cores[:] = list(devices)
        self.devices = cores
        self.axis_names = tuple(axis_names)

    @property
    def shape(self) -> OrderedDict[str, int]:
        """The number of cores, by the name of the axis."""
        return OrderedDict(zip(self.axis_names, self.devices.shape, strict=True))

    def _key(self) -> tuple[Any, ...]:
        return (tuple(self.devices), self.axis_names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorCoreMesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name!r}: {size}" for name, size in self.shape.items())
        return f"TensorCoreMesh({sizes})"


def create_tensorcore_mesh(
    axis_name: str, devices: Sequence[Any] | None = None, num_cores: int | None = None
) -> TensorCoreMesh:
    """A mesh of the cores of one device, which are simulated.

    Source: mirrors jax.experimental.pallas.tpu.create_tensorcore_mesh (0.10).

    Args:
        axis_name: what the cores' axis is called.
        devices: devices whose cores to take; all have as many as `num_simulated_cores` says.
        num_cores: how many cores; by default the setting `num_simulated_cores`, which is 1 until
            it is set.

    Raises:
        ValueError: both `devices` and `num_cores` are given, or there would be no core.

    Example:
        >>> from minijax.experimental.pallas import tpu as pltpu
        >>> pltpu.create_tensorcore_mesh("core", num_cores=2)
        TensorCoreMesh('core': 2)
    """
    if devices is not None and num_cores is not None:
        error(
            ValueError,
            "create_tensorcore_mesh",
            "devices and num_cores cannot both be given.",
            got={"devices": devices, "num_cores": num_cores},
            fix="leave one of them away",
        )
    count = config.num_simulated_cores.value if num_cores is None else num_cores
    if count < 1:
        error(ValueError, "create_tensorcore_mesh", "a mesh has at least one core.", got=str(count))
    return TensorCoreMesh([TensorCore(i) for i in range(count)], [axis_name])
