"""Writes a distribution named jax, so that packages which require JAX install beside minijax.

    python -m minijax.as_jax --wheel folder

Input: a folder.  Output: a wheel in it, of some kilobytes.  What it installs makes `import jax`
mean minijax, without any other import; it requires nothing, and replaces a JAX that is installed.
"""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path

from minijax.as_jax.version import VERSION
from minijax.core.deferral import ROOT

RELEASE = f"{VERSION}+{ROOT}"
"""The version: it is JAX's to who requires one, and its local part tells it from JAX."""

_PACKAGE = f'''"""The name `jax` for {ROOT}; {ROOT}.as_jax says how."""

import sys

del sys.modules[__name__]

import {ROOT}.as_jax
import jax
'''

_METADATA = f"""Metadata-Version: 2.1
Name: jax
Version: {RELEASE}
Summary: The name jax for {ROOT}, which has to be installed beside it
Requires-Python: >=3.11
"""

_WHEEL = f"""Wheel-Version: 1.0
Generator: {ROOT}
Root-Is-Purelib: true
Tag: py3-none-any
"""

_AT = (1980, 1, 1, 0, 0, 0)
"""When the files were made: equal wheels have equal hashes, which lock files note."""


def write_wheel(folder: str | Path) -> Path:
    """Writes the wheel into a folder, which is made if need be; the path of the wheel."""
    about = f"jax-{RELEASE}.dist-info"
    files = {
        "jax/__init__.py": _PACKAGE,
        f"{about}/METADATA": _METADATA,
        f"{about}/WHEEL": _WHEEL,
    }
    record = [f"{name},{_digest(text)},{len(text)}" for name, text in files.items()]
    record.append(f"{about}/RECORD,,")
    files[f"{about}/RECORD"] = "\n".join(record) + "\n"
    path = Path(folder) / f"jax-{RELEASE}-py3-none-any.whl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, text in files.items():
            wheel.writestr(zipfile.ZipInfo(name, _AT), text)
    return path


def _digest(text: str) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
    return f"sha256={digest.rstrip(b'=').decode()}"
