"""The budgets: what each row of the table may cost, as a multiple of JAX and in itself.

One row per measured program; the table is printed in this order. The programs are in
`programs.py`, `control_flow.py`, `meshes.py` and `per_device.py` (run again and again in a living
process) and `cold.py` (run once in a new one).
"""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One line of the table.

    Attributes:
        name: what `--only` selects, and the name of the program.
        title: what the table prints.
        ratio: the most it may cost, as a multiple of JAX; None where it is shown for information.
        limit: the most it may cost in itself, in the unit of the row.
        floors: the most it may cost, as a multiple of the raw floor.
        unit: `s`, `s/eqn` (seconds per equation of JAX's jaxpr), `step` (seconds per step, shown
            as steps per second), `B` (shown as MiB), `bytes` or `x` (a ratio).
        is_alone: whether JAX has nothing to compare with.
    """

    name: str
    title: str
    ratio: float | None
    limit: float | None = None
    floors: float | None = None
    unit: str = "s"
    is_alone: bool = False


IMPORT_OVERHEAD = 0.050
"""Seconds that `import minijax` may take beyond the bare import of jaxlib and NumPy."""

NOISE = 0.05
"""By how much of itself a budget may be passed before that counts: what the machine's noise does to
two runs of the same program."""

START = (
    Row("import", "import", 0.36),
    Row("all_rooms", "import, and of all of scipy and linear algebra", 0.60),
    Row("unused_rooms", "such parts loaded by a plain import", 0.10, unit="x"),
    Row("first_result", "process start to first jit result", 0.45),
    Row("first_lowering", "first lowering in a process", 0.40),
    Row("first_step", "process start to first training step of an MLP", 0.50),
    Row("first_parameters", "first initialisation of a model's parameters", 0.50),
    Row("first_transformer", "process start to first step of 12 layers", 0.50),
    Row("stored_transformer", "the same, its program on disk; JAX without", 0.15),
    Row("stored_by_both", "the same, with JAX's on disk too", 0.60),
)
MEMORY = (
    Row("memory_import", "private memory after import", 0.50, unit="B"),
    Row("memory_staged", "private memory after staging 5,000 equations", 0.50, unit="B"),
    Row("memory_growth", "growth by staging 5,000 equations", None, unit="B"),
    Row("memory_python", "memory of Python kept for each equation", 0.60, unit="bytes"),
)
PROCESSES = START + MEMORY
"""Rows measured in processes of their own, started anew for each figure."""

STORED = {"first_transformer": "", "stored_transformer": "minijax", "stored_by_both": "both"}
"""Rows of one program, and which libraries find what they need of it in a folder."""

STAGING = (
    Row("stage_lax", "stage lax code", 0.30, 4e-6, unit="s/eqn"),
    Row("stage_numpy", "stage numpy code", 0.25, 8e-6, unit="s/eqn"),
    Row("stage_transformer", "stage a 12-layer transformer", 0.25, 8e-6, unit="s/eqn"),
    Row("stage_grad", "stage its gradient", 0.33, unit="s/eqn"),
    Row("stage_vmap", "stage it under vmap", 0.33, unit="s/eqn"),
    Row("stage_per_example", "stage its per-example gradients", 0.33, unit="s/eqn"),
    Row("stage_hvp", "stage its Hessian-vector product", 0.33, unit="s/eqn"),
)
LOWERING = (
    Row("lower_lax", "lower lax code", 0.30, 5e-6, unit="s/eqn"),
    Row("lower_transformer", "lower the transformer", 0.30, 5e-6, unit="s/eqn"),
    Row("lower_grad", "lower its gradient", 0.30, 5e-6, unit="s/eqn"),
    Row("compile_eager", "first run of an eager op at a new shape", 0.60),
    Row("compile_layers", "first compile of the gradient of 2 layers", 1.00),
    Row("compile_threads", "first compile of 4 programs from 4 threads", 1.00),
)
CALLS = (
    Row("call_1", "call of jit, 1 leaf", 1.00, floors=1.25),
    Row("call_20", "call of jit, dict of 20 leaves", 1.00, floors=1.25),
    Row("call_200", "call of jit, nested dicts of 200 leaves", 1.00, floors=1.25),
    Row("call_static", "call of jit with static arguments", 1.00),
    Row("call_keywords", "call of jit, nested dict keywords", 1.00, floors=1.25),
    Row("call_numpy", "call of jit on a NumPy array", 1.00),
    Row("call_donated", "call of jit, donating its argument", 1.00),
    Row("call_compiled", "call of a compiled stage", 1.00),
)
EAGER = (
    Row("add_arrays", "x + x", 1.00),
    Row("add_scalar", "x + 1", 1.00),
    Row("lax_add", "lax.add(x, x)", 1.00),
    Row("sin", "jnp.sin(x)", 1.00),
    Row("where", "jnp.where(condition, x, y)", 1.00),
    Row("slice", "x[3:5]", 0.35),
    Row("index", "x[i]", 0.35),
    Row("update", "x.at[i].set(v)", 0.35),
    Row("zeros", "jnp.zeros((4, 4))", 0.35),
    Row("grad_eager", "grad of a small MLP outside jit", 0.30),
    Row("grad_of_jit", "grad(jit(f))", 0.30),
    Row("vmap_of_jit", "vmap(jit(f))", 0.30),
)
TRANSFERS = (
    *(
        Row(f"{name}_{size}", f"{title}, {size.replace('_', ' ')}", 1.05)
        for name, title in (
            ("put", "device_put of NumPy"),
            ("asarray", "jnp.asarray of NumPy"),
            ("get", "device_get"),
        )
        for size in ("1_KB", "1_MB", "100_MB")
    ),
    Row("put_read_only", "device_put, 100 MB, aligned and read-only", 1.05),
    Row("put_mapped", "device_put, 100 MB, mapped from a file", 1.05),
    Row("put_may_alias", "device_put, 100 MB, aligned, may_alias=True", 1.05),
    Row("put_columns", "device_put, 100 MB, columns first", 1.05),
    Row("put_converted", "device_put, 100 MB of float64", 1.05),
    Row("put_aligned", "device_put, 100 MB, aligned, which JAX takes as it is", None),
    Row("view", "np.asarray of an array of 100 MB", 1.05),
)
TRAINING = (
    Row("train_cnn", "training step, CNN on 8 x 8 digits", 1.00),
    Row("train_transformer", "training step, 2-layer transformer", 1.00),
)

CONTROL_FLOW = (
    Row("stage_scan", "stage a scan over 12 transformer layers", 0.25, unit="s/eqn"),
    Row("stage_scan_grad", "stage its gradient", 0.33, unit="s/eqn"),
    Row("stage_scan_remat", "stage its gradient with checkpoint", 0.33, unit="s/eqn"),
    Row("stage_nested", "stage nested loops", 0.25, unit="s/eqn"),
    Row("lower_scan", "lower the scan", 0.30, unit="s/eqn"),
    Row("lower_scan_grad", "lower its gradient", 0.30, unit="s/eqn"),
    Row("lower_scan_remat", "lower its gradient with checkpoint", 0.30, unit="s/eqn"),
    Row("lower_nested", "lower nested loops", 0.30, unit="s/eqn"),
    Row("compile_scan", "first compile of the scan", 1.00),
    Row("compile_scan_grad", "first compile of its gradient", 1.00),
    Row("compile_scan_remat", "first compile of its gradient with checkpoint", 1.00),
    Row("compile_nested", "first compile of nested loops", 1.00),
    Row("train_rnn", "training step, RNN over 64 steps", 1.00),
    Row("train_remat", "training step, 2 scanned layers with checkpoint", 1.00),
    Row("solve_while", "conjugate gradients in a while loop", 1.00),
    Row("eager_scan", "scan called eagerly", 0.35),
    Row("eager_scan_grad", "gradient of a scan, eagerly", 0.30),
    Row("eager_cond", "cond of fresh lambdas, eagerly", 0.35),
    Row("silent_print", "call with a debug.print that prints nothing", 1.00),
    Row("memory_plain_16", "memory of the gradient of 16 layers", 1.00, unit="B"),
    Row("memory_remat_4", "with checkpoint, 4 layers", 1.00, unit="B"),
    Row("memory_remat_16", "with checkpoint, 16 layers", 1.00, unit="B"),
)

MESHES = (
    Row("mesh_call_1", "call of jit over 8 devices, 1 leaf", 1.05, floors=1.25),
    Row("mesh_call_20", "call of jit over 8 devices, dict of 20 leaves", 1.05, floors=1.25),
    Row("mesh_sum_1", "call and wait, with a collective, 1 leaf", 1.05),
    Row("mesh_sum_20", "call and wait, with a collective, dict of 20 leaves", 1.05),
    Row("mesh_number", "call over 8 devices with a NumPy scalar", 1.05),
    Row("mesh_put_1_KB", "device_put, 1 KB of NumPy to 8 devices", 1.05),
    Row("mesh_put_1_MB", "device_put, 1 MB of NumPy to 8 devices", 1.05),
    Row("mesh_put", "device_put, 100 MB of NumPy to 8 devices", 1.05),
    Row("mesh_get", "100 MB from 8 devices to NumPy", 1.05),
    Row("mesh_reshard", "device_put, 100 MB from rows to columns", 1.05),
    Row("mesh_stage_1", "stage a transformer for 1 device", 0.30),
    Row("mesh_stage_8", "for 8 devices", 0.30),
    Row("mesh_stage_65536", "for an abstract mesh of 65,536", 0.30),
    Row("mesh_stage_growth", "65,536 over 1", None, 1.25, unit="x"),
    Row("mesh_lower_1", "lower it for 1 device", 0.30),
    Row("mesh_lower_8", "for 8 devices", 0.30),
    Row("mesh_lower_65536", "for an abstract mesh of 65,536", 0.30),
    Row("mesh_lower_growth", "65,536 over 1", None, 1.25, unit="x"),
    Row("mesh_train_data", "training, CNN, data parallel", 1.00, unit="step"),
    Row("mesh_train_sharded", "training, CNN, sharded parameters", 1.00, unit="step"),
    Row("mesh_train_tensor", "training, transformer, tensor parallel", 1.00, unit="step"),
    Row("mesh_train_square", "training, CNN, mesh of 4 x 2", 1.00, unit="step"),
)
PER_DEVICE = (
    Row("shmap_stage", "stage a transformer under shard_map", 0.30, unit="s/eqn"),
    Row("shmap_stage_unchecked", "with check_vma=False", 0.30, unit="s/eqn"),
    Row("shmap_stage_grad", "stage its gradient", 0.33, unit="s/eqn"),
    Row("shmap_lower", "lower it", 0.30, unit="s/eqn"),
    Row("shmap_lower_grad", "lower its gradient", 0.30, unit="s/eqn"),
    Row("shmap_call_1", "call of jit of shard_map, 1 leaf", 1.05, floors=1.25),
    Row("shmap_call_20", "call of jit of shard_map, dict of 20 leaves", 1.05, floors=1.25),
    Row("pmap_call_1", "call of pmap, 1 leaf", 1.05),
    Row("pmap_call_20", "call of pmap, dict of 20 leaves", 1.05),
    Row("shmap_sum", "call of jit of shard_map and wait, with psum", 1.05),
    Row("pmap_sum", "call of pmap and wait, with psum", 1.05),
    Row("shmap_eager", "shard_map called eagerly, with psum", 0.35),
    Row("shmap_fsdp_stage", "stage the gradient of an FSDP layer", 0.33, unit="s/eqn"),
    Row("shmap_fsdp_run", "call and wait for the gradient of an FSDP layer", 1.00),
    Row("vmap_collectives_stage", "stage collectives over a batch", 0.33, unit="s/eqn"),
    Row("vmap_collectives_eager", "collectives over a batch, eagerly", 0.30),
    Row("example_ring_all_reduce", "example: all-reduce on a ring", 1.00, unit="step"),
    Row("example_ring_attention", "example: ring attention and its gradient", 1.00, unit="step"),
    Row("example_tensor_parallel_by_hand", "example: tensor parallel", 1.00, unit="step"),
    Row("example_fsdp_by_hand", "example: fully sharded", 1.00, unit="step"),
    Row("example_pipeline", "example: pipeline", 1.00, unit="step"),
    Row("example_expert_mixture", "example: mixture of experts", 1.00, unit="step"),
    Row("example_halo_exchange", "example: 96 generations of life", 1.00, unit="step"),
    Row("example_summa", "example: SUMMA", 1.00, unit="step"),
    Row("example_pmap_training", "example: training by pmap", 1.00, unit="step"),
    Row("example_transpose_fft", "example: Fourier transform", 1.00, unit="step"),
    Row("simulate", "simulate a generated program on 8 devices", None, 0.3, is_alone=True),
)

DISTRIBUTED = MESHES + PER_DEVICE
"""Rows measured in living processes with `DEVICES` host devices."""

DEVICES = 8

LIVE = STAGING + LOWERING + CALLS + EAGER + TRANSFERS + TRAINING + CONTROL_FLOW
"""Rows measured in living processes, one per library, that take turns."""

GROUPS = {
    "start": START,
    "memory": MEMORY,
    "stage": STAGING,
    "lower and compile": LOWERING,
    "call": CALLS,
    "eager": EAGER,
    "transfer": TRANSFERS,
    "train": TRAINING,
    "control flow": CONTROL_FLOW,
    "many devices": MESHES,
    "per device": PER_DEVICE,
}
"""Every row, under the heading that the table gives it."""
