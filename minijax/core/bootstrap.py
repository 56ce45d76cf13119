"""Loads jaxlib with the environment it reads at import time.

Imported before anything else of the package.  Variables that the user has set win; what is set
here is taken back, so that child processes see the user's own environment.
"""

from __future__ import annotations

import os
import sys

# Silences XLA's INFO lines, and sizes its thread pools: with fewer threads than in-flight
# multi-device programs need, their collectives starve and the process aborts.
_READ_AT_IMPORT = {"TF_CPP_MIN_LOG_LEVEL": "1", "NPROC": "64"}


_ENOUGH_THREADS = 64


def load_jaxlib() -> bool:
    """Imports jaxlib's extension module under the settings above.

    Returns:
        Whether its thread pools have room for many multi-device programs in flight.
    """
    if "jaxlib._jax" in sys.modules:
        return False
    added = {name: value for name, value in _READ_AT_IMPORT.items() if name not in os.environ}
    os.environ.update(added)
    try:
        __import__("jaxlib._jax")
    finally:
        for name in added:
            os.environ.pop(name, None)
    chosen = os.environ.get("NPROC", "")
    return "NPROC" in added or (chosen.isdigit() and int(chosen) >= _ENOUGH_THREADS)


pools_are_sized = load_jaxlib()
