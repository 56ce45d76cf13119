"""Sizes that no memory has: an exception that says how many bytes there would be, and no abort."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.core import aval

pytestmark = pytest.mark.feature("RB-08")

# Those that have ended the process, and others on the same ways; x are four numbers.
TOO_LARGE = (
    "jnp.zeros(2**62)",
    "jnp.zeros(2**63, jnp.int8)",
    "jnp.zeros(2**64, jnp.int8)",
    "jnp.ones((2**31, 2**31))",
    "jnp.full(2**61, 1.0)",
    "lax.full((0, 2**62, 2**62), 1.0)",
    "jnp.zeros(2**60, jnp.complex64)",
    "jnp.zeros(2**62, jnp.int4)",
    "jnp.broadcast_to(x, (2**61, 4))",
    "jax.eval_shape(lambda: jnp.zeros((2**40, 2**40)))",
    "jax.jit(lambda: jnp.zeros(2**62)).lower()",
    "jax.jit(lambda x: x + 1).lower(jax.ShapeDtypeStruct((2**31, 2**31), 'float32'))",
    "jax.jit(lambda x: (x @ x.T).sum()).lower(jax.ShapeDtypeStruct((2**40, 2), 'float32'))",
    "lax.pad(x, 0.0, [(2**61, 0, 0)])",
    "lax.pad(x, 0.0, [(0, 0, 2**62)])",
    "lax.pad(x, 0.0, [(2**62, -(2**62), 0)])",
    "lax.pad(x, 0.0, [(-(2**62), 2**62, 0)])",
    "lax.pad(x, 0.0, [(2**64, -(2**64), 0)])",
    "lax.iota(jnp.int32, 2**62)",
    "lax.broadcasted_iota(jnp.int32, (2**32, 2**31), 0)",
    "lax.reduce_window(x, 0.0, lax.add, (2,), (1,), [(2**61, 2**61)])",
    "lax.reduce_window(x, 0.0, lax.add, (2**62,), (1,), [(2**62 - 1, 0)])",
    "lax.reduce_window(x, 0.0, lax.add, (2,), (2**63,), 'VALID')",
    "lax.reduce_window(x, 0.0, lax.add, (2,), (1,), 'VALID', base_dilation=(2**61,))",
    "lax.reduce_window(x, 0.0, lax.add, (3,), (1,), 'VALID', window_dilation=(2**62,))",
    "lax.reduce_window(x, 0.0, lambda a, b: a * 2 + b, (2,), (1,), [(2**61, 2**61)])",
    "lax.conv(x[None, None], x[None, None], (2**63,), 'VALID')",
    "conv(x[None, None], x[None, None], (1,), 'VALID', lhs_dilation=(2**61,))",
    "conv(x[None, None], x[None, None], (1,), 'SAME', rhs_dilation=(2**62,))",
    "conv(x[None, None], x[None, None], (2**62,), [(2**62, 2**62)])",
    "lax.conv_transpose(x[None, :, None], x[:, None, None], (2**61,), 'VALID')",
    "jax.grad(lambda x: conv(x[None, None], x[None, None], (2**61,), [(2**61, 2**61)]).sum())(x)",
    "jnp.arange(2**62)",
    "jnp.linspace(0, 1, 2**61)",
    "jnp.eye(2**32)",
    "jnp.tri(2**31)",
    "jnp.tile(x, 2**61)",
    "jnp.repeat(x, 2**61)",
    "jax.eval_shape(jnp.outer, *[jax.ShapeDtypeStruct((2**31,), 'float32')] * 2)",
    "jnp.fft.fft(x, 2**61)",
    "jnp.asarray(np.broadcast_to(np.int8(1), (2**62,)))",
    "jax.random.uniform(jax.random.key(0), (2**61,))",
    "jax.random.split(jax.random.key(0), 2**61)",
    "jax.random.key(0).reshape(1).repeat(2**60)",
    "jax.nn.one_hot(jnp.arange(4), 2**61)",
    "jax.vmap(lambda _: jnp.zeros(2**52))(x)",
    "jax.jacobian(lambda x: jnp.broadcast_to(x, (2**60, 4)))(x)",
    "jax.ops.segment_sum(x, jnp.arange(4), num_segments=2**61)",
    "jax.image.resize(x, (2**61,), 'nearest')",
    "jax.ffi.ffi_call('k', jax.ShapeDtypeStruct((2**61,), 'float32'))()",
    "lax.empty((2**61,), jnp.float32)",
)

PRELUDE = """
import numpy as np
import minijax as jax
from minijax import lax, numpy as jnp

