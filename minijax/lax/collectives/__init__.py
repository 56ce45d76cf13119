"""Communication between devices, or between the examples of a batch, along named axes.

`reductions` combines, `gathers` collects and scatters, `permutations` and `exchanges` send,
`indices` says where one is, `casting` changes what types know.
"""

from minijax.interpreters.casts import (
    preduced_p,
    psum_invariant_p,
    pvary_p,
    reduced_vary_cast_p,
    unreduced_psum_p,
    vary_unreduced_cast_p,
)
from minijax.lax.collectives.casting import (
    pcast,
    pvary,
)
from minijax.lax.collectives.exchanges import (
    all_to_all,
    all_to_all_p,
    pswapaxes,
)
from minijax.lax.collectives.gathers import (
    all_gather,
    all_gather_invariant,
    all_gather_invariant_p,
    all_gather_p,
    all_gather_reduced,
    all_gather_reduced_p,
    psum_scatter,
    reduce_scatter_p,
    unreduced_psum,
    unreduced_psum_scatter,
    unreduced_reduce_scatter_p,
)
from minijax.lax.collectives.indices import (
    axis_index,
    axis_index_p,
    axis_size,
)
from minijax.lax.collectives.permutations import (
    pbroadcast,
    pbroadcast_p,
    ppermute,
    ppermute_p,
    pshuffle,
)
from minijax.lax.collectives.ragged import (
    ragged_all_to_all,
    ragged_all_to_all_p,
)
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
)

__all__ = [
    "all_gather",
    "all_gather_invariant",
    "all_gather_invariant_p",
    "all_gather_p",
    "all_gather_reduced",
    "all_gather_reduced_p",
    "all_to_all",
    "all_to_all_p",
    "axis_index",
    "axis_index_p",
    "axis_size",
    "pargmax",
    "pargmin",
    "pbroadcast",
    "pbroadcast_p",
    "pcast",
    "pmax",
    "pmax_p",
    "pmean",
    "pmin",
    "pmin_p",
    "ppermute",
    "ppermute_p",
    "preduced_p",
    "pshuffle",
    "psum",
    "psum_invariant_p",
    "psum_p",
    "psum_scatter",
    "pswapaxes",
    "pvary",
    "pvary_p",
    "ragged_all_to_all",
    "ragged_all_to_all_p",
    "reduce_scatter_p",
    "reduced_vary_cast_p",
    "unreduced_psum",
    "unreduced_psum_p",
    "unreduced_psum_scatter",
    "unreduced_reduce_scatter_p",
    "vary_unreduced_cast_p",
]
