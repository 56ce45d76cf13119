"""How modules of the package are imported: jaxlib first, and while the garbage collector waits.

jaxlib reads variables of the environment when it is imported.  Those that the user has set win;
what is set here is taken back, so that child processes see the user's own environment.  What
imports make stays, and looking through it again and again took a seventh of the time.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from types import ModuleType

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


def import_module(name: str) -> ModuleType:
    """Imports a module without collecting garbage meanwhile."""
    if name in sys.modules or not gc.isenabled():
        return importlib.import_module(name)
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        _call_it_old()
        gc.enable()


def _call_it_old() -> None:
    """Moves all objects into the oldest generation, which the next collection leaves alone."""
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()
