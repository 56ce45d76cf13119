"""Communication between devices, or between the examples of a batch, along named axes.

`reductions` combines, `gathers` collects and scatters, `permutations` and `exchanges` send,
`ragged` sends slices of any length, `messages` has the two ends of messages apart, `asynchronous`
starts what is done later, `indices` says where one is, `casting` changes what types know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minijax.core import deferral
from minijax.interpreters.casts import (
    preduced_p,
    psum_invariant_p,
    pvary_p,
    reduced_vary_cast_p,
    unreduced_psum_p,
    vary_unreduced_cast_p,
)

if TYPE_CHECKING:
    from minijax.lax.collectives.asynchronous import (
        Future,
        Todo,
        all_gather_done_p,
        all_gather_reduced_start_p,
        all_gather_start,
        all_gather_start_p,
        all_to_all_done_p,
        all_to_all_start,
        all_to_all_start_p,
        pbroadcast_done_p,
        pbroadcast_start,
        pbroadcast_start_p,
        ppermute_done_p,
        ppermute_start,
        ppermute_start_p,
        psum_done_p,
        psum_invariant_start_p,
        psum_scatter_start,
        psum_start,
        psum_start_p,
        reduce_scatter_done_p,
        reduce_scatter_start_p,
        unreduced_psum_start_p,
        unreduced_reduce_scatter_start_p,
    )
    from minijax.lax.collectives.casting import pcast, pvary
    from minijax.lax.collectives.exchanges import all_to_all, all_to_all_p, pswapaxes
    from minijax.lax.collectives.gathers import (
        all_gather,
        all_gather_invariant,
        all_gather_invariant_p,
        all_gather_p,
        all_gather_reduced,
        all_gather_reduced_p,
        psum_scatter,
        reduce_scatter_p,
        unreduced_psum_scatter,
        unreduced_reduce_scatter_p,
    )
    from minijax.lax.collectives.indices import axis_index, axis_index_p, axis_size
    from minijax.lax.collectives.messages import precv, precv_p, psend, psend_p
    from minijax.lax.collectives.permutations import (
        pbroadcast,
        pbroadcast_p,
        ppermute,
        ppermute_p,
        pshuffle,
    )
    from minijax.lax.collectives.ragged import ragged_all_to_all, ragged_all_to_all_p
    from minijax.lax.collectives.reductions import (
        pargmax,
        pargmin,
        pmax,
        pmax_p,
        pmean,
        pmin,
        pmin_p,
        psum,
        psum_p,
        unreduced_psum,
    )

__all__ = [
    "Future",
    "Todo",
    "all_gather",
    "all_gather_done_p",
    "all_gather_invariant",
    "all_gather_invariant_p",
    "all_gather_p",
    "all_gather_reduced",
    "all_gather_reduced_p",
    "all_gather_reduced_start_p",
    "all_gather_start",
    "all_gather_start_p",
    "all_to_all",
    "all_to_all_done_p",
    "all_to_all_p",
    "all_to_all_start",
    "all_to_all_start_p",
    "axis_index",
    "axis_index_p",
    "axis_size",
    "pargmax",
    "pargmin",
    "pbroadcast",
    "pbroadcast_done_p",
    "pbroadcast_p",
    "pbroadcast_start",
    "pbroadcast_start_p",
    "pcast",
    "pmax",
    "pmax_p",
    "pmean",
    "pmin",
    "pmin_p",
    "ppermute",
    "ppermute_done_p",
    "ppermute_p",
    "ppermute_start",
    "ppermute_start_p",
    "precv",
    "precv_p",
    "preduced_p",
    "psend",
    "psend_p",
    "pshuffle",
    "psum",
    "psum_done_p",
    "psum_invariant_p",
    "psum_invariant_start_p",
    "psum_p",
    "psum_scatter",
    "psum_scatter_start",
    "psum_start",
    "psum_start_p",
    "pswapaxes",
    "pvary",
    "pvary_p",
    "ragged_all_to_all",
    "ragged_all_to_all_p",
    "reduce_scatter_done_p",
    "reduce_scatter_p",
    "reduce_scatter_start_p",
    "reduced_vary_cast_p",
    "unreduced_psum",
    "unreduced_psum_p",
    "unreduced_psum_scatter",
    "unreduced_psum_start_p",
    "unreduced_reduce_scatter_p",
    "unreduced_reduce_scatter_start_p",
    "vary_unreduced_cast_p",
]

__getattr__ = deferral.attributes(
    __name__,
    names={
        "lax.collectives.asynchronous": "Future Todo all_gather_done_p all_gather_reduced_start_p "
        "all_gather_start all_gather_start_p all_to_all_done_p all_to_all_start "
        "all_to_all_start_p pbroadcast_done_p pbroadcast_start pbroadcast_start_p ppermute_done_p "
        "ppermute_start ppermute_start_p psum_done_p psum_invariant_start_p psum_scatter_start "
        "psum_start psum_start_p reduce_scatter_done_p reduce_scatter_start_p "
        "unreduced_psum_start_p unreduced_reduce_scatter_start_p",
        "lax.collectives.casting": "pcast pvary",
        "lax.collectives.exchanges": "all_to_all all_to_all_p pswapaxes",
        "lax.collectives.gathers": "all_gather all_gather_invariant all_gather_invariant_p "
        "all_gather_p all_gather_reduced all_gather_reduced_p psum_scatter reduce_scatter_p "
        "unreduced_psum_scatter unreduced_reduce_scatter_p",
        "lax.collectives.indices": "axis_index axis_index_p axis_size",
        "lax.collectives.messages": "precv precv_p psend psend_p",
        "lax.collectives.permutations": "pbroadcast pbroadcast_p ppermute ppermute_p pshuffle",
        "lax.collectives.ragged": "ragged_all_to_all ragged_all_to_all_p",
        "lax.collectives.reductions": "pargmax pargmin pmax pmax_p pmean pmin pmin_p psum psum_p "
        "unreduced_psum",
    },
)


def __dir__() -> list[str]:
    """The public names, loaded or not, without the modules that define them."""
    return sorted(__all__)
