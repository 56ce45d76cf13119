"""Laws of collectives and per-device programs, as functions that can be tried on one's own.

`LAWS` is the catalogue.  `check_collectives(psum=my_psum)` tries what is said of single
collectives, `check_all(f, mesh, in_specs, out_specs, *args)` what is said of programs; each law is
also a function by itself, of a `Case` or of a `DeviceProgram`.
"""

from minijax.testing.laws.cases import Case, Collectives, cases
from minijax.testing.laws.catalogue import (
    LAWS,
    Law,
    check_all,
    check_collectives,
    program_of,
    programs_of,
)
from minijax.testing.laws.derivatives import (
    casts_are_dual,
    derivatives_are_adjoint,
    derivatives_are_slopes,
    gradients_agree,
    tangents_of_linear,
)
from minijax.testing.laws.executions import (
    checked_is_unchecked,
    executions_agree,
    groups_are_an_axis,
    lowerings_agree,
    names_and_places_do_not_matter,
    product_axis_is_one_axis,
    types_are_sound,
    vmap_stacks_results,
)
from minijax.testing.laws.identities import (
    axis_of_one_changes_nothing,
    collectives_are_linear,
    exchange_inverts,
    extremes_mirror,
    gather_holds_own_block,
    index_is_mixed_radix,
    mean_is_sum_by_size,
    permutations_compose,
    positions_of_extremes,
    psum_gathers_scatter,
    ragged_generalizes_exchange,
    reductions_go_axis_by_axis,
    shuffles_compose,
    start_and_done_are_one,
    summands_are_sums,
)

__all__ = [
    "LAWS",
    "Case",
    "Collectives",
    "Law",
    "axis_of_one_changes_nothing",
    "cases",
    "casts_are_dual",
    "check_all",
    "check_collectives",
    "checked_is_unchecked",
    "collectives_are_linear",
    "derivatives_are_adjoint",
    "derivatives_are_slopes",
    "exchange_inverts",
    "executions_agree",
    "extremes_mirror",
    "gather_holds_own_block",
    "gradients_agree",
    "groups_are_an_axis",
    "index_is_mixed_radix",
    "lowerings_agree",
    "mean_is_sum_by_size",
    "names_and_places_do_not_matter",
    "permutations_compose",
    "positions_of_extremes",
    "product_axis_is_one_axis",
    "program_of",
    "programs_of",
    "psum_gathers_scatter",
    "ragged_generalizes_exchange",
    "reductions_go_axis_by_axis",
    "shuffles_compose",
    "start_and_done_are_one",
    "summands_are_sums",
    "tangents_of_linear",
    "types_are_sound",
    "vmap_stacks_results",
]


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
