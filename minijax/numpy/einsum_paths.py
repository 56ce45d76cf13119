"""Orders of contraction, by `opt_einsum`, which is loaded when the first einsum asks for it.

Programs that never call einsum start sooner without it.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any


@functools.cache
def library() -> Any:
    """The module `opt_einsum`."""
    return importlib.import_module("opt_einsum")
