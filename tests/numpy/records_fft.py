"""Records of Fourier transforms."""

from __future__ import annotations

from tests.numpy.records import Record

NORMS = (None, "backward", "ortho", "forward")
NO_ARRAYS = {"grad": "it takes no arrays", "vmap": "it takes no arrays"}


def line(name: str, kinds: str) -> Record:
    """A record of a transform along one axis."""
    draw = lambda d: d.call(
        d.array(kinds, [(3, 4), (2, 1, 5)]),
        n=d.of(None, 2, 7),
        axis=d.of(-1, 0),
        norm=d.of(*NORMS),
    )
    return Record(f"numpy.fft.{name}", draw, tolerance=4)


def space(name: str, kinds: str) -> Record:
    """A record of a transform along several axes."""
    draw = lambda d: d.call(
        d.array(kinds, [(3, 4), (2, 2, 5)]),
        s=d.of(None, (3, 6)),
        axes=d.of((-2, -1), (1, 0)),
        norm=d.of(*NORMS),
    )
    return Record(f"numpy.fft.{name}", draw, tolerance=4)


RECORDS = [
    *(line(name, "fic") for name in ("fft", "ifft")),
    *(line(name, "r") for name in ("rfft", "ihfft")),
    *(line(name, "cf") for name in ("irfft", "hfft")),
    *(space(name, "fic") for name in ("fft2", "ifft2", "fftn", "ifftn")),
    *(space(name, "r") for name in ("rfft2", "rfftn")),
    *(space(name, "cf") for name in ("irfft2", "irfftn")),
    *(
        Record(
            f"numpy.fft.{name}", lambda d: d.call(n=d.of(5, 4, 1), d=d.of(1.0, 0.5)), **NO_ARRAYS
        )
        for name in ("fftfreq", "rfftfreq")
    ),
    *(
        Record(
            f"numpy.fft.{name}",
            lambda d: d.call(d.array(shape=[(2, 3), (2, 1, 4)]), axes=d.of(None, 0, (0, 1), -1)),
        )
        for name in ("fftshift", "ifftshift")
    ),
]
