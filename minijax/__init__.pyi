import minijax.core.meshes
from minijax import (
    ad_checkpoint as ad_checkpoint,
    checkpoint_policies as checkpoint_policies,
    core as core,
    custom_batching as custom_batching,
    custom_derivatives as custom_derivatives,
    debug as debug,
    distributed as distributed,
    dlpack as dlpack,
    dtypes as dtypes,
    errors as errors,
    example_libraries as example_libraries,
    experimental as experimental,
    explain as explain,
    export as export,
    extend as extend,
    ffi as ffi,
    flatten_util as flatten_util,
    image as image,
    lax as lax,
    memory as memory,
    monitoring as monitoring,
    nn as nn,
    numpy as numpy,
    ops as ops,
    profiler as profiler,
    random as random,
    ref as ref,
    scipy as scipy,
    sharding as sharding,
    stages as stages,
    test_util as test_util,
    testing as testing,
    tree as tree,
    tree_util as tree_util,
    typing as typing,
)
from minijax.core.config import (
    allow_f16_reductions as allow_f16_reductions,
    auto_pcast as auto_pcast,
    check_tracer_leaks as check_tracer_leaks,
    config as config,
    debug_infs as debug_infs,
    debug_key_reuse as debug_key_reuse,
    debug_nans as debug_nans,
    default_device as default_device,
    default_matmul_precision as default_matmul_precision,
    default_prng_impl as default_prng_impl,
    enable_checks as enable_checks,
    enable_custom_prng as enable_custom_prng,
    enable_x64 as enable_x64,
    explain_cache_misses as explain_cache_misses,
    jax2tf_associative_scan_reductions as jax2tf_associative_scan_reductions,
    legacy_prng_key as legacy_prng_key,
    log_compiles as log_compiles,
    make_user_context as make_user_context,
    no_execution as no_execution,
    no_tracing as no_tracing,
    numpy_dtype_promotion as numpy_dtype_promotion,
    numpy_rank_promotion as numpy_rank_promotion,
    remove_size_one_mesh_axis_from_type as remove_size_one_mesh_axis_from_type,
    softmax_custom_jvp as softmax_custom_jvp,
    thread_guard as thread_guard,
    threefry_partitionable as threefry_partitionable,
)
from minijax.core.dtypes import float0 as float0
from minijax.core.guards import (
    array_garbage_collection_guard as array_garbage_collection_guard,
    transfer_guard as transfer_guard,
    transfer_guard_device_to_device as transfer_guard_device_to_device,
    transfer_guard_device_to_host as transfer_guard_device_to_host,
    transfer_guard_host_to_device as transfer_guard_host_to_device,
)
from minijax.core.jaxpr import ClosedJaxpr as ClosedJaxpr, Jaxpr as Jaxpr
from minijax.core.native import Device as Device
from minijax.core.cache import cache_stats as cache_stats
from minijax.explain.display.glossary import help as help
from minijax.explain.display.notebook import load_ipython_extension as load_ipython_extension
from minijax.explain.report import no_retrace as no_retrace
from minijax.interpreters.staging import eval_jaxpr as eval_jaxpr
from minijax.lax.callbacks import pure_callback as pure_callback
from minijax.lax.reference_indexing import ds as ds
from minijax.lax.references import (
    Ref as Ref,
    empty_ref as empty_ref,
    free_ref as free_ref,
    freeze as freeze,
    new_ref as new_ref,
)
from minijax.runtime.array import Array as Array, Shard as Shard, live_arrays as live_arrays
from minijax.runtime.client import (
    cpu_devices as cpu_devices,
    default_backend as default_backend,
    device_count as device_count,
    devices as devices,
    local_device_count as local_device_count,
    local_devices as local_devices,
    process_count as process_count,
    process_index as process_index,
    process_indices as process_indices,
)
from minijax.runtime.client import print_environment_info as print_environment_info
from minijax.runtime.mesh_layout import make_mesh as make_mesh
from minijax.runtime.effect_tokens import effects_barrier as effects_barrier
from minijax.sharding.contexts import set_mesh as set_mesh
from minijax.sharding.named import NamedSharding as NamedSharding
from minijax.transforms.checks import checked as checked
from minijax.transforms.autodiff.checkpoint import checkpoint as checkpoint, remat as remat
from minijax.transforms.autodiff.custom_jvp import custom_jvp as custom_jvp
from minijax.transforms.autodiff.custom_vjp import (
    custom_gradient as custom_gradient,
    custom_vjp as custom_vjp,
)
from minijax.transforms.device_put import (
    block_until_ready as block_until_ready,
    copy_to_host_async as copy_to_host_async,
    device_get as device_get,
    device_put as device_put,
)
from minijax.transforms.explicit import reshard as reshard
from minijax.transforms.global_arrays import (
    make_array_from_callback as make_array_from_callback,
    make_array_from_process_local_data as make_array_from_process_local_data,
    make_array_from_single_device_arrays as make_array_from_single_device_arrays,
)
from minijax.transforms.autodiff.grad import (
    closure_convert as closure_convert,
    fwd_and_bwd as fwd_and_bwd,
    grad as grad,
    jvp as jvp,
    linear_transpose as linear_transpose,
    linearize as linearize,
    value_and_grad as value_and_grad,
    vjp as vjp,
)
from minijax.transforms.autodiff.jacobian import (
    hessian as hessian,
    jacfwd as jacfwd,
    jacobian as jacobian,
    jacrev as jacrev,
)
from minijax.transforms.jit.jit import jit as jit
from minijax.transforms.pmap import pmap as pmap
from minijax.transforms.per_device.shard_map import shard_map as shard_map
from minijax.experimental.legacy.older import smap as smap
from minijax.transforms.jit.stages import ShapeDtypeStruct as ShapeDtypeStruct
from minijax.transforms.jit.tracing import (
    checking_leaks as checking_leaks,
    clear_caches as clear_caches,
    disable_jit as disable_jit,
    ensure_compile_time_eval as ensure_compile_time_eval,
    eval_shape as eval_shape,
    make_jaxpr as make_jaxpr,
    named_call as named_call,
    named_scope as named_scope,
    typeof as typeof,
)
from minijax.transforms.vmap import vmap as vmap

P = minijax.core.meshes.PartitionSpec

__version__: str
