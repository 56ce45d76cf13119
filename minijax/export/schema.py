"""The format of files of exported programs, as JAX 0.10 writes and reads it.

`SCHEMA` says which tables there are, and their fields in order; the other names are what numbers in
these tables mean.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from minijax.core import dtypes
from minijax.core.meshes import AxisType
from minijax.random import generators, keys

SCHEMA = {
    "PyTreeDef": {
        "kind": "int8",
        "children": "[PyTreeDef]",
        "names": "[string]",
        "custom_name": "string",
        "custom_data": "[uint8]",
    },
    "AbstractDevice": {"device_kind": "string", "num_cores": "uint32", "platform": "string"},
    "AbstractMesh": {
        "axis_sizes": "[uint32]",
        "axis_names": "[string]",
        "axis_types": "[int8]",
        "abstract_device": "AbstractDevice",
    },
    "PartitionSpecOneAxis": {"axes": "[string]"},
    "PartitionSpec": {
        "partitions": "[PartitionSpecOneAxis]",
        "reduced": "[string]",
        "unreduced": "[string]",
    },
    "NamedSharding": {
        "mesh": "AbstractMesh",
        "spec": "PartitionSpec",
        "memory_kind": "string",
        "abstract_mesh_idx": "uint32",
    },
    "AbstractValue": {"kind": "int8", "shape": "[string]", "dtype": "int8", "memory_space": "int8"},
    "Sharding": {"kind": "int8", "hlo_proto": "[uint8]", "named_sharding": "NamedSharding"},
    "Effect": {"type_name": "string"},
    "DisabledSafetyCheck": {"kind": "int8", "custom_call_target": "string"},
    "Exported": {
        "serialization_version": "uint16",
        "function_name": "string",
        "in_tree": "PyTreeDef",
        "in_avals": "[AbstractValue]",
        "out_tree": "PyTreeDef",
        "out_avals": "[AbstractValue]",
        "nr_devices_short": "int16",
        "in_shardings": "[Sharding]",
        "out_shardings": "[Sharding]",
        "platforms": "[string]",
        "ordered_effects": "[Effect]",
        "unordered_effects": "[Effect]",
        "disabled_checks": "[DisabledSafetyCheck]",
        "module": "[uint8]",
        "calling_convention_version": "uint16",
        "kept_arguments": "[uint16]",
        "uses_global_constants": "bool",
        "vjp": "Exported",
        "nr_devices": "uint32",
        "unique_avals": "[AbstractValue]",
        "unique_meshes": "[AbstractMesh]",
        "unique_shardings": "[NamedSharding]",
        "in_aval_numbers": "[uint32]",
        "out_aval_numbers": "[uint32]",
        "in_sharding_numbers": "[uint32]",
        "out_sharding_numbers": "[uint32]",
    },
}
# All versions since this one are read; JAX's own readers look for it too.
VERSION = 3

DTYPES: tuple[Any, ...] = (
    *map(np.dtype, ("bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")),
    *map(np.dtype, ("f2", "f4", "f8", "c8", "c16", ml_dtypes.bfloat16)),
    *map(np.dtype, (ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.float8_e4m3b11fnuz)),
    *map(np.dtype, (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2)),
    *map(np.dtype, (ml_dtypes.float8_e5m2fnuz, dtypes.float0, ml_dtypes.float8_e4m3)),
    *map(np.dtype, (ml_dtypes.float8_e3m4, ml_dtypes.float8_e8m0fnu, ml_dtypes.float4_e2m1fn)),
    *(keys.KeyDType(generators.GENERATORS[name]) for name in ("threefry2x32", "rbg", "unsafe_rbg")),
)
"""The dtypes in the order of their numbers in files."""

MEMORIES = (None, None, "pinned_host", None)
"""Kinds of memory by their numbers: not given, the device's own, the host's, any."""
DEVICE_MEMORY, HOST_MEMORY = 1, 2
AXIS_TYPES = (None, AxisType.Auto, AxisType.Explicit, AxisType.Manual)
OF_PLATFORM, OF_CUSTOM_CALL = 0, 1

EFFECTS_OF_JAX = {"<class 'jax._src.ffi.FfiEffect'>": "<class 'minijax.lax.foreign.FfiEffect'>"}
"""Effects that both libraries have, by the names that JAX writes."""
