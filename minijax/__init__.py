"""minijax: a compiler for array programs.  `import minijax as jax` runs a JAX program."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from minijax.core import bootstrap  # noqa: F401  isort: skip  jaxlib must be loaded first

from minijax import dtypes, errors, lax, numpy, sharding, stages, tree, tree_util
from minijax.core.config import (
    check_tracer_leaks,
    config,
    debug_infs,
    debug_key_reuse,
    debug_nans,
    default_device,
    default_matmul_precision,
    default_prng_impl,
    enable_x64,
    log_compiles,
    numpy_dtype_promotion,
    numpy_rank_promotion,
)
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr
from minijax.core.specs import PartitionSpec as P
from minijax.core.statistics import cache_stats
from minijax.interpreters.evaluation import eval_jaxpr
from minijax.lax.references import Ref, empty_ref, free_ref, freeze, new_ref
from minijax.runtime.array import Array, Shard
from minijax.runtime.client import (
    Device,
    cpu_devices,
    default_backend,
    device_count,
    devices,
    local_device_count,
    local_devices,
    process_count,
    process_index,
    process_indices,
)
from minijax.runtime.mesh_layout import make_mesh
from minijax.runtime.tokens import effects_barrier
from minijax.sharding.contexts import set_mesh
from minijax.sharding.named import NamedSharding
from minijax.transforms.device_put import (
    block_until_ready,
    copy_to_host_async,
    device_get,
    device_put,
)
from minijax.transforms.grad import (
    closure_convert,
    grad,
    jvp,
    linear_transpose,
    linearize,
    value_and_grad,
    vjp,
)
from minijax.transforms.jacobian import hessian, jacfwd, jacobian, jacrev
from minijax.transforms.jit import jit
from minijax.transforms.shard_map import shard_map
from minijax.transforms.stages import ShapeDtypeStruct
from minijax.transforms.tracing import (
    checking_leaks,
    clear_caches,
    disable_jit,
    ensure_compile_time_eval,
    eval_shape,
    make_jaxpr,
    named_call,
    named_scope,
    typeof,
)
from minijax.transforms.vmap import vmap

if TYPE_CHECKING:
    from minijax import (
        ad_checkpoint,
        checkpoint_policies,
        custom_batching,
        custom_derivatives,
        debug,
        distributed,
        experimental,
        explain,
        extend,
        ffi,
        flatten_util,
        image,
        nn,
        ops,
        profiler,
        random,
        ref,
        scipy,
        testing,
    )
    from minijax.explain import no_retrace
    from minijax.lax.host_callbacks import pure_callback
    from minijax.lax.reference_indexing import ds
    from minijax.transforms.checked import checked
    from minijax.transforms.checkpoint import checkpoint, remat
    from minijax.transforms.custom_jvp import custom_jvp
    from minijax.transforms.custom_vjp import custom_gradient, custom_vjp
    from minijax.transforms.explicit import reshard
    from minijax.transforms.global_arrays import (
        make_array_from_callback,
        make_array_from_process_local_data,
        make_array_from_single_device_arrays,
    )
    from minijax.transforms.pmap import pmap
    from minijax.transforms.smap import smap

__all__ = [
    "Array",
    "ClosedJaxpr",
    "Device",
    "Jaxpr",
    "NamedSharding",
    "P",
    "Ref",
    "ShapeDtypeStruct",
    "Shard",
    "ad_checkpoint",
    "block_until_ready",
    "cache_stats",
    "check_tracer_leaks",
    "checked",
    "checking_leaks",
    "checkpoint",
    "checkpoint_policies",
    "clear_caches",
    "closure_convert",
    "config",
    "copy_to_host_async",
    "cpu_devices",
    "custom_batching",
    "custom_derivatives",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "debug",
    "debug_infs",
    "debug_key_reuse",
    "debug_nans",
    "default_backend",
    "default_device",
    "default_matmul_precision",
    "default_prng_impl",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "disable_jit",
    "distributed",
    "ds",
    "dtypes",
    "effects_barrier",
    "empty_ref",
    "enable_x64",
    "ensure_compile_time_eval",
    "errors",
    "eval_jaxpr",
    "eval_shape",
    "experimental",
    "explain",
    "extend",
    "ffi",
    "flatten_util",
    "free_ref",
    "freeze",
    "grad",
    "hessian",
    "image",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "lax",
    "linear_transpose",
    "linearize",
    "local_device_count",
    "local_devices",
    "log_compiles",
    "make_array_from_callback",
    "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
    "make_jaxpr",
    "make_mesh",
    "named_call",
    "named_scope",
    "new_ref",
    "nn",
    "no_retrace",
    "numpy",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "ops",
    "pmap",
    "process_count",
    "process_index",
    "process_indices",
    "profiler",
    "pure_callback",
    "random",
    "ref",
    "remat",
    "reshard",
    "scipy",
    "set_mesh",
    "shard_map",
    "sharding",
    "smap",
    "stages",
    "testing",
    "tree",
    "tree_util",
    "typeof",
    "value_and_grad",
    "vjp",
    "vmap",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Loads rooms and functions that many programs do without when they are first named."""
    rooms = (
        *("ad_checkpoint", "checkpoint_policies", "custom_batching", "custom_derivatives", "debug"),
        *(
            "distributed",
            "experimental",
            "explain",
            "extend",
            "ffi",
            "flatten_util",
            "image",
            "nn",
            "ops",
            "profiler",
            "random",
            "ref",
            "scipy",
            "testing",
        ),
    )
    homes = {
        "checked": "transforms.checked",
        "checkpoint": "transforms.checkpoint",
        "custom_gradient": "transforms.custom_vjp",
        "custom_jvp": "transforms.custom_jvp",
        "custom_vjp": "transforms.custom_vjp",
        "ds": "lax.reference_indexing",
        "make_array_from_callback": "transforms.global_arrays",
        "make_array_from_process_local_data": "transforms.global_arrays",
        "make_array_from_single_device_arrays": "transforms.global_arrays",
        "no_retrace": "explain",
        "pmap": "transforms.pmap",
        "pure_callback": "lax.host_callbacks",
        "remat": "transforms.checkpoint",
        "reshard": "transforms.explicit",
        "smap": "transforms.smap",
    }
    if name in rooms:
        return importlib.import_module(f"minijax.{name}")
    if name not in homes:
        raise AttributeError(f"module 'minijax' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"minijax.{homes[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """The public names, loaded or not, without the rooms below."""
    return sorted([*__all__, "__version__"])
