"""Artifacts of unknown origin, read in another process first.

Jaxlib ends the process over some damaged artifacts.  What this library has written is sealed, so
that damage shows (`seals`); what others have written is tried in a child.
"""

from __future__ import annotations

import subprocess
import sys

from minijax.core.cache import cached
from minijax.export.tables import DamagedError

_PROGRAM = """
import sys
sys.path[:] = sys.argv[1:]
from jaxlib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
registry = ir.DialectRegistry()
_jax_mlir_ext.register_dialects(registry)
context = ir.Context()
context.append_dialect_registry(registry)
context.load_all_available_dialects()
with context:
    artifact = sys.stdin.buffer.read()
    module = _jax.mlir.deserialize_portable_artifact(artifact, context)
    module.operation.verify()
    module.operation.get_asm(enable_debug_info=True)
"""
_MOST_SECONDS = 120


@cached("tried artifacts", key="the artifact", most=64, emptied=True)
def check(artifact: bytes) -> None:
    """Refuses an artifact over which a process ends, or that is no module.

    Where no child can be started, nothing is known, and nothing refused.

    Raises:
        DamagedError: it is one.
    """
    if not sys.executable:
        return
    command = [sys.executable, "-I", "-c", _PROGRAM, *sys.path]
    try:
        found = subprocess.run(
            command, input=artifact, capture_output=True, timeout=_MOST_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return
    if found.returncode:
        lines = found.stderr.decode(errors="replace").strip().splitlines()
        raise DamagedError(lines[-1] if lines else "the program cannot be read")
