"""Control flow: branches, loops, scans, and what is built on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minijax.core import deferral

if TYPE_CHECKING:
    from minijax.lax.control_flow.branching import (
        cond,
        cond_p,
        platform_dependent,
        platform_index_p,
        switch,
    )
    from minijax.lax.control_flow.looping import fori_loop, while_loop, while_p
    from minijax.lax.control_flow.mapping import associative_scan, map
    from minijax.lax.control_flow.scanning import scan, scan_p
    from minijax.lax.control_flow.solving import (
        custom_linear_solve,
        custom_root,
        custom_root_p,
        linear_solve_p,
    )

__all__ = [
    "associative_scan",
    "cond",
    "cond_p",
    "custom_linear_solve",
    "custom_root",
    "custom_root_p",
    "fori_loop",
    "linear_solve_p",
    "map",
    "platform_dependent",
    "platform_index_p",
    "scan",
    "scan_p",
    "switch",
    "while_loop",
    "while_p",
]

__getattr__ = deferral.attributes(
    __name__,
    names={
        "lax.control_flow.branching": "cond cond_p platform_dependent platform_index_p switch",
        "lax.control_flow.looping": "fori_loop while_loop while_p",
        "lax.control_flow.mapping": "associative_scan map",
        "lax.control_flow.scanning": "scan scan_p",
        "lax.control_flow.solving": "custom_linear_solve custom_root custom_root_p linear_solve_p",
    },
)


def __dir__() -> list[str]:
    """The public names, loaded or not, without the modules that define them."""
    return sorted(__all__)
