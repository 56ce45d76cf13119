"""Loads jaxlib with the environment it reads at import time.

Imported before anything else of the package.  Variables that the user has set win; what is set
here is taken back, so that child processes see the user's own environment.
"""

from __future__ import annotations

import os
import sys

# Silences XLA's INFO lines.
_READ_AT_IMPORT = {"TF_CPP_MIN_LOG_LEVEL": "1"}


def load_jaxlib() -> None:
    """Imports jaxlib's extension module under the settings above."""
    if "jaxlib._jax" in sys.modules:
        return
    added = {name: value for name, value in _READ_AT_IMPORT.items() if name not in os.environ}
    os.environ.update(added)
    try:
        __import__("jaxlib._jax")
    finally:
        for name in added:
            os.environ.pop(name, None)


load_jaxlib()