x = jnp.arange(4.0)
conv = lax.conv_general_dilated
"""


def outcomes(programs: tuple[str, ...]) -> list[str]:
    """For each program what it raises, in one child process, in which one abort would end all."""
    lines = [PRELUDE]
    for program in programs:
        lines.append(f"try: jax.block_until_ready({program}); print('no error')")
        lines.append("except Exception as error: print(type(error).__name__, repr(str(error)))")
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-300:] + done.stderr[-2000:]
    return done.stdout.splitlines()


@pytest.mark.slow
def test_arrays_that_no_memory_holds_are_refused() -> None:
    found = dict(zip(TOO_LARGE, outcomes(TOO_LARGE), strict=True))
    wrong = {
        program: text
        for program, text in found.items()
        if not (text.startswith("ValueError") and "bytes is larger than any memory" in text)
    }
    assert wrong == {}


# Below the limit, but more than this machine has: XLA's own allocator says so, and NumPy's.
NOT_THERE = (
    "jnp.zeros(2**45)",
    "jnp.zeros(2**51)",
    "jax.jit(lambda: (jnp.zeros(2**50), jnp.ones(2**50), jnp.full(2**50, 3.0)))()",
    "jnp.broadcast_to(x, (2**48, 4)).sum()",
    "jnp.asarray(np.broadcast_to(np.float32(1), (2**45,)))",
    "jax.jit(lambda x: jnp.sort(jnp.outer(x, x)).sum())(jnp.ones(2**23))",
    "jax.jit(lambda x: jnp.sort(jnp.sin(x)) @ jnp.cos(jnp.sort(x)))(jnp.zeros(2**46))",
    "jax.jit(lambda x: jax.pure_callback(lambda x: x, jax.ShapeDtypeStruct((2**45,), x.dtype), x))"
    "(x)",
    "jax.random.normal(jax.random.key(0), (2**50,))",
)


@pytest.mark.slow
def test_memory_that_is_not_there_is_an_exception() -> None:
    found = dict(zip(NOT_THERE, outcomes(NOT_THERE), strict=True))
    wrong = {
        program: text
        for program, text in found.items()
        if "RESOURCE_EXHAUSTED" not in text and not text.startswith("MemoryError")
    }
    assert wrong == {}


# Such programs were lowered; what XLA adds up about them must fit into 64 bits.
@pytest.mark.slow
def test_the_largest_arrays_can_be_compiled_for() -> None:
    largest = "jax.ShapeDtypeStruct((2**51,), 'float32')"
    programs = tuple(
        f"jax.jit({function}).lower({largest}).compile().cost_analysis()"
        for function in (
            "lambda x: [jnp.sort(x * k) for k in range(10)]",
            "lambda x: jnp.sort(jnp.sin(x)) @ jnp.cos(jnp.sort(x))",
            "lambda x: lax.reduce_window(x, 0.0, lax.add, (2**50,), (1,), [(2**50 - 1, 0)])",
        )
    )
    assert outcomes(programs) == ["no error"] * len(programs)


def test_error_tells_the_size_and_the_users_function() -> None:
    with pytest.raises(ValueError, match=r"^lax.iota: an array of 4,611,686,018,427,387,904 bytes"):
        lax.iota(np.int32, 2**60)


def test_limit_is_exact() -> None:
    most = jax.core.ShapedArray((aval.MOST_BYTES,), np.int8)
    assert most.size == aval.MOST_BYTES
    with pytest.raises(ValueError, match="larger than any memory"):
        jax.core.ShapedArray((aval.MOST_BYTES + 1,), np.int8)


def test_dimensions_beside_an_empty_one_are_counted() -> None:
    with pytest.raises(ValueError, match="larger than any memory"):
        jax.core.ShapedArray((2**40, 0, 2**40), np.float32)
    assert jax.core.ShapedArray((2**40, 0), np.float32).size == 0


def test_steps_beyond_64_bits_are_those_of_numpy() -> None:
    host = np.arange(4)
    for step in (2**62, 2**63, 2**70, -(2**70)):
        assert np.array_equal(jnp.asarray(host)[::step], host[::step])


def test_strides_beyond_64_bits_are_refused() -> None:
    with pytest.raises(OverflowError, match=r"lax.slice: not all numbers fit into 64 bits"):
        lax.slice(jnp.arange(4), (0,), (4,), (2**63,))
