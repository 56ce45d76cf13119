"""NaNs and infinities in results: what `debug_nans` and `debug_infs` look for."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from minijax.core import config, dtypes
from minijax.core.errors import message
from minijax.runtime.array import Token


class Bad(NamedTuple):
    """The first element of an array that is not finite: what it is, and where."""

    word: str
    position: tuple[int, ...]


class Looking(NamedTuple):
    """What to look for."""

    nans: bool
    infs: bool


def looking_for() -> Looking:
    """What the flags in force ask for."""
    return Looking(config.debug_nans.value, config.debug_infs.value)


def find_bad(x: Any, looking: Looking | None = None) -> Bad | None:
    """The first element of `x` that must not be, or None."""
    looking = looking_for() if looking is None else looking
    if isinstance(x, Token) or not dtypes.issubdtype(x.dtype, np.inexact):
        return None
    value = np.asarray(x)
    for wanted, test, word in ((looking.nans, np.isnan, "NaN"), (looking.infs, np.isinf, "inf")):
        if wanted:
            bad = test(value)
            if bad.any():
                return Bad(word, tuple(map(int, np.argwhere(bad)[0])))
    return None


def error(
    name: str, bad: Bad, x: Any, *, more: str = "", fix: str | None = None, at: str | None = None
) -> FloatingPointError:
    """The error for `x`, made by what is called `name`, which holds a bad element."""
    return FloatingPointError(
        message(
            name,
            f"produced {'a' if bad.word == 'NaN' else 'an'} {bad.word} at index {bad.position}.",
            got=x.aval.str_short() + more,
            fix=fix,
            at=at,
        )
    )
