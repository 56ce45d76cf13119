"""Records of special functions that take all floats, and of those along axes.

The others have samples, which `tests/scipy/special` compares with SciPy and with differences.
"""

from __future__ import annotations

from typing import Any

from tests.numpy.records import FULL, Record

POSITIVE = (0.25, 5)


def record(name: str, draw: Any, oracle: Any = None, **options: Any) -> Record:
    return Record(f"scipy.special.{name}", draw, oracle, **{"tolerance": 20, **options})


RECORDS = [
    *(
        record(name, lambda d: d.call(d.array("fi", [(4,)], POSITIVE)))
        for name in ("erf", "erfc", "expit", "gammaln", "loggamma", "digamma", "entr")
    ),
    *(
        record(name, lambda d: d.call(*d.pair("f", values=POSITIVE)), grad=(0, 1))
        for name in ("xlogy", "xlog1py")
    ),
    *(
        record(name, lambda d: d.call(x := d.array("f", FULL), axis=d.axis(x, none=True)))
        for name in ("softmax", "log_softmax")
    ),
    record(
        "logsumexp",
        lambda d: d.call(x := d.array("fi", FULL), axis=d.axes(x), keepdims=d.of(False, True)),
    ),
]
