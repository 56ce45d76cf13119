"""The raw floor: a StableHLO program run through jaxlib alone, with nothing of Python around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from jaxlib import _jax, xla_client
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, sdy
from jaxlib.mlir.dialects import stablehlo as hlo

_DTYPES = {"i1": "bool", "bf16": ml_dtypes.bfloat16}


class Type:
    """What jaxlib reads of the type of an array."""

    __slots__ = ("dtype", "shape", "weak_type")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape, self.dtype, self.weak_type = shape, dtype, False


def executor(stablehlo: str, num_devices: int = 1) -> Callable[[], Any]:
    """A function that runs the program on ones, and returns its results."""
    client = xla_client.make_cpu_client(num_devices=num_devices)
    devices = client.devices()
    list_of_devices = xla_client.DeviceList(tuple(devices))
    with _context():
        module = ir.Module.parse(stablehlo)
        main = next(op for op in module.body if op.operation.attributes["sym_name"].value == "main")
        inputs, results = _types(main.type.inputs), _types(main.type.results)
        executable = client.compile_and_load(module, list_of_devices, _options(num_devices))

    ins = _tilings(executable.get_parameter_shardings(), len(inputs))
    outs = _tilings(executable.get_output_shardings(), len(results))
    buffers = [
        _put(each, tiling, list_of_devices) for each, tiling in zip(inputs, ins, strict=True)
    ]
    handlers = [
        _jax.array_result_handler(each, _jax.GSPMDSharding(list_of_devices, tiling), True, True)
        for each, tiling in zip(results, outs, strict=True)
    ]
    return lambda: executable.execute_sharded(buffers).consume_with_handlers(handlers)


def _tilings(protos: Any, count: int) -> list[Any]:
    """How `count` values are cut; XLA says it once where all are alike, never on one device."""
    tilings = list(map(xla_client.HloSharding.from_proto, protos or ()))
    tilings = tilings or [xla_client.HloSharding.replicate()]
    return tilings if len(tilings) == count else tilings * count


def _options(num_devices: int) -> Any:
    options = xla_client.CompileOptions()
    build = options.executable_build_options
    options.num_partitions = build.num_partitions = num_devices
    build.device_assignment = xla_client.DeviceAssignment.create(np.arange(num_devices)[None])
    build.use_spmd_partitioning = build.use_shardy_partitioner = num_devices > 1
    return options


def _context() -> ir.Context:
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in (sdy, hlo, chlo):
        dialect.register_dialect(context)
    return context


def _types(mlir_types: list[Any]) -> list[Type]:
    return [Type(tuple(each.shape), _dtype(str(each.element_type))) for each in mlir_types]


def _dtype(name: str) -> np.dtype[Any]:
    if name in _DTYPES:
        return np.dtype(_DTYPES[name])
    kind = {"ui": "uint", "i": "int", "f": "float"}
    prefix = name.rstrip("0123456789")
    return np.dtype(kind[prefix] + name.removeprefix(prefix))


def _put(each: Type, tiling: Any, list_of_devices: Any) -> Any:
    cuts = () if tiling.is_replicated() else tiling.tile_assignment_dimensions()
    shape = [size // cut for size, cut in zip(each.shape, cuts, strict=False)] or each.shape
    return _jax.batched_device_put(
        each,
        _jax.GSPMDSharding(list_of_devices, tiling),
        [np.ones(shape, each.dtype) for _ in list_of_devices],
        list(list_of_devices),
        committed=True,
        force_copy=True,
        enable_x64=True,
    )
