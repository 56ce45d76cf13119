"""Compares what programs print with what documents show, whatever the processor.

Processors and releases of XLA round elementary functions differently, so that the last digits of a
number in a document are those of the machine on which it was written.  Everything else, integers
included, must be the same.
"""

import math
import re

_FLOAT = re.compile(r"([-+]?\d+\.\d*(?:e[-+]?\d+)?)")
_RELATIVE, _ABSOLUTE = 5e-6, 2e-7


def agrees(expected: str, printed: str) -> bool:
    """Returns whether two texts are equal but for spaces and the last digits of floats."""
    if expected == printed:
        return True
    pairs = list(zip(_FLOAT.split(expected), _FLOAT.split(printed), strict=False))
    # The pattern is one group: every second part is a float.
    return (
        len(pairs) == len(_FLOAT.split(printed)) == len(_FLOAT.split(expected))
        and all(one.split() == other.split() for one, other in pairs[::2])
        and all(
            math.isclose(float(one), float(other), rel_tol=_RELATIVE, abs_tol=_ABSOLUTE)
            for one, other in pairs[1::2]
        )
    )


def shows(printed: str, block: str) -> bool:
    """Returns whether lines of a block follow each other in a text, in the sense of `agrees`."""
    if block in printed:
        return True
    lines, count = printed.splitlines(), len(block.splitlines())
    windows = ("\n".join(lines[i : i + count]) for i in range(len(lines) - count + 1))
    return any(agrees(block.rstrip("\n"), window) for window in windows)
