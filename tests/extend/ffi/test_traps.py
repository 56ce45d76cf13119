"""What ends the process inside of jaxlib is refused, or done, before it gets there."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from minijax.core import system

pytestmark = pytest.mark.feature("RB-08")

PRELUDE = """
import ctypes
import numpy as np
import minijax as jax
from minijax import ffi, lax, numpy as jnp

jax.config.update("num_cpu_devices", 4)
x = np.ones(4, np.float32)
like = jax.ShapeDtypeStruct((4,), np.float32)
broken = chr(0xD800)
capsule = ffi.pycapsule(ctypes.pythonapi.Py_IsInitialized)
other = ffi.pycapsule(ctypes.pythonapi.Py_Initialize)
mesh = jax.make_mesh((4,), "x", axis_types=(jax.sharding.AxisType.Auto,))

def placed(*entries):
    return jax.NamedSharding(mesh, jax.P(*entries))

def two_bits(dtype, *entries):
    return jax.device_put(np.ones((64, 64), dtype), placed(*entries))

def called(name):
    def f(x):
        return x + 1
    f.__name__ = f.__qualname__ = name
    return f

def in_scope(x):
    with jax.named_scope(broken):
        return x + 1

"""

REFUSED = {
    # Targets that jaxlib calls Python by: an index into a list that is not there.
    "ffi.ffi_call('xla_ffi_python_cpu_callback', like)(x, index=np.uint64(5))": "ValueError",
    "ffi.ffi_call('xla_ffi_partitioned_python_cpu_callback', like)(x, index=np.uint64(0))": (
        "ValueError"
    ),
    "ffi.ffi_call('xla_buffer_python_cpu_callback', like)(x, index=np.uint64(0))": "ValueError",
    "ffi.ffi_lowering('xla_ffi_python_cpu_callback')": "ValueError",
    # Names of XLA's own operations, with other operands than it gives them.
    "ffi.ffi_call('TopK', like)(x)": "ValueError",
    "ffi.ffi_call('SliceToDynamic', like)(x)": "ValueError",
    "ffi.ffi_call('Sharding', like)()": "ValueError",
    "ffi.ffi_call('SPMDFullToShardShape', like)(x, x)": "ValueError",
    "ffi.ffi_call('xla.sdy.FuncResultSharding', like)(x)": "ValueError",
    "ffi.ffi_call('Eigh', like)()": "ValueError",
    "ffi.ffi_call('__onednn$matmul', like)(x)": "ValueError",
    # What is no function, and names that are taken: jaxlib calls it, or ends the process.
    "ffi.register_ffi_target('a', ffi.pycapsule(1))": "ValueError",
    "ffi.register_ffi_target('a', ffi.pycapsule(-1))": "ValueError",
    "ffi.register_ffi_target('a', {'execute': ffi.pycapsule(2**62)})": "ValueError",
    "ffi.register_ffi_target('a', ffi.pycapsule(8), api_version=0)": "ValueError",
    "ffi.register_ffi_target('a', None)": "TypeError",
    "ffi.register_ffi_target(5, capsule)": "TypeError",
    "[ffi.register_ffi_target('b', f, api_version=0) for f in (capsule, other)]": "ValueError",
    "ffi.register_ffi_type('t', {'type_id': ffi.pycapsule(1)})": "ValueError",
    # Names that are no text.
    "ffi.ffi_call(broken, like)": "ValueError",
    "ffi.register_ffi_target(broken, capsule)": "ValueError",
    "ffi.register_ffi_target('a', capsule, platform=broken)": "ValueError",
    "ffi.register_ffi_type(broken, {'type_id': capsule})": "ValueError",
    "ffi.register_ffi_target_as_batch_partitionable(broken)": "ValueError",
    # Into how many parts the compiler cuts a program.
    "jax.jit(jnp.sin, compiler_options={'xla_cpu_parallel_codegen_split_count': -1})(x)": (
        "ValueError"
    ),
    "jax.jit(jnp.sin).lower(x).compile({'xla_cpu_parallel_codegen_split_count': 0})": "ValueError",
    "jax.jit(jnp.sin, compiler_options={'xla_cpu_parallel_codegen_split_count': '-2'})(x)": (
        "ValueError"
    ),
    "jax.jit(jnp.sin, compiler_options={'xla_cpu_parallel_codegen_split_count': 10**9})(x)": (
        "ValueError"
    ),
    # Two bits between devices: XLA writes beyond its memory.
    **{
        f"jax.jit({function}, out_shardings=placed({to}))(two_bits(jnp.{dtype}, 'x'))": (
            "NotImplementedError"
        )
        for dtype in ("int2", "uint2")
        for function, to in (
            ("lambda x: x + x", "None, 'x'"),
            ("lambda x: x", ""),
            ("lambda x: lax.concatenate([x, x], 0)", ""),
            ("lambda x: x.T", "'x'"),
            ("lambda x: x[::-1]", "'x'"),
            ("lambda x: x.astype(jnp.float32).astype(x.dtype).astype(jnp.float32)", ""),
        )
    },
    "jax.jit(jax.shard_map(lambda x: lax.all_to_all(x, 'x', 0, 0, tiled=True), mesh=mesh, "
    "in_specs=jax.P('x'), out_specs=jax.P('x')))(jnp.ones(16, jnp.int2))": "NotImplementedError",
}

DONE = {
    # Names that say what something is called, and nothing else.
    "jax.jit(called(broken))(x)": "[2. 2. 2. 2.]",
    "jax.jit(lambda x: jax.jit(called(broken))(x))(x)": "[2. 2. 2. 2.]",
    "jax.jit(in_scope)(x)": "[2. 2. 2. 2.]",
    "jax.jit(jax.named_call(lambda x: x + 1, name=broken))(x)": "[2. 2. 2. 2.]",
    "jax.jit(lambda **kwargs: kwargs[broken] + 1)(**{broken: x})": "[2. 2. 2. 2.]",
    # The path of a file that is no text, as Python reads those of other encodings.
    "jax.jit(eval(compile('lambda x: x + 1', 'caf' + chr(0xDCE9), 'eval')))(x)": "[2. 2. 2. 2.]",
    "jax.jit(jnp.sin, compiler_options={'xla_cpu_parallel_codegen_split_count': '2'})(0.0)": "0.0",
    # Placing and reading integers of two bits needs no program.
    "np.asarray(jax.device_put(two_bits(jnp.int2, 'x'), placed())).sum(dtype=int)": "4096",
    "np.asarray(jax.jit(lambda x: x + x, out_shardings=placed(None, 'x'))"
    "(two_bits(jnp.int4, 'x'))).sum(dtype=int)": "8192",
}

# Only a map of memory tells an address of the heap from that of a function; macOS has none.
if (system.PROC / "self" / "maps").exists():
    REFUSED["ffi.register_ffi_target('a', ffi.pycapsule(id(x)))"] = "ValueError"


def outcomes(programs: list[str]) -> list[str]:
    """What each program raises or gives, in one child process."""
    lines = [PRELUDE]
    for program in programs:
        lines.append(f"try: print(np.asarray({program}))")
        lines.append("except Exception as error: print(type(error).__name__)")
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-300:] + done.stderr[-2000:]
    return done.stdout.splitlines()


@pytest.mark.slow
def test_traps_are_refused() -> None:
    assert dict(zip(REFUSED, outcomes(list(REFUSED)), strict=True)) == REFUSED


@pytest.mark.slow
def test_what_is_no_trap_is_done() -> None:
    assert dict(zip(DONE, outcomes(list(DONE)), strict=True)) == DONE


@pytest.mark.slow
def test_flags_with_which_nothing_compiles_are_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import minijax as jax; jax.devices()"],
        env={**os.environ, "XLA_FLAGS": "--xla_cpu_parallel_codegen_split_count=-1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "ValueError: devices: XLA refuses the environment variable XLA_FLAGS." in done.stderr
