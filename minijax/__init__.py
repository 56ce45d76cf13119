"""minijax: a compiler for array programs.  `import minijax as jax` runs a JAX program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minijax.core import bootstrap  # noqa: F401  isort: skip  jaxlib must be loaded first

from minijax import core, dtypes, errors, lax, numpy, sharding, stages, tree, tree_util
from minijax.core import deferral
from minijax.core.config import (
    check_tracer_leaks,
    config,
    debug_infs,
    debug_key_reuse,
    debug_nans,
    default_device,
    default_matmul_precision,
    default_prng_impl,
    enable_checks,
    enable_custom_prng,
    enable_x64,
    legacy_prng_key,
    log_compiles,
    make_user_context,
    no_execution,
    no_tracing,
    numpy_dtype_promotion,
    numpy_rank_promotion,
    remove_size_one_mesh_axis_from_type,
    softmax_custom_jvp,
    threefry_partitionable,
)
from minijax.core.dtypes import float0
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr
from minijax.core.native import Device
from minijax.core.specs import PartitionSpec as P
from minijax.runtime.array import Array, Shard, live_arrays
from minijax.runtime.client import (
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
    fwd_and_bwd,
    grad,
    jvp,
    linear_transpose,
    linearize,
    value_and_grad,
    vjp,
)
from minijax.transforms.jit import jit
from minijax.transforms.stages import ShapeDtypeStruct
from minijax.transforms.vmap import vmap

if TYPE_CHECKING:
    from minijax import (
        ad_checkpoint,
        checkpoint_policies,
        custom_batching,
        custom_derivatives,
        debug,
        distributed,
        dlpack,
        experimental,
        explain,
        extend,
        ffi,
        flatten_util,
        image,
        monitoring,
        nn,
        ops,
        profiler,
        random,
        ref,
        scipy,
        test_util,
        testing,
        typing,
    )
    from minijax.core.cache import cache_stats
    from minijax.core.guards import (
        array_garbage_collection_guard,
        transfer_guard,
        transfer_guard_device_to_device,
        transfer_guard_device_to_host,
        transfer_guard_host_to_device,
    )
    from minijax.explain import no_retrace
    from minijax.interpreters.evaluation import eval_jaxpr
    from minijax.lax.host_callbacks import pure_callback
    from minijax.lax.reference_indexing import ds
    from minijax.lax.references import Ref, empty_ref, free_ref, freeze, new_ref
    from minijax.runtime.environment import print_environment_info
    from minijax.runtime.mesh_layout import make_mesh
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
    from minijax.transforms.jacobian import hessian, jacfwd, jacobian, jacrev
    from minijax.transforms.pmap import pmap
    from minijax.transforms.shard_map import shard_map
    from minijax.transforms.smap import smap
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
    "array_garbage_collection_guard",
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
    "core",
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
    "dlpack",
    "ds",
    "dtypes",
    "effects_barrier",
    "empty_ref",
    "enable_checks",
    "enable_custom_prng",
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
    "float0",
    "free_ref",
    "freeze",
    "fwd_and_bwd",
    "grad",
    "hessian",
    "image",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "lax",
    "legacy_prng_key",
    "linear_transpose",
    "linearize",
    "live_arrays",
    "local_device_count",
    "local_devices",
    "log_compiles",
    "make_array_from_callback",
    "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
    "make_jaxpr",
    "make_mesh",
    "make_user_context",
    "monitoring",
    "named_call",
    "named_scope",
    "new_ref",
    "nn",
    "no_execution",
    "no_retrace",
    "no_tracing",
    "numpy",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "ops",
    "pmap",
    "print_environment_info",
    "process_count",
    "process_index",
    "process_indices",
    "profiler",
    "pure_callback",
    "random",
    "ref",
    "remat",
    "remove_size_one_mesh_axis_from_type",
    "reshard",
    "scipy",
    "set_mesh",
    "shard_map",
    "sharding",
    "smap",
    "softmax_custom_jvp",
    "stages",
    "test_util",
    "testing",
    "threefry_partitionable",
    "transfer_guard",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
    "tree",
    "tree_util",
    "typeof",
    "typing",
    "value_and_grad",
    "vjp",
    "vmap",
]

__version__ = "0.1.0"


_ROOMS = (
    *("ad_checkpoint", "checkpoint_policies", "custom_batching", "custom_derivatives", "debug"),
    *("distributed", "dlpack", "experimental", "explain", "extend", "ffi", "flatten_util"),
    *("image", "monitoring", "nn", "ops", "profiler", "random", "ref", "scipy", "test_util"),
    *("testing", "typing"),
)
# What many programs do without.
_LATER = {
    "core.guards": "array_garbage_collection_guard transfer_guard transfer_guard_device_to_device "
    "transfer_guard_device_to_host transfer_guard_host_to_device",
    "core.cache": "cache_stats",
    "explain": "no_retrace",
    "interpreters.evaluation": "eval_jaxpr",
    "lax.host_callbacks": "pure_callback",
    "lax.reference_indexing": "ds",
    "lax.references": "Ref empty_ref free_ref freeze new_ref",
    "runtime.environment": "print_environment_info",
    "runtime.mesh_layout": "make_mesh",
    "transforms.checked": "checked",
    "transforms.checkpoint": "checkpoint remat",
    "transforms.custom_jvp": "custom_jvp",
    "transforms.custom_vjp": "custom_gradient custom_vjp",
    "transforms.explicit": "reshard",
    "transforms.global_arrays": "make_array_from_callback make_array_from_process_local_data "
    "make_array_from_single_device_arrays",
    "transforms.jacobian": "hessian jacfwd jacobian jacrev",
    "transforms.pmap": "pmap",
    "transforms.shard_map": "shard_map",
    "transforms.smap": "smap",
    "transforms.tracing": "checking_leaks clear_caches disable_jit ensure_compile_time_eval "
    "eval_shape make_jaxpr named_call named_scope typeof",
}

__getattr__ = deferral.attributes(__name__, modules=_ROOMS, names=_LATER)


def __dir__() -> list[str]:
    """The public names, loaded or not, without the rooms below."""
    return sorted([*__all__, "__version__"])
