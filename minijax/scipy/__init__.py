"""Functions of SciPy on arrays, as `jax.scipy` has them; each part loads when it is first named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minijax.core import deferral

if TYPE_CHECKING:
    from minijax.scipy import cluster as cluster
    from minijax.scipy import fft as fft
    from minijax.scipy import integrate as integrate
    from minijax.scipy import interpolate as interpolate
    from minijax.scipy import linalg as linalg
    from minijax.scipy import ndimage as ndimage
    from minijax.scipy import optimize as optimize
    from minijax.scipy import signal as signal
    from minijax.scipy import sparse as sparse
    from minijax.scipy import spatial as spatial
    from minijax.scipy import special as special
    from minijax.scipy import stats as stats

__all__ = [
    "cluster",
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "spatial",
    "special",
    "stats",
]


__getattr__ = deferral.attributes(__name__, modules=__all__)


def __dir__() -> list[str]:
    """The parts, loaded or not."""
    return sorted(__all__)
