"""Loads jaxlib with the environment it reads at import time, and then what every program uses.

Imported before anything else of the package.  Variables that the user has set win; what is set
here is taken back, so that child processes see the user's own environment.  The garbage collector
waits meanwhile: what imports make stays, and looking through it again and again took a seventh of
the time.
"""

from __future__ import annotations

import gc
import importlib
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


def load_package() -> None:
    """Imports the rooms that `import minijax` needs."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        load_jaxlib()
        importlib.import_module("minijax.numpy")
    finally:
        if was_enabled:
            _call_it_old()
            gc.enable()


def _call_it_old() -> None:
    """Moves all objects into the oldest generation, which the next collection leaves alone."""
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()


load_package()
