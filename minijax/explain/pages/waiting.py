"""Devices that would wait for ever: what the oracle says of a program whose devices go apart.

Input: a program and its arguments.  Output: what each device does when none can go on.  Programs
that may go apart are refused when they are traced, but for those of `allow_divergent_collectives`;
these are simulated before a page runs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from minijax.core import config
from minijax.core.jaxpr import ClosedJaxpr
from minijax.explain.pages.marking import Marked
from minijax.interpreters import staging
from minijax.testing import exchanges, oracle

Data = dict[str, Any]
"""JSON."""

_MAPS = frozenset({"shard_map", "pmap"})


class Found(NamedTuple):
    """What the oracle found.

    Attributes:
        may_run: whether the program is known to come to an end.
        stuck: None, or what each device does when none can go on.
    """

    may_run: bool
    stuck: Data | None


def waiting(marked: Marked, closed: ClosedJaxpr, args: Sequence[Any]) -> Found:
    """Whether devices would wait for ever.

    Args:
        marked: the program with numbers.
        closed: the program.
        args: its arguments.
    """
    has_maps = any(x.eqn.primitive.name in _MAPS for x in marked.equations)
    if not has_maps or not config.allow_divergent_collectives.value:
        return Found(may_run=True, stuck=None)
    try:
        oracle.simulate_program(lambda *xs: staging.eval_jaxpr(closed.jaxpr, closed.consts, *xs))(
            *args
        )
    except exchanges.CollectiveMismatch as mismatch:
        return Found(may_run=False, stuck=_told(mismatch))
    except (NotImplementedError, RuntimeError, TypeError, ValueError):
        # What the oracle does not know might wait for ever.
        return Found(may_run=False, stuck=None)
    return Found(may_run=True, stuck=None)


def _told(mismatch: exchanges.CollectiveMismatch) -> Data:
    return {
        "words": str(mismatch),
        "devices": [
            {
                "name": exchanges.place_text(place),
                "does": text,
                "waits": text.startswith("waits"),
            }
            for place, text in mismatch.devices.items()
        ],
    }
