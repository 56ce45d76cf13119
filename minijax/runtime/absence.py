"""What jaxlib is told when it asks for JAX, which it does lazily.

Input: calls of jaxlib that would import JAX.  Output: the same calls, which find stand-ins.
"""

from __future__ import annotations

import sys
import threading
import types

from minijax.core.aval import ShapedArray
from minijax.runtime import placement


class _WithoutJax:
    """Answers jaxlib's lazy imports of JAX, so that JAX is never imported behind our back."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._modules = {
            "jax": types.ModuleType("jax"),
            "jax.core": types.ModuleType("jax.core"),
            "jax._src.sharding_impls": types.ModuleType("jax._src.sharding_impls"),
        }
        vars(self._modules["jax.core"])["ShapedArray"] = ShapedArray
        vars(self._modules["jax._src.sharding_impls"])["make_single_device_sharding"] = (
            lambda device, memory_kind=None: placement.piece_sharding(device, memory_kind)
        )
        self._depth = 0
        self._installed = False

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1
        if self._depth == 1 and "jax" not in sys.modules:
            sys.modules.update(self._modules)
            self._installed = True

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0 and self._installed:
            for name in self._modules:
                sys.modules.pop(name, None)
            self._installed = False
        self._lock.release()


without_jax = _WithoutJax()
