"""Arrays of other libraries' memory, and questions about it, by DLPack.

Input: an object that speaks the protocol.  Output: an `Array`.  How arrays speak it themselves
stands with them, in `runtime/array.py`.
"""

from __future__ import annotations

from typing import Any

from jaxlib import _jax, xla_client

from minijax.core import dtypes
from minijax.core.errors import error
from minijax.runtime import client, placement
from minijax.runtime.absence import without_jax
from minijax.runtime.array import Array, array_from_host, to_numpy


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of a dtype can be exchanged by DLPack.

    Source:     mirrors jax.dlpack.is_supported_dtype (0.10).

    Example:
        >>> jax.dlpack.is_supported_dtype("bfloat16"), jax.dlpack.is_supported_dtype("int4")
        (True, False)
    """
    found = dtypes.np_dtype(dtype, "dlpack.is_supported_dtype")
    exchanged = (
        *(dtypes.bool_, dtypes.bfloat16, dtypes.float16, dtypes.float32, dtypes.float64),
        *(dtypes.complex64, dtypes.complex128, *dtypes.SIGNED, *dtypes.UNSIGNED),
    )
    return found in exchanged and dtypes.bit_width(found) >= 8


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Array:
    """An array of another library's memory, by DLPack; shares it where it is aligned.

    Args:
        external_array: an object with `__dlpack__` and `__dlpack_device__`.
        device: where the array is to be; where the memory is, by default.
        copy: True for a copy, False for none; by default where one is needed.

    Shapes:     T[s] -> T[s].
    Source:     mirrors jax.dlpack.from_dlpack (0.10).

    Example:
        >>> jax.dlpack.from_dlpack(np.arange(3, dtype=np.int16))
        Array([0, 1, 2], dtype=int16)

    Raises:
        TypeError: the object does not have `__dlpack__`.
        ValueError: a copy is needed, and `copy` is False.
    """
    if not hasattr(external_array, "__dlpack__"):
        error(
            TypeError,
            "numpy.from_dlpack",
            "the object does not speak DLPack.",
            got=type(external_array).__name__,
            expected="an object with __dlpack__ and __dlpack_device__",
        )
    target = client.default_device() if device is None else device
    try:
        with without_jax:
            tensor = external_array.__dlpack__()
            buffer = _jax.dlpack_managed_tensor_to_buffer(tensor, target, None, copy)
    except xla_client.XlaRuntimeError as caught:
        error(
            ValueError,
            "numpy.from_dlpack",
            "the memory cannot be shared, and must not be copied.",
            got=str(caught).partition("\n")[0],
            fix="copy=None, or copy=True",
            cause=caught,
        )
    aval = buffer.aval
    if dtypes.canonicalize_dtype(aval.dtype) != aval.dtype:
        return array_from_host(to_numpy(buffer), target=placement.native_sharding(target))
    return Array(buffer._rewrap_with_aval_and_sharding(aval, placement.native_sharding(target)))
