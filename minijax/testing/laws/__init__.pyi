from minijax.testing.laws.collectives import (
    Case as Case,
    Collectives as Collectives,
    cases as cases,
)
from minijax.testing.laws.catalogue import (
    LAWS as LAWS,
    Law as Law,
    check_all as check_all,
    check_collectives as check_collectives,
    program_of as program_of,
    programs_of as programs_of,
)
from minijax.testing.laws.executions import (
    casts_are_dual as casts_are_dual,
    derivatives_are_adjoint as derivatives_are_adjoint,
    derivatives_are_slopes as derivatives_are_slopes,
    gradients_agree as gradients_agree,
    gradients_are_slopes as gradients_are_slopes,
    gradients_of_linear as gradients_of_linear,
    tangents_of_linear as tangents_of_linear,
)
from minijax.testing.laws.executions import (
    checked_is_unchecked as checked_is_unchecked,
    executions_agree as executions_agree,
    groups_are_an_axis as groups_are_an_axis,
    lowerings_agree as lowerings_agree,
    names_and_places_do_not_matter as names_and_places_do_not_matter,
    product_axis_is_one_axis as product_axis_is_one_axis,
    types_are_sound as types_are_sound,
    vmap_stacks_results as vmap_stacks_results,
)
from minijax.testing.laws.collectives import (
    axis_of_one_changes_nothing as axis_of_one_changes_nothing,
    collectives_are_linear as collectives_are_linear,
    exchange_inverts as exchange_inverts,
    extremes_mirror as extremes_mirror,
    gather_holds_own_block as gather_holds_own_block,
    index_is_mixed_radix as index_is_mixed_radix,
    mean_is_sum_by_size as mean_is_sum_by_size,
    permutations_compose as permutations_compose,
    positions_of_extremes as positions_of_extremes,
    psum_gathers_scatter as psum_gathers_scatter,
    ragged_generalizes_exchange as ragged_generalizes_exchange,
    reductions_go_axis_by_axis as reductions_go_axis_by_axis,
    shuffles_compose as shuffles_compose,
    start_and_done_are_one as start_and_done_are_one,
    summands_are_sums as summands_are_sums,
)
